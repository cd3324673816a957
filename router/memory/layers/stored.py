"""Layers that ask the store by words, meaning and time; each asks for its own items.

Tasks, counts and the memory files of a project need more: see ``prospective``, ``meta`` and
``project``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from router.memory.model import LayerQuery, LayerSpec, MemoryItem, Scope, ScoreKind
from router.memory.query.listing import EVENT_STEMS, asks_for_kind, names_no_subject
from router.memory.stores.fusion import at_place
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.spaces import EVERYTHING, Filter
from router.numeric import wilson
from router.text import stem

CANDIDATES_AN_ITEM: Final = 2
"""Items to look at for one that is wanted, before a layer reorders them."""
PROVEN: Final = 0.1
"""How much more a procedure counts that surely works than one that surely does not."""
MAX_OUTCOMES: Final = 1_000_000_000
"""Outcomes of a kind that count; an attribute may be an integer that no float can hold."""


class StoredLayer:
    """A layer that answers by words and meaning, and lists its newest to who asks for all of it."""

    def __init__(self, store: MemoryStore, spec: LayerSpec) -> None:
        self._store = store
        self._spec = spec

    @property
    def spec(self) -> LayerSpec:
        return self._spec

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        """As ``BlockingLayer`` says; scores are fused. So it is in every layer below."""
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
        """By words (None: those of the query) and meaning more than the ``k`` best, to reorder.
        ``where`` says what may answer at all; ``prefer`` what comes first among it, as by a first
        place in a further ranking."""
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


class OwnedLayer(StoredLayer):
    """A layer whose items belong to one user, or one project; who asks for none finds none."""

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        if getattr(scope, self.spec.name) is None:
            return ()
        return super().search(query, scope=scope, k=k)


class TimedLayer(StoredLayer):
    """Session and episodic memory.

    A query that says nothing of what it is about ("what did we do last week?") asks for the newest
    of its period. One with a subject prefers its period: what was created then comes first, and
    the rest follows, because people remember dates wrongly.

    Args:
        recency: weight of being new beside words and meaning together. In a conversation
            the latest matters; elsewhere it only decides between near-equals.
    """

    def __init__(self, store: MemoryStore, spec: LayerSpec, *, recency: float) -> None:
        super().__init__(store, spec)
        self._recency = recency

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        where = Filter(period=query.period)
        if all(stem(term) in EVENT_STEMS for term in query.terms):
            return self._store.newest(self.spec.name, scope=scope, k=k, where=where)
        found = self._candidates(query, scope=scope, k=k, prefer=where)
        # The newest gains as much as a first place in a ranking, each older one evenly less.
        newest = sorted(found, key=lambda item: item.created, reverse=True)
        gains = {
            (item.scope, item.id): self._recency * at_place(0) * (1 - place / len(newest))
            for place, item in enumerate(newest)
        }
        return reordered(found, lambda score, item: score + gains[item.scope, item.id], k)


class GovernanceLayer(StoredLayer):
    """Records and rules. The words of the attributes ``actor``, ``action`` and ``subject`` are
    found as those of the content are.

    A query of a period alone lists what was recorded then; otherwise a period only prefers it: a
    rule about Fridays was not made on one.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        where = Filter(period=query.period)
        if names_no_subject(query) or asks_for_kind(query) == self.spec.name:
            return self._store.newest(self.spec.name, scope=scope, k=k, where=where)
        return self._candidates(query, scope=scope, k=k, prefer=where)[:k]


class GraphLayer(StoredLayer):
    """Items about the entities that a query names and those a few relations away, nearer first."""

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        """The scores of entities that were reached are above 0.32."""
        return self._store.related(self.spec.name, query.text, scope=scope, k=k)


class ProceduralLayer(StoredLayer):
    """Procedures by words and meaning; of near-equals, the one that has proved itself.

    Attributes of its items: ``successes`` and ``failures``, how often it
    worked and how often not. An answer carries ``success_rate`` as well, once there is an outcome.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        found = self._candidates(query, scope=scope, k=k)
        best = reordered(found, lambda score, item: score * (1 + PROVEN * proven(item)), k)
        return [_with_rate(item) for item in best]


def search_words(query: LayerQuery) -> str:
    return " ".join(query.terms) or query.text


def reordered(
    items: Iterable[MemoryItem], worth: Callable[[float, MemoryItem], float], k: int
) -> list[MemoryItem]:
    """The best ``k`` by a score of the layer's own, made of the store's and the item; of equals the
    newer item comes first."""
    scored = [item.scored(worth(item.score or 0.0, item), ScoreKind.FUSED) for item in items]
    return sorted(scored, key=lambda item: (item.score, item.created), reverse=True)[:k]


def outcomes(item: MemoryItem) -> tuple[int, int]:
    """How often it worked, and how often it did not."""
    counts = (item.attributes.get(name) for name in ("successes", "failures"))
    successes, failures = (
        min(max(n, 0), MAX_OUTCOMES) if isinstance(n, int) else 0 for n in counts
    )
    return successes, failures


def proven(item: MemoryItem) -> float:
    """The lower bound of its success rate at 95%, in [0, 1); 0 without outcomes."""
    successes, failures = outcomes(item)
    return wilson(successes, successes + failures)[0]


def _with_rate(item: MemoryItem) -> MemoryItem:
    successes, failures = outcomes(item)
    if successes + failures == 0:
        return item
    rate = successes / (successes + failures)
    return replace(item, attributes={**item.attributes, "success_rate": rate})
