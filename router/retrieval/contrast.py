"""What tells the examples of one skill from those of the others.

The mean of a skill's examples says what they have in common. It does not say which of that its
neighbours have as well: "order" is in the examples of two skills, "cancel" only in those of one.
A few steps of softmax regression from the means learn that. The model gives an example of skill s,
with vector x, to each skill c with probability

    p_c = softmax over c of SHARPNESS cosine(x, m_c) + w_c . (x - z),

where x is left out of the mean of its own skill, because a new request is not part of any mean
either. What is wrong with these probabilities is taken up by the vectors w_c, which are 0 at first:
a skill's vector gains the examples of its own that others would have, and loses those of others
that it would have. With z the mean of all examples and n_s how many examples s has, a step is

    w_c <- w_c + STEP u * sum over x of ([s = c] - p_c) / n_s * (x - z).

Then each vector is multiplied by m / (m + FEW), with m = max(n_c - 2, 0), and of a request with
vector q, skill c loses as much as w_c . (q - z) is below the largest one. So no skill gains, and
the score of the best skill does not change. (In p_c, w_c counts less beside the means than in the
score: an example that w_c was made of is nearer to it than any request.)

u says how far the catalog may trust that, and the examples themselves say it. With p the mean
probability that the first step gives to the right skill, so what the other examples know of one
that was left out, k skills that have examples, and e the harmonic mean of how many they have,
divided by the mean,

    u = p^2 / (p^2 + HALF^2) * k / (k + SKILLS) * e^2.

Where the examples of a skill are one wish in other words, as those of intents, p is .2 to .45, and
new requests gain by all of it. Where each example is another task, as for many skills with
instructions, it is below .1: what tells these examples apart is chance, and taken in full it cost
180 real skills up to 25 points of hit@1 on terse requests. Few skills have few neighbours, so their
examples are found easily, and what tells two of them apart is what a few examples happen to say.
And skills of many examples learn more than those of few, and would take requests from them: over
intents with one to ten examples it cost two points.

There is no chance in how it is computed, and it takes milliseconds. The hashed words of
``learning.features`` gained at most .4 points more, for three times the work. The fitted regression
of ``learning.head`` was worse than these steps, and costs a hundred times as much. Least squares
lost everywhere, and discriminant analysis on skills with descriptions. What is learnt holds for a
single wish: of a request of several clauses the vector is a mean of theirs, unlike any example, and
there it did harm.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatT = TypeVar("FloatT", bound=np.floating[Any])

SHARPNESS: Final = 12.0
STEP: Final = 28.0
STEPS: Final = 4
HALF: Final = 0.25
SKILLS: Final = 200
FEW: Final = 3
"""Few examples say little of what a skill is asked for, and two may be as unlike as a terse and a
long request; two more than this take half of what was learnt."""
MAX_PAIRS: Final = 1_000_000
"""How many pairs of an example and a skill that has some are looked at in all steps; with more of
them there are fewer and shorter steps, and none where 354 skills have eight each. Every edit makes
all of it anew, some 20 ms at this bound."""


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
        steps = min(STEPS, MAX_PAIRS // max(len(rows) * len(means), 1))
        # Quantised rows are those of very many examples, and a lone one has none to be compared to.
        if len(means) < 2 or not steps or rows.dtype != np.float32 or count.max() < 2:
            return
        place = np.arange(len(rows))
        owner = np.repeat(np.arange(len(means)), count)
        others = np.add.reduceat(rows, np.cumsum(count) - count)[owner] - rows
        length = np.maximum(np.linalg.norm(others, axis=1), np.float32(1e-6))
        cosines = rows @ means.T
        cosines[place, owner] = np.einsum("ij,ij->i", others, rows) / length
        known = np.float32(SHARPNESS) * cosines
        shares = softmax(known)
        compared = count[owner] > 1
        found = float(shares[place, owner][compared].mean())
        even = len(means) / (1 / count).sum() / count.mean()
        trust = found**2 / (found**2 + HALF**2) * len(means) / (len(means) + SKILLS) * even**2
        rate = STEP * trust * steps / STEPS
        part = np.where(compared, -rate / count[owner], 0).astype(np.float32)
        middle = rows.mean(axis=0)
        centred = rows - middle
        weights = np.zeros_like(means)
        for step in range(steps):
            if step:
                shares = softmax(known + centred @ weights.T)
            shares[place, owner] -= 1
            shares *= part[:, np.newaxis]
            weights += shares.T @ centred
        more = np.maximum(count - 2, 0)
        weights *= (more / (more + FEW)).astype(np.float32)[:, np.newaxis]
        self._weights = weights
        self._shift = weights @ middle

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
