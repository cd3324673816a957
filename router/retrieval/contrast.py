"""What tells the examples of one skill from those of the others.

The mean of a skill's examples says what they have in common. It does not say which of that its
neighbours have as well: "order" is in the examples of two skills, "cancel" only in those of one. A
few steps of softmax regression, which begin at the means, learn that. The model gives an example
with vector x to skill c with probability

    p_c = softmax over c of SHARPNESS cosine(x, m_c) + w_c . (x - z),

where m_c is the mean of c's examples and z that of all examples. x is left out of the mean of its
own skill, because a new request is not part of any mean either. The vectors w_c are 0 at first. A
step adds to each w_c the examples of c that the model gives to others, and subtracts the examples
of others that it gives to c:

    w_c <- w_c + STEP u * sum over x of ([s = c] - p_c) / n_s * (x - z),

where s is the skill of x, and n_s how many examples it has. Then each w_c is multiplied by m / (m +
FEW), with m = max(n_c - 2, 0). Of a request with vector q, skill c loses as much as w_c . (q - z)
is below the largest one. So no skill gains, and the score of the best one by this measure stays.

u is how far the steps go, and each catalog's own examples decide it. With p the mean probability
that the first step gives to the right skill, k skills that have examples, and e the harmonic mean
of how many they have, divided by the mean,

    u = p^2 / (p^2 + HALF^2) * k / (k + SKILLS) * e^2.

* p: where the examples of a skill are one wish in other words, as those of intents, p is .2 to .45
  and new requests gain. Where each example is another task, it is below .1, and what tells them
  apart is chance: full steps cost 180 real skills up to 25 points of hit@1 on terse requests.
* k: two of few skills are told apart by what a few examples happen to say.
* e: skills of many examples learn more than those of few and would take requests from them. Over
  intents with one to ten examples that cost two points.

Not for requests of several clauses: their vector is a mean, unlike any example, and they lost.
Tried and worse: the fitted regression of ``learning.head`` at a hundred times the cost; least
squares; discriminant analysis. The hashed words of ``learning.features`` gained at most .4 points
for three times the work.
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
"""The p at which half of a full step is taken."""
SKILLS: Final = 200
"""The number of skills at which half of a full step is taken."""
FEW: Final = 3
"""A skill with two more examples than this takes half of what was learnt: few examples say little
of what a skill is asked for."""
MAX_PAIRS: Final = 1_000_000
"""How many pairs of an example and a skill that has some are looked at in all steps: with more of
them there are fewer and shorter steps, and none where 354 skills have eight each. Every edit makes
all of it anew, which takes some 20 ms at this bound."""


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
