"""The graph: entities and what they have to do with each other."""

from __future__ import annotations

from collections.abc import Sequence

from router.memory.layers.base import StoredLayer
from router.memory.model import LayerQuery, MemoryItem, Scope


class GraphLayer(StoredLayer):
    """Items about the entities that a query names and those a few relations away, nearer first."""

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        """The scores of entities that were reached are above 0.32."""
        return self._store.related(self.spec.name, query.text, scope=scope, k=k)
