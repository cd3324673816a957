"""Layers that search the store by words, meaning and time, each for its own items.

Tasks, counts and the memory files of a project need more: see ``prospective``, ``meta`` and
``project``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from router.memory.model import LayerQuery, LayerSpec, MemoryItem, Scope, ScoreKind
from router.memory.query.listing import asks_for_events, asks_for_kind, names_no_subject
from router.memory.stores.fusion import at_place
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.spaces import EVERYTHING, Filter
from router.numeric import wilson

CANDIDATES_AN_ITEM: Final = 2
"""Items that a layer gets from the store for each item that is wanted, to choose from."""
SUCCESS_WEIGHT: Final = 0.1
"""The score of a procedure is multiplied by 1 plus this times its success rate
(``success_bound``)."""
MAX_OUTCOMES: Final = 1_000_000_000
"""Larger counts are cut to this, because an attribute may be an integer that no float can hold."""


class StoredLayer:
    """A layer that searches by words and meaning. A query that names only the kind of memory that
    the layer holds gets the newest items."""

    def __init__(self, store: MemoryStore, spec: LayerSpec) -> None:
        self._store = store
        self._spec = spec

    @property
    def spec(self) -> LayerSpec:
        return self._spec

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        """See ``BlockingLayer``. The scores are ``FUSED``, here and in every layer below."""
        if asks_for_kind(query) == self.spec.name:
            return self._store.newest(self.spec.name, scope=scope, k=k)
        return self._store.search(
            self.spec.name, query.text, words=search_words(query), scope=scope, k=k
        )

    def _candidates(
        self,
        query: LayerQuery,
        *,
        scope: Scope,
        k: int,
        words: str | None = None,
        where: Filter = EVERYTHING,
        prefer: Filter = EVERYTHING,
    ) -> Sequence[MemoryItem]:
        """More than ``k`` items by words (None: those of the query) and meaning, for the layer to
        reorder. Only items that pass ``where`` are found. Those that pass ``prefer`` gain as much
        as by the first place in another ranking."""
        words = search_words(query) if words is None else words

        def found(where: Filter) -> Sequence[MemoryItem]:
            return self._store.search(
                self.spec.name,
                query.text,
                words=words,
                scope=scope,
                k=CANDIDATES_AN_ITEM * k,
                where=where,
            )

        if not prefer:
            return found(where)
        preferred = [
            item.scored((item.score or 0.0) + at_place(0), ScoreKind.FUSED)
            for item in found(prefer)
        ]
        first = {(item.scope, item.id) for item in preferred}
        return [*preferred, *(i for i in found(where) if (i.scope, i.id) not in first)]


class TimedLayer(StoredLayer):
    """Session and episodic memory.

    A query without a subject ("what did we do last week?") asks for the newest items of its period.
    If the query has a subject, items of its period come first and the others follow, because people
    remember dates wrongly.

    Args:
        recency: weight of being new, beside words and meaning, which together have 1. In a
            conversation the latest items matter most; elsewhere recency only decides between items
            of nearly equal score.
    """

    def __init__(self, store: MemoryStore, spec: LayerSpec, *, recency: float) -> None:
        super().__init__(store, spec)
        self._recency = recency

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        where = Filter(period=query.period)
        if asks_for_events(query):
            return self._store.newest(self.spec.name, scope=scope, k=k, where=where)
        found = self._candidates(query, scope=scope, k=k, prefer=where)
        # The newest item gains as much as by a first place in a ranking, each older one less.
        newest = sorted(found, key=lambda item: item.created, reverse=True)
        gains = {
            (item.scope, item.id): self._recency * at_place(0) * (1 - place / len(newest))
            for place, item in enumerate(newest)
        }
        return reordered(found, lambda score, item: score + gains[item.scope, item.id], k)


class GovernanceLayer(StoredLayer):
    """Records and rules. Items are also found by the words of their attributes ``actor``,
    ``action`` and ``subject``.

    A query that names only a period lists what was recorded then. With a subject, items of the
    period are only preferred: a rule about Fridays need not have been made on a Friday.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        where = Filter(period=query.period)
        if names_no_subject(query) or asks_for_kind(query) == self.spec.name:
            return self._store.newest(self.spec.name, scope=scope, k=k, where=where)
        return self._candidates(query, scope=scope, k=k, prefer=where)[:k]


class GraphLayer(StoredLayer):
    """Items about the entities that a query names, and about those a few relations away, nearest
    first."""

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        """Items that were reached over relations have scores above 0.32; see ``relations_away``."""
        return self._store.related(self.spec.name, query.text, scope=scope, k=k)


class ProceduralLayer(StoredLayer):
    """Procedures by words and meaning; of two with nearly equal scores, the one that works more
    often comes first.

    Attributes of its items: ``successes`` and ``failures``, how often the procedure worked and how
    often it did not. If there is any of these, the items found also have ``success_rate``.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        found = self._candidates(query, scope=scope, k=k)
        best = reordered(
            found, lambda score, item: score * (1 + SUCCESS_WEIGHT * success_bound(item)), k
        )
        return [_with_rate(item) for item in best]


def search_words(query: LayerQuery) -> str:
    """The content words of a query, or its text if it has none."""
    return " ".join(query.terms) or query.text


def reordered(
    items: Iterable[MemoryItem], new_score: Callable[[float, MemoryItem], float], k: int
) -> list[MemoryItem]:
    """The best ``k`` items by a new score, which is computed from the store's score and the item;
    of equal ones the newer comes first."""
    scored = [item.scored(new_score(item.score or 0.0, item), ScoreKind.FUSED) for item in items]
    return sorted(scored, key=lambda item: (item.score, item.created), reverse=True)[:k]


def outcomes(item: MemoryItem) -> tuple[int, int]:
    """How often a procedure worked, and how often it did not."""
    counts = (item.attributes.get(name) for name in ("successes", "failures"))
    successes, failures = (
        min(max(n, 0), MAX_OUTCOMES) if isinstance(n, int) else 0 for n in counts
    )
    return successes, failures


def success_bound(item: MemoryItem) -> float:
    """The lower bound of a procedure's success rate at 95% confidence, in [0, 1); 0 without
    outcomes."""
    successes, failures = outcomes(item)
    return wilson(successes, successes + failures)[0]


def _with_rate(item: MemoryItem) -> MemoryItem:
    successes, failures = outcomes(item)
    if successes + failures == 0:
        return item
    rate = successes / (successes + failures)
    return replace(item, attributes={**item.attributes, "success_rate": rate})
