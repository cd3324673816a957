"""The layer ``project``: what was saved to it, and the memory files of the project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from router.memory.files.store import FileStore
from router.memory.layers import PROJECT
from router.memory.layers.stored import OwnedLayer
from router.memory.model import LayerQuery, MemoryItem, Scope, ScoreKind
from router.memory.stores.fusion import at_place
from router.memory.stores.memory_store import MemoryStore


class ProjectLayer(OwnedLayer):
    """Both in turn by rank, because their scores do not compare: one is fused, one BM25."""

    def __init__(self, store: MemoryStore, files: FileStore, *, project: str | None) -> None:
        """``project`` is whose files they are: who asks for another project sees the global ones
        only. None shows them to everybody."""
        super().__init__(store, PROJECT)
        self._files = files
        self._owner = Scope(project=project)

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        stored = super().search(query, scope=scope, k=k)
        filed = self.in_files(query, scope=scope, k=k)
        placed = [
            (at_place(place), item) for items in (stored, filed) for place, item in enumerate(items)
        ]
        placed.sort(key=lambda pair: -pair[0])
        return [item.scored(score, ScoreKind.FUSED) for score, item in placed[:k]]

    def in_files(self, query: LayerQuery, *, scope: Scope, k: int) -> list[MemoryItem]:
        """The memory files that the scope sees and that hold words of the query, best first, as
        items of this layer; scores are BM25."""
        found = self._files.search(query.text, k=k, only_global=not scope.sees(self._owner))
        return [replace(item, layer=self.spec.name) for item in found]
