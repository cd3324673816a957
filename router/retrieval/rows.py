"""One vector for each skill, so kept that a change of one skill copies no table.

The rows lie in the order in which they came, in a table with spare room at its end, and a list says
which row is whose. A new vector takes a spare row, which no earlier generation reads. The row of a
skill that is gone stays until there is no room left, or the table is far too large; then a new
table is made of the rows in use.
"""

from __future__ import annotations

import threading
from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.documents import Edit

Positions = slice | NDArray[np.intp]
"""Positions of some skills in the arrays of all of them."""
EVERYTHING: Final = slice(None)

ROWS_PER_SPARE_ROW: Final = 16
"""A new table has one spare row for this many rows in use."""
MAX_UNUSED_ROWS: Final = 1_024
"""A table may have this many rows more than twice the number of skills."""
FIXED_POINT_ONE: Final = 2.0**40
"""Vectors are added as integers; 1.0 is this integer. So a sum that follows many changes is exactly
the sum that is made from nothing."""


class _Table:
    """Rows that several generations share. Those before ``used`` never change."""

    def __init__(self, size: int, width: int) -> None:
        """No rows yet, but room for ``size`` rows and some spare ones."""
        self.used = 0
        self.rows = np.empty((size + size // ROWS_PER_SPARE_ROW, width), dtype=np.float32)
        self._adding = threading.Lock()

    def add(self, rows: NDArray[np.float32]) -> int | None:
        """Put rows in; returns the number of the first one, or None where there is no room."""
        with self._adding:
            first, end = self.used, self.used + len(rows)
            if end > len(self.rows):
                return None
            if len(rows):
                self.rows[first:end] = rows
            self.used = end
            return first


class VectorRows:
    """The vectors of all skills, by position. Immutable: ``edited`` gives the next generation.

    Attributes:
        mean: of all vectors.
    """

    def __init__(self) -> None:
        """Of no skills."""
        self.mean: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._table = _Table(0, 0)
        self._used = 0
        self._row: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._sum: NDArray[np.int64] = np.zeros((), dtype=np.int64)

    def edited(self, edit: Edit, added: NDArray[np.float32], *, expected: int = 0) -> VectorRows:
        """Those after a step, with the unit vectors of the added skills; as many skills as
        ``expected`` will be there after all steps."""
        size = len(edit.kept)
        if not size:
            return VectorRows()
        after = copy(self)
        stays = edit.kept >= 0
        kept = edit.kept[stays]
        gone = self.of(np.delete(np.arange(len(self._row)), kept))
        if len(added):
            after._sum = after._sum + _sum(added)
        if len(gone):
            after._sum = after._sum - _sum(gone)
        after.mean = (after._sum / (size * FIXED_POINT_ONE)).astype(np.float32)
        after._row = np.empty(size, dtype=np.intp)
        after._row[stays] = self._row[kept]
        needed = max(size, expected)
        too_large = len(self._table.rows) > 2 * needed + MAX_UNUSED_ROWS
        first = None if too_large else self._table.add(added)
        if first is None:
            width = max(added.shape[1], self._table.rows.shape[1])
            after._table = _Table(needed, width)
            after._table.add(self.of(kept))
            after._table.add(added)
            after._row[stays] = np.arange(len(kept))
            first = len(kept)
        after._row[~stays] = np.arange(len(added)) + first
        after._used = after._table.used
        return after

    def of(self, positions: NDArray[np.intp]) -> NDArray[np.float32]:
        """The vectors of some skills."""
        return self._table.rows.take(self._row[positions], axis=0)

    def cosines(self, vector: NDArray[np.float32], among: Positions) -> NDArray[np.float32]:
        """Of the vectors of some skills to a unit vector."""
        if isinstance(among, slice):
            every: NDArray[np.float32] = self._table.rows[: self._used] @ vector
            return every.take(self._row[among])
        return self.of(among) @ vector


def _sum(rows: NDArray[np.float32]) -> NDArray[np.int64]:
    parts = np.rint(rows.astype(np.float64) * FIXED_POINT_ONE).astype(np.int64)
    return np.asarray(parts.sum(axis=0))
