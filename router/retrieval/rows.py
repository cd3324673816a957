"""One vector for each skill."""

from __future__ import annotations

from copy import copy
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.documents import Edit

Positions = slice | NDArray[np.intp]
"""Positions of some skills in the arrays of all of them."""
EVERYTHING: Final = slice(None)

FIXED_POINT_ONE: Final = 2.0**40
"""Vectors are added as integers; 1.0 is this integer. So a sum that follows many changes is exactly
the sum that is made from nothing."""


class VectorRows:
    """The vectors of all skills, by position. Immutable: ``edited`` gives the next generation.

    Attributes:
        mean: of all vectors.
    """

    def __init__(self) -> None:
        """Of no skills."""
        self.mean: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._rows: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._sum: NDArray[np.int64] = np.zeros((), dtype=np.int64)

    def edited(self, edit: Edit, added: NDArray[np.float32]) -> VectorRows:
        """Those after a step, with the unit vectors of the added skills."""
        size = len(edit.kept)
        if not size:
            return VectorRows()
        after = copy(self)
        gone = np.delete(self._rows, edit.kept[edit.kept >= 0], axis=0)
        if len(added):
            after._sum = after._sum + _sum(added)
        if len(gone):
            after._sum = after._sum - _sum(gone)
        after.mean = (after._sum / (size * FIXED_POINT_ONE)).astype(np.float32)
        after._rows = edit.carried(self._rows, added)
        return after

    def of(self, positions: NDArray[np.intp]) -> NDArray[np.float32]:
        """The vectors of some skills."""
        return self._rows.take(positions, axis=0)

    def cosines(self, vector: NDArray[np.float32], among: Positions) -> NDArray[np.float32]:
        """Of the vectors of some skills to a unit vector."""
        return self._rows[among] @ vector


def _sum(rows: NDArray[np.float32]) -> NDArray[np.int64]:
    parts = np.rint(rows.astype(np.float64) * FIXED_POINT_ONE).astype(np.int64)
    return np.asarray(parts.sum(axis=0))
