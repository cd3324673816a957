"""Which memories are asked for again and again: candidates for consolidation.

Counts are kept in SQLite, so they outlive the process. At most ``MAX_TRACKED`` memories are
counted; beyond that the one that was asked for longest ago is forgotten.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from router.database import Schema, opened
from router.errors import InvalidRequest, StoreError
from router.flight import in_thread
from router.memory.model import NOBODY, MemoryItem, Scope
from router.memory.stores.ownership import owns
from router.memory.stores.spaces import parse_scope, scope_key

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
    """Counts retrievals. What it is told has passed the scope filter already."""

    def __init__(
        self, path: Path, *, clock: Callable[[], float], max_tracked: int = MAX_TRACKED
    ) -> None:
        """Open or create the counts.

        Raises:
            StoreError: the file cannot be opened; the message names it.
        """
        self._path = path
        self._clock = clock
        self._max_tracked = max_tracked
        self._lock = threading.Lock()
        # A crash may lose the last counts, never the file.
        self._database = opened(path, _SCHEMA, durable=False)

    async def record(self, items: Sequence[MemoryItem]) -> None:
        """Count one retrieval of each item.

        Raises:
            StoreError: the counts cannot be written.
        """
        if items:
            await in_thread(lambda: self._record(items))

    def forget(self, owner: Scope) -> int:
        """Remove the counts of what belongs to an owner; how many there were.

        Raises:
            StoreError: the counts cannot be written.
        """
        with self._lock:
            try:
                stored = self._database.execute("SELECT DISTINCT scope FROM retrievals").fetchall()
                gone = [(key,) for (key,) in stored if owns(owner, parse_scope(key))]
                with self._database:
                    done = self._database.executemany(
                        "DELETE FROM retrievals WHERE scope = ?", gone
                    )
                self._database.execute("VACUUM")  # the owner's name is gone from the disk too
                self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return max(done.rowcount, 0)
            except sqlite3.Error as error:
                raise StoreError(self._path, f"cannot be written: {error}") from error

    def _record(self, items: Sequence[MemoryItem]) -> None:
        now = self._clock()
        rows = [(item.layer, scope_key(item.scope), item.id, now) for item in items]
        with self._lock:
            try:
                with self._database:
                    self._database.execute("BEGIN IMMEDIATE")
                    self._database.executemany(
                        "INSERT INTO retrievals VALUES (?, ?, ?, 1, ?)"
                        " ON CONFLICT (layer, scope, id) DO UPDATE"
                        " SET count = count + 1, last = excluded.last",
                        rows,
                    )
                    self._database.execute(
                        "DELETE FROM retrievals WHERE (layer, scope, id) IN (SELECT layer, scope,"
                        " id FROM retrievals ORDER BY last DESC, layer, scope, id"
                        " LIMIT -1 OFFSET ?)",
                        (self._max_tracked,),
                    )
            except sqlite3.Error as error:
                raise StoreError(self._path, f"cannot be written: {error}") from error

    def get_consolidation_candidates(
        self, min_retrievals: int, *, scope: Scope = NOBODY
    ) -> tuple[ConsolidationCandidate, ...]:
        """Memories that the scope sees and that were retrieved at least so often, most often first.

        Raises:
            InvalidRequest: ``min_retrievals`` is below 1.
            StoreError: the counts cannot be read.
        """
        if isinstance(min_retrievals, bool) or min_retrievals < 1:
            raise InvalidRequest(f"min_retrievals: {min_retrievals!r} is below 1")
        with self._lock:
            try:
                rows = self._database.execute(
                    "SELECT layer, id, count, scope FROM retrievals"
                    " WHERE count >= ? ORDER BY count DESC, last DESC, layer, id",
                    (min_retrievals,),
                ).fetchall()
            except sqlite3.Error as error:
                raise StoreError(self._path, f"cannot be read: {error}") from error
        return tuple(
            ConsolidationCandidate(layer, item_id, count)
            for layer, item_id, count, stored in rows
            if scope.sees(parse_scope(stored))
        )

    def clear(self) -> None:
        """Forget all counts."""
        with self._lock, self._database:
            self._database.execute("DELETE FROM retrievals")

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        with self._lock:
            self._database.close()
