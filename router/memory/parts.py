"""Builds the parts of a memory from the settings, and puts them together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from itertools import chain
from typing import Final

from router.concurrency.tasks import in_thread
from router.errors import ConfigurationError
from router.memory.contexts.assembler import ContextAssembler
from router.memory.contexts.context import Retrieved, Strategy
from router.memory.contexts.documents import DocumentIndex
from router.memory.contexts.usage_patterns import QueryPatternTracker
from router.memory.curation.proposals import Proposals
from router.memory.layers import WRITABLE, built_in_layers
from router.memory.layers.project import ProjectLayer
from router.memory.layers.stored import search_words
from router.memory.model import (
    COUNTING_LAYER,
    AnyLayer,
    LayerQuery,
    LayerStatus,
    MemoryItem,
    Scope,
    zone_of,
)
from router.memory.query.classifier import QueryClassifier
from router.memory.query.routing_table import RoutingTable
from router.memory.recall.gather import LAYERS_AT_A_TIME, THREADS_AT_A_TIME
from router.memory.recall.memory_router import MemoryRouter
from router.memory.recall.pool import COUNT_TYPE
from router.memory.recall.recaller import Recaller, missing_layers
from router.memory.recall.relevance import Relevance
from router.memory.recall.weights import LayerWeights
from router.memory.records import Records
from router.memory.services.unified import SourceReport, UnifiedMemory
from router.memory.stores.memory_store import MemoryStore
from router.retrieval.bundled_encoder import UNKNOWN, bundled_tokenizer
from router.retrieval.configured_encoder import build_encoder
from router.retrieval.encoders import Encoder
from router.settings.settings import Settings

EPISODIC_LAYERS: Final = ("session", "episodic")
"""Layers that the strategy ``episodic`` of a context reads: what was said and done."""
LEXICAL_LAYERS: Final = (
    *EPISODIC_LAYERS,
    "semantic",
    "project",
    "user",
    "procedural",
    "graph",
    "governance",
)
"""Layers that the strategy ``lexical`` of a context reads. Tasks and plans are left out, because
they are of use only to questions about them. With ``hybrid`` the query decides."""


@dataclass(frozen=True, slots=True)
class MemoryParts:
    """The parts of an open memory; each class says what it does."""

    store: MemoryStore
    unified: UnifiedMemory
    classifier: QueryClassifier
    router: MemoryRouter
    recall: Recaller
    documents: DocumentIndex
    assembler: ContextAssembler
    tracker: QueryPatternTracker
    weights: LayerWeights
    records: Records
    proposals: Proposals

    async def search_layers(
        self, query: str, scope: Scope, limit: int, time_zone: tzinfo
    ) -> tuple[list[MemoryItem], SourceReport]:
        """The relevant items of all layers, best first, and how the search went."""
        found = await self.recall.answer(
            query,
            scope,
            k=limit,
            include_confidence_scores=False,
            explain_reasoning=False,
            time_zone=time_zone,
            layers=[name for name in self.router.specs if name != COUNTING_LAYER],
        )
        items = [one.item for one in found.items]
        missing = "; ".join(missing_layers(found.layers))
        status = LayerStatus.OK if items else LayerStatus.EMPTY
        if missing and not items:
            status = LayerStatus.ERROR
        return items, SourceReport(status, len(items), found.milliseconds, missing)

    async def aclose(self) -> None:
        """Finish what is under way and close everything."""
        try:
            await self.recall.aclose()
            await self.router.aclose()
            await self.unified.aclose()
        finally:
            await in_thread(self._close_files)

    def _close_files(self) -> None:
        self.weights.close()
        self.tracker.close()
        self.store.close()


def assemble_parts(
    settings: Settings,
    *,
    encoder: Encoder | None,
    layers: Sequence[AnyLayer],
    routing_table: RoutingTable | None,
    count_tokens: Callable[[str], int] | None,
    clock: Callable[[], float],
) -> MemoryParts:
    """Open the stores and build the parts that use them. Takes about a second.

    Raises:
        ConfigurationError: ``memory.layer_ttl_days`` names a layer that items cannot be saved to,
            such as a misspelt one, whose items would then never expire.
    """
    memory_settings = settings.memory
    if unknown := memory_settings.layer_ttl_days.keys() - {*WRITABLE}:
        raise ConfigurationError(
            f"setting memory.layer_ttl_days: {min(unknown)[:200]!r} is none of "
            f"{', '.join(WRITABLE)}"
        )
    encoder = build_encoder(settings) if encoder is None else encoder
    with ExitStack() as opened:  # if a later store cannot be opened, those before are closed
        classifier = QueryClassifier(
            table=routing_table, layers=[layer.spec for layer in layers], encoder=encoder
        )
        classifier.classify("What is there?")  # loads its weights now, and not within a deadline
        if memory_settings.url is None:
            store = MemoryStore.open(memory_settings.directory, encoder=encoder, clock=clock)
            threads_at_a_time = THREADS_AT_A_TIME
        else:
            store = MemoryStore.connect(memory_settings.url, encoder=encoder, clock=clock)
            threads_at_a_time = LAYERS_AT_A_TIME  # they mostly wait for the server
        opened.callback(store.close)
        weights = LayerWeights(memory_settings.directory / "weights.sqlite3", clock=clock)
        opened.callback(weights.close)
        tracker = QueryPatternTracker(
            memory_settings.directory / "patterns.sqlite3",
            clock=clock,
            files_owner=Scope(project=memory_settings.project),
        )
        opened.callback(tracker.close)
        unified = UnifiedMemory.open(memory_settings, encoder=encoder)
        opened.callback(lambda: asyncio.run(unified.aclose()))  # this is a thread without a loop
        project = ProjectLayer(store, unified.files, project=memory_settings.project)
        built_in = {layer.spec.name: layer for layer in (*built_in_layers(store), project)}
        replaced = {layer.spec.name for layer in layers}
        router = MemoryRouter(
            [*(layer for name, layer in built_in.items() if name not in replaced), *layers],
            classifier=classifier,
            weights=weights,
            generation=lambda: store.generation + unified.files.generation,
            clock=clock,
            layer_deadline_seconds=memory_settings.layer_deadline_seconds,
            deadline_seconds=memory_settings.deadline_seconds,
            threads_at_a_time=threads_at_a_time,
            cache_seconds=memory_settings.cache_ttl_seconds,
        )
        relevance = Relevance(store.text_vectors).of
        documents = DocumentIndex(store)
        recall = Recaller(
            router,
            relevance=relevance,
            clock=clock,
            mark_accessed=store.touch,
            judges_in_thread=not encoder.static,
            ask_service=unified.recall_service,
        )
        assembler = ContextAssembler(
            partial(_memories_for_context, recall, store, project),
            documents=documents.retrieve,
            no_documents=documents.is_empty,
            relevance=relevance,
            count_tokens=bundled_counter() if count_tokens is None else count_tokens,
            clock=clock,
            tracker=tracker,
        )
        opened.pop_all()
    records = Records(
        store,
        tracker,
        ttl_days=settings.memory.layer_ttl_days,
        time_zone=zone_of(settings.memory.time_zone),
        clock=clock,
    )
    return MemoryParts(
        store,
        unified,
        classifier,
        router,
        recall,
        documents,
        assembler,
        tracker,
        weights,
        records,
        Proposals(store, records),
    )


async def _memories_for_context(
    recall: Recaller,
    store: MemoryStore,
    project: ProjectLayer,
    query: LayerQuery,
    strategy: Strategy,
    scope: Scope,
    k: int,
) -> Retrieved:
    """The memories for a context: ``k`` items in all, or with the strategy ``lexical`` ``k`` items
    of each layer."""

    def by_words() -> list[MemoryItem]:
        words = search_words(query)
        found = [store.lexical(layer, words, scope=scope, k=k) for layer in LEXICAL_LAYERS]
        return [*chain(*found), *project.search_files(query, scope=scope, k=k)]

    if strategy is Strategy.LEXICAL:
        return Retrieved(await in_thread(by_words))
    answer = await recall.answer(
        query.text,
        scope,
        k=k,
        include_confidence_scores=False,
        explain_reasoning=False,
        time_zone=query.now.tzinfo or UTC,
        layers=EPISODIC_LAYERS if strategy is Strategy.EPISODIC else None,
    )
    items = [one.item for one in answer.items if one.item.type != COUNT_TYPE]
    return Retrieved(items, missing_layers(answer.layers))


def bundled_counter() -> Callable[[str], int]:
    """Counts tokens with the tokenizer of the bundled encoder, which knows English words and pieces
    of rarer ones. The model that reads the context also reads what this tokenizer does not know, so
    that is counted, too: one token for each character of other words and alphabets, one for each
    line break, and one for every four further spaces."""
    tokenizer = bundled_tokenizer()

    def count(text: str) -> int:
        encoding = tokenizer.encode(text, add_special_tokens=False)
        spans = zip(encoding.ids, encoding.offsets, strict=True)
        known = [end - start for number, (start, end) in spans if number != UNKNOWN]
        words = text.split()
        letters = sum(map(len, words))
        spaces = len(text) - letters - max(len(words) - 1, 0)
        return len(known) + max(letters - sum(known), 0) + text.count("\n") + spaces // 4

    return count
