"""Which skills of very many are worth a full score.

Up to ``EXHAUSTIVE`` skills, all get a quick score. Of more than that only the best by words and the
nearest by vectors do; the nearest are searched roughly, in the few directions in which the vectors
differ most (their principal axes). In any catalog only the ``BY_SCORE`` skills with the best quick
scores are scored in full. ``benchmarks/catalog_size.py`` measures what it saves, and how often it
misses the best skill.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Positions = slice | NDArray[np.intp]
"""Positions of some skills in the arrays of all of them."""
EVERYTHING: Final = slice(None)

EXHAUSTIVE: Final = 12_000
"""Up to this many skills, all are candidates. Over 10,000, a request then takes .5 ms more, an edit
a third of its time, and the catalog an eighth less memory."""
BY_WORDS: Final = 1_000
BY_VECTORS: Final = 1_000
"""How many candidates each source gives."""
ROUGH_DIMENSIONS: Final = 64
SAMPLE: Final = 5_000
"""The axes are computed from this many vectors."""
BY_SCORE: Final = 64
"""This many skills are scored in full: with their examples one by one, and for each clause."""
STEP: Final = 32
"""One score in this many is looked at to estimate where the best ones begin."""


class RoughVectors:
    """Vectors in few dimensions. Immutable."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        sample = vectors[:: max(1, len(vectors) // SAMPLE)]
        _, axes = np.linalg.eigh(sample.T @ sample)
        self._axes = axes[:, -ROUGH_DIMENSIONS:].copy("K")  # a view would keep all of them
        self._rough: NDArray[np.float32] = vectors @ self._axes

    def nearest(self, vector: NDArray[np.float32]) -> NDArray[np.intp]:
        """Positions of about the ``BY_VECTORS`` vectors with the largest product."""
        return highest(self._rough @ (vector @ self._axes), BY_VECTORS)


def highest(scores: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """Positions of about the ``count`` highest scores; of positive ones only."""
    sample = scores[::STEP]
    rank = max(1, min(count // STEP, len(sample)))
    threshold = max(np.partition(sample, -rank)[-rank], np.finfo(scores.dtype).tiny)
    found = np.flatnonzero(scores >= threshold)
    if len(found) <= 2 * count:
        return found
    return found[np.argpartition(scores[found], -count)[-count:]]  # very many are equal
