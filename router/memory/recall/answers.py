"""What the memory router and recall return: frozen, explained, and plain JSON on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from router.concurrency.breaker import BreakerState
from router.memory.model import Classification, LayerReport, MemoryItem
from router.memory.recall.confidence import ItemConfidence
from router.plain_json import PlainJson, plain_json
from router.result import LayerChoice


@dataclass(frozen=True, slots=True)
class LayerState(PlainJson):
    """A layer as ``status`` shows it.

    Attributes:
        breaker: ``closed`` when it is asked, ``open`` when it is left alone for a while,
            ``half-open`` when one trial call decides.
        running: calls under way.
        late: those of them that are past their deadline.
    """

    name: str
    description: str
    breaker: BreakerState
    running: int
    late: int


@dataclass(frozen=True, slots=True)
class RouteStats(PlainJson):
    """What a route cost. ``layers_queried`` counts the layers that were really asked: not those
    that were skipped, and none on a cache hit."""

    total_milliseconds: float
    layers_queried: int
    cache_hit: bool


@dataclass(frozen=True, slots=True)
class MemoryRoute(PlainJson):
    """What the layers chosen for a query hold on it.

    Attributes:
        id: identifies this answer, for feedback.
        classification: what the query asks for, before layer weights adapted.
        results: one report for each layer that was chosen, heaviest first.
        secondary: layers to turn to when those gave too little, best first.
    """

    id: str
    query: str
    classification: Classification
    results: tuple[LayerReport, ...]
    secondary: tuple[LayerChoice, ...]
    stats: RouteStats

    @property
    def is_complete(self) -> bool:
        """Whether every layer had its say."""
        return all(report.is_complete for report in self.results)


@dataclass(frozen=True, slots=True)
class MemoryStatus(PlainJson):
    """How a memory router is doing: its layers in the order given, by query type and layer the
    factors of layer weights that feedback has moved, and its cache."""

    layers: tuple[LayerState, ...]
    weight_factors: Mapping[str, Mapping[str, float]]
    cache: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RecalledItem(PlainJson):
    """One item of a recall's answer.

    Attributes:
        item: with its place in the ranking as its score (``RERANKED``), and the provenance of
            every copy that was found.
        relevance: probability, in [0, 1], that it bears on the query.
        confidence: its five factors; None when they were not asked for.
    """

    item: MemoryItem
    relevance: float
    confidence: ItemConfidence | None = None

    def to_dict(self) -> dict[str, Any]:
        judged = {"relevance": self.relevance, "confidence": plain_json(self.confidence)}
        return self.item.to_dict() | judged


@dataclass(frozen=True, slots=True)
class CascadeStep(PlainJson):
    """One turn to further layers, the first of depth 1, with the answer's confidence before and
    after."""

    depth: int
    layers: tuple[str, ...]
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class RecallResult(PlainJson):
    """What memory has to say on a query.

    Attributes:
        id: identifies this answer, for feedback.
        items: best first; empty when nothing that is stored bears on the query.
        confidence: probability, in [0, 1], that the answer bears on the query: the relevance of
            its most relevant item, 0 for an empty answer.
        classification: what the query asks for.
        layers: one report for each layer that was read, in that order, with everything it found.
        cascade_path: the turns to further layers; empty when the first ones were enough.
        conflicts: ids of two items that contradict each other, where nothing tells which one holds.
        reasoning: sentences for a person; empty when not asked for.
        milliseconds: from the call to the answer.
    """

    id: str
    query: str
    items: tuple[RecalledItem, ...]
    confidence: float
    classification: Classification
    layers: tuple[LayerReport, ...]
    cascade_path: tuple[CascadeStep, ...]
    conflicts: tuple[tuple[str, str], ...]
    reasoning: tuple[str, ...]
    milliseconds: float

    @property
    def is_complete(self) -> bool:
        """Whether every layer that was turned to had its say."""
        return all(report.is_complete for report in self.layers)
