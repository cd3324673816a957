"""What the built-in layers share: each asks the one store for its own items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from router.memory.model import LayerQuery, LayerSpec, MemoryItem, Scope, ScoreKind
from router.memory.query.listing import asks_for_kind
from router.memory.stores.fusion import at_place
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.spaces import EVERYTHING, Filter

CANDIDATES_AN_ITEM: Final = 2
"""Items to look at for one that is wanted, before a layer reorders them."""


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


def search_words(query: LayerQuery) -> str:
    return " ".join(query.terms) or query.text


def reordered(
    items: Iterable[MemoryItem], worth: Callable[[float, MemoryItem], float], k: int
) -> list[MemoryItem]:
    """The best ``k`` by a score of the layer's own, made of the store's and the item; of equals the
    newer item comes first."""
    scored = [item.scored(worth(item.score or 0.0, item), ScoreKind.FUSED) for item in items]
    return sorted(scored, key=lambda item: (item.score, item.created), reverse=True)[:k]


def recency_shares(items: Sequence[MemoryItem]) -> dict[tuple[Scope, str], float]:
    """Scope and id to what the age of an item is worth, on the scale of fused scores: as much as a
    first place for the newest, evenly less for each older one."""
    newest = sorted(items, key=lambda item: item.created, reverse=True)
    return {
        (item.scope, item.id): at_place(0) * (1 - place / len(newest))
        for place, item in enumerate(newest)
    }
