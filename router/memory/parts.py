"""Putting a memory together: its parts from the settings."""

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
from router.memory.model import AnyLayer, LayerQuery, LayerStatus, MemoryItem, Scope
from router.memory.query.classifier import QueryClassifier
from router.memory.query.routing_table import RoutingTable
from router.memory.recall.gather import LAYERS_AT_A_TIME, THREADS_AT_A_TIME
from router.memory.recall.memory_router import COUNTING_LAYER, MemoryRouter
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

SPOKEN: Final = ("session", "episodic")
"""Layers of what was said and done, which the strategy ``episodic`` reads."""
REMEMBERED: Final = (*SPOKEN, "semantic", "project", "user", "procedural", "graph", "governance")
"""Layers that the strategies ``lexical`` and ``hybrid`` read. Tasks and plans are left out: they
answer questions about them, and are no context for others."""


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

    async def in_layers(
        self, query: str, scope: Scope, limit: int, time_zone: tzinfo
    ) -> tuple[list[MemoryItem], SourceReport]:
        """What all layers hold that bears on a query, best first, and how that went."""
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
    """Open the stores and put the parts over them. Takes about a second.

    Raises:
        ConfigurationError: ``memory.layer_ttl_days`` names no layer that items are saved to. Items
            that should go would stay.
    """
    given = settings.memory
    if unknown := given.layer_ttl_days.keys() - {*WRITABLE}:
        raise ConfigurationError(
            f"setting memory.layer_ttl_days: {min(unknown)[:200]!r} is none of "
            f"{', '.join(WRITABLE)}"
        )
    encoder = build_encoder(settings) if encoder is None else encoder
    with ExitStack() as opened:  # what is open when another store fails is closed again
        classifier = QueryClassifier(
            table=routing_table, layers=[layer.spec for layer in layers], encoder=encoder
        )
        classifier.classify("What is there?")  # loads its weights, before a deadline runs
        if given.url is None:
            store = MemoryStore.open(given.directory, encoder=encoder, clock=clock)
        else:
            store = MemoryStore.connect(given.url, encoder=encoder, clock=clock)
        opened.callback(store.close)
        weights = LayerWeights(given.directory / "weights.sqlite3", clock=clock)
        opened.callback(weights.close)
        tracker = QueryPatternTracker(given.directory / "patterns.sqlite3", clock=clock)
        opened.callback(tracker.close)
        unified = UnifiedMemory.open(given, encoder=encoder)
        opened.callback(lambda: asyncio.run(unified.aclose()))  # this is a thread without a loop
        project = ProjectLayer(store, unified.files, project=given.project)
        own = {layer.spec.name: layer for layer in (*built_in_layers(store), project)}
        replaced = {layer.spec.name for layer in layers}
        router = MemoryRouter(
            [*(layer for name, layer in own.items() if name not in replaced), *layers],
            classifier=classifier,
            weights=weights,
            generation=lambda: store.generation + unified.files.generation,
            clock=clock,
            layer_deadline_seconds=given.layer_deadline_seconds,
            deadline_seconds=given.deadline_seconds,
            # Those over a server wait for it; the others compute.
            threads_at_a_time=THREADS_AT_A_TIME if given.url is None else LAYERS_AT_A_TIME,
            cache_seconds=given.cache_ttl_seconds,
        )
        relevance = Relevance(store.text_vectors).of
        documents = DocumentIndex(store)
        recall = Recaller(
            router,
            relevance=relevance,
            clock=clock,
            accessed=store.touch,
            judges_in_thread=not encoder.static,
            beside=unified.beside,
        )
        assembler = ContextAssembler(
            partial(_remembered, recall, store, project),
            documents=documents.retrieve,
            no_documents=documents.is_empty,
            relevance=relevance,
            count_tokens=bundled_counter() if count_tokens is None else count_tokens,
            clock=clock,
            tracker=tracker,
        )
        opened.pop_all()
    records = Records(store, tracker, ttl_days=settings.memory.layer_ttl_days, clock=clock)
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


async def _remembered(
    recall: Recaller,
    store: MemoryStore,
    project: ProjectLayer,
    query: LayerQuery,
    strategy: Strategy,
    scope: Scope,
    k: int,
) -> Retrieved:
    """What is remembered, for the assembler of contexts; by words alone, ``k`` items a layer."""

    def by_words() -> list[MemoryItem]:
        words = search_words(query)
        found = [store.lexical(layer, words, scope=scope, k=k) for layer in REMEMBERED]
        return [*chain(*found), *project.in_files(query, scope=scope, k=k)]

    if strategy is Strategy.LEXICAL:
        return Retrieved(await in_thread(by_words))
    answer = await recall.answer(
        query.text,
        scope,
        k=k,
        include_confidence_scores=False,
        explain_reasoning=False,
        time_zone=query.now.tzinfo or UTC,
        layers=SPOKEN if strategy is Strategy.EPISODIC else None,
    )
    items = [one.item for one in answer.items if one.item.type != COUNT_TYPE]
    return Retrieved(items, missing_layers(answer.layers))


def bundled_counter() -> Callable[[str], int]:
    """A counter that uses the tokenizer of the bundled encoder: English words and pieces of rarer
    ones. What these leave out counts, too, because the reader's model reads it: a token for each
    character of other words and alphabets and for each line break, and one for four further spaces.
    """
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
