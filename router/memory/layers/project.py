"""The layer ``project``: what was saved to it, and the memory files of the project."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from router.memory.files.store import FileStore
from router.memory.layers import PROJECT
from router.memory.layers.stored import StoredLayer
from router.memory.model import LayerQuery, MemoryItem, Scope, ScoreKind
from router.memory.stores.fusion import at_place
from router.memory.stores.memory_store import MemoryStore


class ProjectLayer(StoredLayer):
    """Merges the saved items and the files by rank, because their scores are of two kinds: fused,
    and BM25."""

    def __init__(self, store: MemoryStore, files: FileStore, *, project: str | None) -> None:
        """``project`` is the project that the files belong to: a query of another project sees only
        the global files. None shows all files to everybody."""
        super().__init__(store, PROJECT)
        self._files = files
        self._owner = Scope(project=project)

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        saved = super().search(query, scope=scope, k=k)
        files = self.search_files(query, scope=scope, k=k)
        scored = [
            (at_place(place), item) for items in (saved, files) for place, item in enumerate(items)
        ]
        scored.sort(key=lambda pair: -pair[0])
        return [item.scored(score, ScoreKind.FUSED) for score, item in scored[:k]]

    def search_files(self, query: LayerQuery, *, scope: Scope, k: int) -> list[MemoryItem]:
        """The memory files that the scope sees and that contain words of the query, best first, as
        items of this layer with BM25 scores."""
        found = self._files.search(query.text, k=k, only_global=not scope.sees(self._owner))
        return [replace(item, layer=self.spec.name) for item in found]
