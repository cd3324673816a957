"""Search by meaning for SQLite: exact, over one matrix in memory for each space.

The database contains every vector. The matrices are loaded before the first search, because that
takes longer than the deadline of a layer. They follow the writes of all processes: new rows are
added, and removed ones are taken out. Comparing a query with 100,000 vectors of 256 dimensions
takes 17 ms on one core. Chroma's approximate index took 2 ms on a quiet machine, but 55 ms among
other work, where this took 18 for 30,000 rows.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from router.memory.model import Scope
from router.memory.stores.database import Connection, Database, Rows, batched, placeholders
from router.memory.stores.item_vectors import ItemVectors
from router.memory.stores.spaces import Filter, Space, newest_rows, owned_spaces
from router.memory.texts.questions import MAX_QUESTIONS
from router.retrieval.encoders import Encoder

FILTERED_ROWS: Final = 1_000
"""Of the items that pass a filter, only the newest are compared by meaning, so many at most."""
MATRIX_BYTES: Final = 512 * 2**20
"""Memory for matrices. The least recently used are dropped, and read again when they are needed."""


@dataclass(frozen=True, slots=True)
class _Matrix:
    """The vectors of a space at one generation, of shape (n, d), and the row number of each."""

    rows: NDArray[np.int64]
    vectors: NDArray[np.float32]
    written: int = 0

    @property
    def size(self) -> int:
        return self.vectors.nbytes + 1

    def with_rows(self, further: _Matrix, written: int) -> _Matrix:
        """This and further rows, as of a generation."""
        return _Matrix(
            np.concatenate([self.rows, further.rows]),
            np.concatenate([self.vectors, further.vectors]),
            written,
        )


class SqliteVectors(ItemVectors):
    """The vectors of a ``SqliteDatabase``."""

    WIDTH = "length(vector) / 4"

    def __init__(self, db: Database, encoder: Encoder) -> None:
        super().__init__(db, encoder)
        self._matrices: LRUCache[int, _Matrix] = LRUCache(
            MATRIX_BYTES, getsizeof=lambda matrix: matrix.size
        )
        self._lock = threading.Lock()
        self._first_search = threading.Lock()
        self._is_prepared = False

    def prepare(self) -> None:
        super().prepare()
        with self._first_search:
            if self._is_prepared:
                return
            with self._db.reading() as db:
                latest = f"SELECT {self.WIDTH} FROM vectors ORDER BY row DESC LIMIT 1"  # noqa: S608
                (width,) = db.execute(latest).fetchone() or (0,)
                for space in owned_spaces(db, Scope()):
                    if self._matrices.currsize < MATRIX_BYTES // 2:  # leave room for new rows
                        self._matrix(db, space, width)
            self._is_prepared = True

    def discard(self, spaces: Sequence[int]) -> None:
        """Forget the matrices of some spaces."""
        with self._lock:
            for space in spaces:
                self._matrices.pop(space, None)

    def _stored(self, vector: NDArray[np.float32]) -> bytes:
        return vector.tobytes()

    def _read(self, stored: bytes) -> NDArray[np.float32]:
        return np.frombuffer(stored, dtype=np.float32)

    def _nearest(
        self,
        db: Connection,
        spaces: Sequence[Space],
        vector: NDArray[np.float32],
        limit: int,
        where: Filter,
    ) -> dict[int, float]:
        """If more than ``FILTERED_ROWS`` rows pass the filter, only the newest are compared."""
        found: dict[int, float] = {}
        for space in spaces:
            matrix = self._matrix(db, space, len(vector))
            if not len(matrix.rows):
                continue
            # ``vecdot`` uses one thread: threads of BLAS wait for each other on busy cores.
            rows, similarity = matrix.rows, np.vecdot(matrix.vectors, vector)
            if where:
                chosen = np.isin(rows, newest_rows(db, [space], where, FILTERED_ROWS))
                rows, similarity = rows[chosen], similarity[chosen]
            # An item has at most 1 + MAX_QUESTIONS vectors, so these belong to at least `limit`
            # items.
            some = limit * (1 + MAX_QUESTIONS)
            if len(rows) > some:
                best = np.argpartition(-similarity, some - 1)[:some]
                rows, similarity = rows[best], similarity[best]
            # A dictionary keeps the last value of a key, so each row keeps its highest similarity.
            ascending = np.argsort(similarity)
            found |= zip(rows[ascending].tolist(), similarity[ascending].tolist(), strict=True)
        return found

    def _matrix(self, db: Connection, space: Space, width: int) -> _Matrix:
        with self._lock:
            known = self._matrices.get(space.id)
        if known is None or known.vectors.shape[1] != width:
            known = _matrix_of((), width)
        elif known.written >= space.written:
            return known
        matrix = _current(db, space, known)
        with self._lock:
            if matrix.size <= MATRIX_BYTES:
                self._matrices[space.id] = matrix
        return matrix


def _current(db: Connection, space: Space, known: _Matrix) -> _Matrix:
    """The matrix of a space as it is now, made from an earlier one."""
    width = known.vectors.shape[1]
    of_width = f"space = ? AND {SqliteVectors.WIDTH} = ?"
    if known.written >= space.removed or not len(known.rows):  # there can only be new rows
        added = db.execute(
            f"SELECT row, vector FROM vectors WHERE {of_width} AND row > ? ORDER BY row",  # noqa: S608
            (space.id, width, int(known.rows.max(initial=0))),
        )
        return known.with_rows(_matrix_of(added, width), space.written)
    # Rows of any width: the index alone can answer that, without reading the vectors.
    listed = db.execute("SELECT row FROM vectors WHERE space = ?", (space.id,)).fetchall()
    present = np.array(listed, dtype=np.int64).reshape(-1)
    kept = np.isin(known.rows, present)
    matrix = _Matrix(known.rows[kept], known.vectors[kept], space.written)
    lacking: list[int] = np.setdiff1d(present, known.rows).tolist()
    for rows in batched(lacking):
        found = db.execute(
            f"SELECT row, vector FROM vectors WHERE {of_width} "  # noqa: S608
            f"AND row IN ({placeholders(len(rows))})",
            (space.id, width, *rows),
        )
        matrix = matrix.with_rows(_matrix_of(found, width), space.written)
    return matrix


def _matrix_of(found: Rows | tuple[()], width: int) -> _Matrix:
    pairs = list(found)
    vectors = np.frombuffer(b"".join(vector for _, vector in pairs), dtype=np.float32)
    return _Matrix(
        np.array([row for row, _ in pairs], dtype=np.int64), vectors.reshape(len(pairs), width)
    )
