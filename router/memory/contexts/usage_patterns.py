"""Counts how often contexts use each memory, to find candidates for consolidation.

The counts are stored in SQLite. At most ``MAX_TRACKED`` memories are counted; beyond that, the one
that was used longest ago is dropped. Memory files have the empty scope as items, but their counts
are those of the project that the files belong to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from router.errors import InvalidRequest
from router.memory.files.names import GLOBAL
from router.memory.layers import PROJECT
from router.memory.model import NOBODY, MemoryItem, Scope
from router.memory.stores.spaces import parse_scope, scope_key
from router.storage.database import Schema, SharedConnection

MAX_TRACKED: Final = 10_000
_SCHEMA: Final = Schema(
    (
        """
CREATE TABLE retrievals (
    layer TEXT NOT NULL, scope TEXT NOT NULL, id TEXT NOT NULL,
    count INTEGER NOT NULL, last REAL NOT NULL,
    PRIMARY KEY (layer, scope, id)
) WITHOUT ROWID;
CREATE INDEX by_last ON retrievals (last);
""",
    )
)


@dataclass(frozen=True, slots=True)
class ConsolidationCandidate:
    """A memory that is retrieved often: its layer and id, and how often."""

    layer: str
    id: str
    retrievals: int


class QueryPatternTracker:
    """Counts retrievals. The caller has checked that the scope sees the items. All methods block.

    Every method raises StoreError if the file cannot be used.
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], float], files_owner: Scope = NOBODY
    ) -> None:
        """``files_owner`` is the owner of the memory files that are not global."""
        # A crash may lose the last counts, never the file.
        self._file = SharedConnection(path, _SCHEMA, durable=False, may_be_read_only=True)
        self._clock = clock
        self._files_owner = files_owner
        self.close = self._file.close

    def forget(self, owner: Scope) -> int:
        """Remove the counts of an owner's memories; returns how many there were."""
        with self._file.transaction() as db:
            stored = db.execute("SELECT layer, scope, id FROM retrievals").fetchall()
            gone = [row for row in stored if owner.owns(self._scope_of(*row))]
            done = db.executemany(
                "DELETE FROM retrievals WHERE (layer, scope, id) = (?, ?, ?)", gone
            )
        with self._file.turn() as db:  # so that the owner's name is gone from the disk too
            db.execute("VACUUM")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return max(done.rowcount, 0)

    def record(self, items: Sequence[MemoryItem]) -> None:
        """Count one retrieval of each item."""
        now = self._clock()
        rows = [(item.layer, scope_key(item.scope), item.id, now) for item in items]
        with self._file.transaction() as db:
            db.executemany(
                "INSERT INTO retrievals VALUES (?, ?, ?, 1, ?) ON CONFLICT (layer, scope, id) "
                "DO UPDATE SET count = count + 1, last = excluded.last",
                rows,
            )
            db.execute(
                "DELETE FROM retrievals WHERE (layer, scope, id) IN (SELECT layer, scope, id "
                "FROM retrievals ORDER BY last DESC, layer, scope, id LIMIT -1 OFFSET ?)",
                (MAX_TRACKED,),
            )

    def get_consolidation_candidates(
        self, min_retrievals: int, *, scope: Scope = NOBODY
    ) -> tuple[ConsolidationCandidate, ...]:
        """Memories that the scope sees and that were retrieved so often, most often first."""
        if isinstance(min_retrievals, bool) or min_retrievals < 1:
            raise InvalidRequest(f"min_retrievals: {min_retrievals!r} is below 1")
        with self._file.turn() as db:
            rows = db.execute(
                "SELECT layer, id, count, scope FROM retrievals"
                " WHERE count >= ? ORDER BY count DESC, last DESC, layer, id",
                (min_retrievals,),
            ).fetchall()
        return tuple(
            ConsolidationCandidate(layer, item_id, count)
            for layer, item_id, count, stored in rows
            if scope.sees(self._scope_of(layer, stored, item_id))
        )

    def _scope_of(self, layer: str, stored: str, item_id: str) -> Scope:
        """The scope of a counted memory. Only files have an empty scope in the layer ``project``,
        because its saved items need a project."""
        scope = parse_scope(stored)
        is_file = layer == PROJECT.name and scope == NOBODY
        return self._files_owner if is_file and not item_id.startswith(f"{GLOBAL}/") else scope
