"""Builds the parts of a router from the settings, and the snapshot that requests run on."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from router.errors import UnknownSkill
from router.events import Events
from router.learning.evidence import open_evidence
from router.learning.learner import Learner
from router.learning.peers import Peers
from router.llm.protocol import ChatModel
from router.memory.query.classifier import QueryClassifier
from router.retrieval.configured_encoder import build_encoder
from router.retrieval.discover import ListingIndex
from router.retrieval.embedding_cache import EmbeddingCache
from router.retrieval.embedding_chroma import ChromaCache
from router.retrieval.encoders import Encoder, of_requests
from router.retrieval.guarded_encoder import GuardedEncoder
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore, embeddings_folder
from router.settings.files import warn_once
from router.settings.plugins import EMBEDDING_CACHES, is_plugin, load_plugin
from router.settings.settings import Settings
from router.skills.catalog import Catalog
from router.skills.registry import SkillRegistry
from router.skills.shadow_warnings import warn_of_shadowed
from router.skills.sources import SkillSource
from router.stages.llm import LLMStage, models_from_settings
from router.stages.validation import digest_of

_log: Final = logging.getLogger(__name__)

MAX_WARNINGS: Final = 5
"""How many left-out skills are warned of one by one when a router opens; one more warning counts
the rest."""
DECISION_VERSION: Final = 9
"""Raise this number when a change of the code makes cached answers wrong, or changes the meaning of
confidences. It is part of every cache context, and of the version of what was learnt about
confidences, so that those of an earlier version are not used any more. Both depend on the encoder's
identity, too."""


@dataclass(frozen=True, slots=True)
class Components:
    """The parts of an open router.

    Attributes:
        registry: holds the catalog, and reads it again.
        store: the vectors that every snapshot's index is made from.
        llm: stage 3.
        listings: finds skills that are not installed; opens nothing before its first search.
        learner: learns from labels; None where learning is switched off, or while the evidence file
            cannot be opened.
        open_learner: opens the evidence file and makes the learner, on which ``begin`` must then be
            called. It returns None where learning is switched off, and raises ``StoreError`` where
            the file cannot be used.
        classifier: says which memory layers a request needs.
    """

    registry: SkillRegistry
    store: VectorStore
    llm: LLMStage
    listings: ListingIndex
    learner: Learner | None
    open_learner: Callable[[], Learner | None]
    classifier: QueryClassifier


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that one request runs on, from start to end: the skills, and the parts of the router.

    Attributes:
        catalog: the skills.
        index: retrieval over exactly these skills.
        encoder: identity of the encoder that the index works with.
        base_context: the part of the cache context that is the same for all requests: a digest of
            the encoder, the models and the settings that change answers. It holds no path, so that
            machines can share answers, and not the catalog, because cached answers are validated
            over the current catalog when they are read.
        parts: the parts of the router, which later snapshots share.
        waits: whether a decision may wait for an LLM or a slow encoder.
    """

    catalog: Catalog
    index: SkillIndex
    encoder: str
    base_context: str
    parts: Components
    waits: bool

    def updated(self, catalog: Catalog) -> Snapshot:
        """The snapshot over a later catalog; only skills that changed are encoded."""
        same = catalog.version == self.catalog.version  # files may have moved all the same
        index = self.index if same else self.index.updated(catalog)
        return replace(self, catalog=catalog, index=index)


def assemble(
    settings: Settings,
    *,
    sources: Sequence[SkillSource | Path] | None = None,
    encoder: Encoder | None = None,
    models: Sequence[ChatModel] | None = None,
    progress: Callable[[int, int], None] | None = None,
    events: Events,
    peers: Peers | None = None,
) -> Snapshot:
    """Read the skills, load the encoder, bring the index up to date: the first snapshot. Takes
    seconds.

    Raises:
        ConfigurationError: a root does not exist, or a setting cannot be met.
        EncoderError: the encoder cannot be loaded, or a skill not encoded.
        StoreError: the index cannot be opened.
    """
    registry = (
        SkillRegistry.configured(settings)
        if sources is None
        else SkillRegistry(sources, enrichment=settings.enrichment, max_skills=settings.max_skills)
    )
    for fault in registry.catalog.left_out[:MAX_WARNINGS]:
        _log.warning("%s", fault)
    if len(registry.catalog.left_out) > MAX_WARNINGS:
        more = len(registry.catalog.left_out) - MAX_WARNINGS
        where = "router skills check names them"
        if sources is not None:
            where += " if it is given their folders, and in code router.catalog.left_out"
        _log.warning("%d more skills, tools or folders are left out: %s", more, where)
    warn_of_shadowed(registry.catalog)
    names = registry.catalog.skills
    for name in settings.pinned_skills:
        close = () if name in names else UnknownSkill.among(name, names).suggestions
        # With sources of the program's own, a pinned name may belong to the skills of another one.
        if close or (sources is None and name not in names):
            warn_once(f"pinned_skills: {UnknownSkill(name, close)}")
    encoder = build_encoder(settings) if encoder is None else encoder
    models = models_from_settings(settings.llm) if models is None else models
    store = VectorStore(
        embeddings_folder(settings.state_dir),
        identity=encoder.identity,
        shared=shared_embeddings(settings, encoder),
    )
    guarded = GuardedEncoder(encoder, seconds=settings.encoder.timeout_seconds, events=events)
    try:
        index = SkillIndex.build(
            registry.catalog,
            encoder=encoder,
            store=store,
            of_requests=guarded,
            progress=progress,
        )
        if index.encoded:
            store.save()  # at once, so that other processes need not encode the same texts
    except BaseException:
        store.close()
        raise
    base_context = digest_of(
        [
            DECISION_VERSION,
            encoder.identity,
            [[model.provider, model.model] for model in models],
            [settings.llm.openai.base_url, settings.llm.ollama.host],
            [os.environ.get(name) for name in ("OPENAI_BASE_URL", "OLLAMA_HOST")],
            settings.vector.model_dump(mode="json"),
            settings.llm.offered_tokens,
            settings.pinned_skills,
        ]
    )
    parts = Components(
        registry,
        store,
        LLMStage(models, settings=settings.llm, events=events),
        ListingIndex(
            settings.listings,
            encoder=encoder,
            of_requests=guarded,
            state_dir=settings.state_dir,
        ),
        None,
        partial(_learner, settings, encoder, events, has_llm=bool(models), peers=peers),
        QueryClassifier(encoder=encoder),
    )
    return Snapshot(
        registry.catalog,
        index,
        encoder.identity,
        base_context,
        parts,
        waits=bool(models) or not encoder.static,
    )


def shared_embeddings(settings: Settings, encoder: Encoder) -> EmbeddingCache | None:
    """The cache of embeddings that the settings name; None for the default with a static encoder,
    which encodes faster than Chroma answers. Nothing is opened yet.

    Raises:
        ConfigurationError: the settings name a plug-in that cannot be used.
    """
    name = settings.vector_store
    if name == "chroma":
        return None if encoder.static else ChromaCache(embeddings_folder(settings.state_dir))
    if is_plugin(EMBEDDING_CACHES, name):
        cache: EmbeddingCache = load_plugin(EMBEDDING_CACHES, name, EmbeddingCache, "vector_store")
        return cache
    return ChromaCache(settings.vector_store)


def _learner(
    settings: Settings, encoder: Encoder, events: Events, *, has_llm: bool, peers: Peers | None
) -> Learner | None:
    if not settings.learning.enabled:
        return None
    return Learner(
        open_evidence(settings, clock=time.time),
        settings.learning,
        of_requests(encoder, settings.encoder.timeout_seconds),
        has_llm=has_llm,
        version=DECISION_VERSION,
        events=events,
        peers=peers,
    )
