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
        breaker: the state of its circuit breaker: ``closed`` if it is asked, ``open`` if it is not
            asked for a while, ``half-open`` while one trial call decides.
        running: the number of calls under way.
        late: how many of these are past their deadline.
    """

    name: str
    description: str
    breaker: BreakerState
    running: int
    late: int


@dataclass(frozen=True, slots=True)
class RouteStats(PlainJson):
    """What a route cost. ``layers_queried`` is the number of layers that were really asked: those
    that were skipped do not count, and on a cache hit it is 0."""

    total_milliseconds: float
    layers_queried: int
    cache_hit: bool


@dataclass(frozen=True, slots=True)
class MemoryRoute(PlainJson):
    """What the layers that were chosen for a query have found.

    Attributes:
        id: identifies this answer, for feedback.
        classification: what the query asks for; feedback is not included in its weights.
        results: one report for each layer that was chosen, highest weight first.
        secondary: layers to read next if those found too little, best first.
    """

    id: str
    query: str
    classification: Classification
    results: tuple[LayerReport, ...]
    secondary: tuple[LayerChoice, ...]
    stats: RouteStats

    @property
    def is_complete(self) -> bool:
        """Whether every layer answered completely."""
        return all(report.is_complete for report in self.results)


@dataclass(frozen=True, slots=True)
class MemoryStatus(PlainJson):
    """The state of a memory router: its layers; by query type and layer the factors of the layer
    weights that feedback has changed; and its cache."""

    layers: tuple[LayerState, ...]
    weight_factors: Mapping[str, Mapping[str, float]]
    cache: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RecalledItem(PlainJson):
    """One item of a recall's answer.

    Attributes:
        item: the item, with the score by which the answer is ordered (``RERANKED``), and with the
            provenance of every copy that was found.
        relevance: probability, in [0, 1], that it bears on the query.
        confidence: its five factors; None if they were not asked for.
    """

    item: MemoryItem
    relevance: float
    confidence: ItemConfidence | None = None

    def to_dict(self) -> dict[str, Any]:
        judged = {"relevance": self.relevance, "confidence": plain_json(self.confidence)}
        return self.item.to_dict() | judged


@dataclass(frozen=True, slots=True)
class CascadeStep(PlainJson):
    """One step of the cascade: the layers that were read, and the answer's confidence before and
    after. The first step has depth 1."""

    depth: int
    layers: tuple[str, ...]
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class RecallResult(PlainJson):
    """The answer of memory to a query.

    Attributes:
        id: identifies this answer, for feedback.
        items: best first; empty if nothing that is stored bears on the query.
        confidence: probability, in [0, 1], that the answer bears on the query: the relevance of
            its most relevant item, 0 for an empty answer.
        classification: what the query asks for.
        layers: one report for each layer that was read, in that order, with everything it found.
        cascade_path: the steps of the cascade; empty if the first layers were enough.
        conflicts: pairs of ids of items that contradict each other, if nothing tells which is
            valid.
        reasoning: sentences for a person; empty if not asked for.
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
        """Whether every layer that was read answered completely."""
        return all(report.is_complete for report in self.layers)
