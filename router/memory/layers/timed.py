"""Layers of what happened: answered by time and words."""

from __future__ import annotations

from collections.abc import Sequence

from router.memory.layers.base import StoredLayer, recency_shares, reordered
from router.memory.model import LayerQuery, LayerSpec, MemoryItem, Scope
from router.memory.query.listing import EVENT_STEMS
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.spaces import Filter
from router.text import stem


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
        recency = recency_shares(found)
        return reordered(
            found, lambda score, item: score + self._recency * recency[item.scope, item.id], k
        )
