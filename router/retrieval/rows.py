"""One vector for each skill."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.documents import Edit

Positions = slice | NDArray[np.intp]
"""Positions of some skills in the arrays of all of them."""
EVERYTHING: Final = slice(None)


class VectorRows:
    """The vectors of all skills, by position. Immutable: ``edited`` gives the next generation.

    Attributes:
        mean: of all vectors.
    """

    def __init__(self) -> None:
        """Of no skills."""
        self.mean: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._rows: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)

    def edited(self, edit: Edit, added: NDArray[np.float32]) -> VectorRows:
        """Those after a step, with the unit vectors of the added skills."""
        after = VectorRows()
        if not len(edit.kept):
            return after
        after._rows = edit.carried(self._rows, added)
        after.mean = after._rows.mean(axis=0, dtype=np.float64).astype(np.float32)
        return after

    def of(self, positions: NDArray[np.intp]) -> NDArray[np.float32]:
        """The vectors of some skills."""
        return self._rows.take(positions, axis=0)

    def cosines(self, vector: NDArray[np.float32], among: Positions) -> NDArray[np.float32]:
        """Of the vectors of some skills to a unit vector."""
        return self._rows[among] @ vector
