"""The graph: entities and what they have to do with each other."""

from __future__ import annotations

from collections.abc import Sequence

from router.memory.layers.base import StoredLayer
from router.memory.model import LayerQuery, LayerSpec, MemoryItem, Scope
from router.memory.stores.memory_store import MemoryStore


class GraphLayer(StoredLayer):
    """Items about the entities that a query names and those at most ``depth`` (0 to 5) relations
    away from them, nearer first."""

    def __init__(self, store: MemoryStore, spec: LayerSpec, *, depth: int = 2) -> None:
        super().__init__(store, spec)
        self._depth = depth

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        """The scores of entities that were reached are above 0.16."""
        return self._store.related(
            self.spec.name,
            query.text,
            names=query.entities,
            scope=scope,
            k=k,
            depth=self._depth,
        )
