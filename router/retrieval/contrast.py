"""What tells the examples of one skill from those of the others.

The mean of a skill's examples says what they have in common. It does not say which of that its
neighbours have as well: "order" is in the examples of two skills, "cancel" only in those of one.
One step of softmax regression from the means learns that. The model gives an example of skill s,
with vector x, to each skill c with probability

    p_c = softmax over c of SHARPNESS cosine(x, m_c),

where x is left out of the mean of its own skill, because a new request is not part of any mean
either. What is wrong with these probabilities is taken up by a vector of each skill: it gains the
examples of its own that others would have had, and loses those of others that it would have had.
With z the mean of all examples and n_s how many examples s has,

    w_c = STEP * g_c * sum over x of ([s = c] - p_c) / n_s * (x - z),
    g_c = m / (m + FEW)  with m = max(n_c - 2, 0),

and of a request with vector q, skill c loses as much as w_c . (q - z) is below the largest one. So
no skill gains, and the score of the best skill does not change.

There is no schedule and no chance in it, and it takes milliseconds. Further steps with the hashed
words of ``learning.features``, and the fully fitted regression of ``learning.head``, gained about a
point more on catalogs of intents, and cost up to a hundred times as much. Least squares lost
everywhere, and discriminant analysis on skills with descriptions. What is learnt holds for a single
wish: of a request of several clauses the vector is a mean of theirs, unlike any example, and there
it did harm.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatT = TypeVar("FloatT", bound=np.floating[Any])

SHARPNESS: Final = 12.0
STEP: Final = 3.0
FEW: Final = 3
"""Few examples say little of what a skill is asked for, and two may be as unlike as a terse and a
long request; two more than this take half of the step. With a whole step, 180 real skills of four
examples in everyday words lost nine points of hit@1 on terse requests."""
MAX_PAIRS: Final = 1_000_000
"""Nothing is told apart where examples times skills that have some are more, as where 354 skills
have eight each: every edit makes all of it anew, some 20 ms at this bound."""


class Contrast:
    """What tells skills apart, one vector for each. Immutable."""

    def __init__(
        self,
        rows: NDArray[np.float32],
        count: NDArray[np.intp],
        means: NDArray[np.float32],
    ) -> None:
        """Compare the examples of some skills.

        Args:
            rows: vectors of the examples, unit length, those of one skill together.
            count: how many of them each skill has, at least one.
            means: of each skill's examples, unit length.
        """
        self._weights = means[:0]
        self._shift = np.zeros(0, dtype=np.float32)
        if len(means) < 2 or len(rows) * len(means) > MAX_PAIRS or rows.dtype != np.float32:
            return  # quantised rows are those of very many examples
        place = np.arange(len(rows))
        owner = np.repeat(np.arange(len(means)), count)
        others = np.add.reduceat(rows, np.cumsum(count) - count)[owner] - rows
        length = np.maximum(np.linalg.norm(others, axis=1), np.float32(1e-6))
        cosines = rows @ means.T
        cosines[place, owner] = np.einsum("ij,ij->i", others, rows) / length
        wrong = softmax(np.float32(SHARPNESS) * cosines)
        wrong[place, owner] -= 1
        # A lone example has nothing that it could be compared with.
        wrong *= np.where(count > 1, -STEP / count, 0).astype(np.float32)[owner, np.newaxis]
        middle = rows.mean(axis=0)
        more = np.maximum(count - 2, 0)
        known = (more / (more + FEW)).astype(np.float32)
        self._weights = known[:, np.newaxis] * (wrong.T @ (rows - middle))
        self._shift = self._weights @ middle

    def of(self, vectors: NDArray[np.float32], among: NDArray[np.intp]) -> NDArray[np.float32]:
        """What some skills, by their places, have to add for some requests, 0 or less; shape
        (requests, skills). 0 where nothing is told apart."""
        if not len(self._weights):
            return np.zeros((len(vectors), len(among)), dtype=np.float32)
        told = vectors @ self._weights.T - self._shift
        found: NDArray[np.float32] = told[:, among] - told.max(axis=1, keepdims=True)
        return found


def softmax(scores: NDArray[FloatT]) -> NDArray[FloatT]:
    """The scores as probabilities, over the last axis."""
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
