"""The graph: entities and what they have to do with each other."""

from __future__ import annotations

from collections.abc import Sequence

from router.memory.layers.base import StoredLayer
from router.memory.model import LayerQuery, LayerSpec, MemoryItem, Scope
from router.memory.stores.graph import MAX_DEPTH
from router.memory.stores.memory_store import MemoryStore


class GraphLayer(StoredLayer):
    """Items about the entities that a query names and those related to them, nearer first.

    Args:
        depth: how many relations to follow, 0 to 5.
    """

    def __init__(self, store: MemoryStore, spec: LayerSpec, *, depth: int = 2) -> None:
        super().__init__(store, spec)
        if not 0 <= depth <= MAX_DEPTH:
            raise ValueError(f"depth: {depth} is not in 0..{MAX_DEPTH}")
        self._depth = depth

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        """As ``BlockingLayer`` says; scores are fused, those of entities reached above 0.16."""
        return self._store.related(
            self.spec.name,
            query.text,
            names=query.entities,
            scope=scope,
            k=k,
            depth=self._depth,
        )
