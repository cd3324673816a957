"""Search by meaning: exact over what is new or small, Chroma over what is large.

The database holds every vector. A space is searched exactly, as one matrix in memory, until it has
more than ``EXACT_ROWS`` rows; then its oldest rows move to a Chroma collection, some with every
save, and only what came after them (the tail) is searched exactly. Measured on two cores at 256
dimensions: exact search takes 0.03 ms at 1,000 rows, 0.25 ms at 10,000 and 17 ms at 100,000; Chroma
0.8, 1.3 and 1.9 ms, but 30 ms for each write and 50 ms for each new collection. Most scopes are one
session with a few dozen items, so most have no collection, and saving to them costs none of that.

Where there is no Chroma (a second process on the same folder, a fault) all of a space is its tail:
slower when it is large, and otherwise the same.
"""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from router.memory.stores.database import Connection, Database, marks
from router.memory.stores.item_vectors import ItemVectors
from router.memory.stores.spaces import Filter, Space, newest_rows
from router.memory.stores.vector_collections import VectorCollections
from router.retrieval.encoders import Encoder

EXACT_ROWS: Final = 4_096
FILTERED_ROWS: Final = 1_000
"""Items that pass a filter are compared by meaning up to so many, the newest of them."""
MOVED_ROWS: Final = 64
"""Rows that a save moves to Chroma at least, when it moves any; about 1.5 ms each."""
TAIL_BYTES: Final = 256 * 2**20
"""Memory for tails; the least recently searched are read again from the database."""


@dataclass(frozen=True, slots=True)
class _Tail:
    """The rows of a space after a mark: numbers, ascending, and vectors of shape (rows, d)."""

    rows: NDArray[np.int64]
    matrix: NDArray[np.float32]
    written: int
    mark: int

    @property
    def size(self) -> int:
        return self.matrix.nbytes + 1


class LocalVectors(ItemVectors):
    """The vectors of a database on this machine; see the module's text."""

    def __init__(
        self, db: Database, directory: Path, encoder: Encoder, *, exact_rows: int = EXACT_ROWS
    ) -> None:
        super().__init__(db, encoder)
        self._directory = directory
        self._exact_rows = exact_rows
        self._collections: VectorCollections | None = None
        self._unopened = True
        self._growing = threading.Lock()
        self._tails: LRUCache[int, _Tail] = LRUCache(TAIL_BYTES, getsizeof=lambda tail: tail.size)
        self._tails_lock = threading.Lock()

    def open(self) -> None:
        """Have vectors of this encoder for all items, and in Chroma's collections exactly the rows
        that the database holds."""
        super().open()
        if (self._directory / "chroma").exists():
            self._open_collections()
            self._reconcile()

    def complete(self) -> None:
        if self._incomplete:
            super().complete()
            self._reconcile()  # an item that was encoded late may lie before Chroma's mark

    def follow(self, added: Counter[int], removed: Mapping[int, Sequence[int]]) -> None:
        for space, rows in removed.items():
            if self._collections is not None and rows:
                self._collections.remove(space, rows)
        for space, count in added.items():
            self._grow(space, count)

    def _grow(self, space: int, written: int) -> None:
        """Move the oldest rows of a space that has too long a tail to Chroma.

        Args:
            written: how many rows have just been written; at most twice as many are moved, so that
                a save takes in proportion to what it saves.
        """
        left = max(MOVED_ROWS, 2 * written)
        with self._growing:
            while left > 0:
                mark = self._mark(space)
                with self._db.reading() as db:
                    (count,) = db.execute(
                        "SELECT count(*) FROM vectors WHERE space = ? AND row > ?", (space, mark)
                    ).fetchone()
                    if count <= self._exact_rows:
                        return
                    batch = _stored(db, space, after=mark, limit=MOVED_ROWS)
                self._open_collections()
                if self._collections is None:
                    return
                self._collections.add(space, batch)
                left -= len(batch)

    def discard(self, spaces: Sequence[int]) -> None:
        """Forget spaces for good. Chroma keeps a log of all that it was given, so if it held one of
        them its folder goes as a whole; it comes back with the saves."""
        with self._tails_lock:
            for space in spaces:
                self._tails.pop(space, None)
        with self._growing:
            held = self._collections
            if held is None or set(spaces).isdisjoint(held.spaces):
                return
            self._collections, self._unopened = None, True
            held.close()
            shutil.rmtree(self._directory / "chroma")

    def close(self) -> None:
        """Close Chroma's files."""
        with self._growing:
            self._unopened = False
            collections, self._collections = self._collections, None
        if collections is not None:
            collections.close()

    def _mark(self, space: int) -> int:
        return 0 if self._collections is None else self._collections.mark(space)

    def _stored(self, vector: NDArray[np.float32]) -> bytes:
        return vector.tobytes()

    def _nearest(
        self,
        db: Connection,
        spaces: Sequence[Space],
        vector: NDArray[np.float32],
        limit: int,
        where: Filter,
    ) -> dict[int, float]:
        """Of a filter that leaves more than ``FILTERED_ROWS`` rows, the newest are compared."""
        search = self._nearest_chosen if where else self._nearest_of_all
        found: dict[int, float] = {}
        for space in spaces:
            found |= search(db, space, vector, limit, where)
        return found

    def _open_collections(self) -> None:
        if self._unopened:
            self._unopened = False
            self._collections = VectorCollections.open(
                self._directory, identity=f"{self._encoder.identity} {self._db.identity}"
            )

    def _reconcile(self) -> None:
        collections = self._collections
        if collections is None:
            return
        with self._db.reading() as db:
            for space in collections.spaces:
                mark = collections.mark(space)
                (count,) = db.execute(
                    "SELECT count(*) FROM vectors WHERE space = ? AND row <= ?", (space, mark)
                ).fetchone()
                if count == 0:
                    collections.drop(space)
                    continue
                collections.reconcile(
                    space,
                    count,
                    lambda space, mark: _stored(db, space, after=0, until=mark),
                )

    def _nearest_of_all(
        self,
        db: Connection,
        space: Space,
        vector: NDArray[np.float32],
        limit: int,
        _: Filter,
    ) -> dict[int, float]:
        mark = self._mark(space.id)
        collections = self._collections
        found: dict[int, float] = {}
        if mark and collections is not None:
            indexed = collections.nearest(space.id, vector, limit=limit)
            if indexed is None:  # lost just now: all of the space is its tail
                mark = 0
            else:
                found |= indexed
        tail = self._tail(db, space, mark)
        return found | _best(tail.rows, tail.matrix, vector, limit)

    def _nearest_chosen(
        self,
        db: Connection,
        space: Space,
        vector: NDArray[np.float32],
        limit: int,
        where: Filter,
    ) -> dict[int, float]:
        """Exactly, because a filter costs more inside Chroma than the search itself."""
        chosen = np.asarray(newest_rows(db, [space], where, FILTERED_ROWS), dtype=np.int64)
        tail = self._tail(db, space, self._mark(space.id))
        late = np.flatnonzero(np.isin(tail.rows, chosen))
        early = chosen[chosen <= tail.mark].tolist()
        found = _best(*_read(db, early), vector, limit) if early else {}
        return found | _best(tail.rows, tail.matrix, vector, limit, among=late)

    def _tail(self, db: Connection, space: Space, mark: int) -> _Tail:
        with self._tails_lock:
            known = self._tails.get(space.id)
        if known is None or known.mark != mark or known.written < space.removed:
            rows, matrix = _arrays(_stored(db, space.id, after=mark))
        elif known.written >= space.written:
            return known
        else:
            last = int(known.rows[-1]) if len(known.rows) else mark
            rows, matrix = _arrays(_stored(db, space.id, after=last))
            if len(known.rows):
                rows = np.concatenate([known.rows, rows])
                matrix = np.concatenate([known.matrix, matrix]) if len(matrix) else known.matrix
        tail = _Tail(rows, matrix, space.written, mark)
        with self._tails_lock:
            if tail.size <= TAIL_BYTES:
                self._tails[space.id] = tail
        return tail


def _stored(
    db: Connection,
    space: int,
    *,
    after: int,
    until: int = 2**62,
    limit: int = -1,
) -> dict[int, NDArray[np.float32]]:
    found = db.execute(
        "SELECT row, vector FROM vectors WHERE space = ? AND row > ? AND row <= ? "
        "ORDER BY row LIMIT ?",
        (space, after, until, limit),
    )
    return {row: np.frombuffer(vector, dtype=np.float32) for row, vector in found}


def _read(db: Connection, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    found = db.execute(
        f"SELECT row, vector FROM vectors WHERE row IN ({marks(len(rows))})",  # noqa: S608
        rows,
    )
    return _arrays({row: np.frombuffer(vector, dtype=np.float32) for row, vector in found})


def _arrays(
    vectors: Mapping[int, NDArray[np.float32]],
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    rows = np.fromiter(vectors, dtype=np.int64, count=len(vectors))
    if not vectors:
        return rows, np.zeros((0, 0), dtype=np.float32)
    return rows, np.stack(list(vectors.values()))


def _best(
    rows: NDArray[np.int64],
    matrix: NDArray[np.float32],
    vector: NDArray[np.float32],
    limit: int,
    *,
    among: NDArray[np.intp] | None = None,
) -> dict[int, float]:
    """The rows nearest to a vector, of all or of the given places."""
    if len(rows) == 0:
        return {}
    similarity = matrix @ vector  # all of them: that is faster than copying some
    if among is not None:
        rows, similarity = rows[among], similarity[among]
    if len(rows) > limit:
        best = np.argpartition(-similarity, limit - 1)[:limit]
        rows, similarity = rows[best], similarity[best]
    return dict(zip(rows.tolist(), similarity.tolist(), strict=True))
