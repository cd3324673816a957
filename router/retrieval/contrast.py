"""Adjusts the nearness of examples by what distinguishes a skill from similar ones.

The mean of a skill's examples represents what they have in common. It does not represent what the
examples of similar skills do not have: "order" is in the examples of two skills, "cancel" only in
those of one. A few steps of softmax regression that start from the means learn this. The model
assigns an example with vector x to skill c with probability

    p_c = softmax over c of SHARPNESS cosine(x, m_c) + w_c . (x - z),

where m_c is the mean of c's examples and z the mean of all examples. x is left out of the mean of
its own skill, because a new request is not part of any mean either. The vectors w_c start at 0. A
step adds to each w_c the examples of c that the model assigns to other skills, and subtracts the
examples of other skills that it assigns to c:

    w_c <- w_c + STEP u * sum over x of ([s = c] - p_c) / n_s * (x - z),

where s is the skill of x, and n_s the number of its examples. At the end each w_c is multiplied by
m / (m + SHRINKAGE), with m = max(n_c - 2, 0). The adjustment for a request with vector q is
w_c . (q - z), minus the largest such value of all skills. So it is 0 for one skill and negative for
the others.

u is the length of the steps, which each catalog's own examples decide. With p the mean probability
that the model at first gives to the right skill, k the number of skills with examples, and e the
harmonic mean of their numbers of examples, divided by the arithmetic mean,

    u = p^2 / (p^2 + HALF_STEP_PROBABILITY^2) * k / (k + HALF_STEP_SKILLS) * e^2.

* p: where a skill's examples are one request in different words, as those of intents, p is .2 to
  .45, and the steps improve rankings. Where each example is a different task, p is below .1, and
  the steps learn chance: full steps cost 180 real skills up to 25 points of hit@1 on terse
  requests.
* k: between few skills, the steps learn accidental words of a few examples.
* e: skills with many examples learn more than those with few, and would take requests from them.
  Over intents with one to ten examples this cost two points.

It is not used for requests of several clauses. Their vector is a mean, which is unlike any example,
and their rankings got worse. Tried and worse: the fitted regression of ``learning.head``, at a
hundred times the cost; least squares; discriminant analysis. The hashed words of
``learning.features`` gained at most .4 points for three times the work.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatT = TypeVar("FloatT", bound=np.floating[Any])

SHARPNESS: Final = 12.0
STEP: Final = 28.0
STEPS: Final = 4
HALF_STEP_PROBABILITY: Final = 0.25
"""The p at which the steps are half as long."""
HALF_STEP_SKILLS: Final = 200
"""The number of skills at which the steps are half as long."""
SHRINKAGE: Final = 3
"""With two more examples than this, a skill's vector w is halved: a few examples represent little
of what the skill is asked for."""
MAX_PAIRS: Final = 1_000_000
"""The limit on the work, which is done anew with each edit: number of examples times number of
skills with examples times steps. In larger catalogs there are fewer and shorter steps, and none
from 354 skills with eight examples each. At this limit it takes some 20 ms."""


class Contrast:
    """The learnt vectors w, one for each skill with examples. Immutable."""

    def __init__(
        self,
        rows: NDArray[np.float32],
        count: NDArray[np.intp],
        means: NDArray[np.float32],
    ) -> None:
        """Learn from the examples of some skills.

        Args:
            rows: vectors of the examples, of unit length, grouped by skill.
            count: the number of examples of each skill, at least one.
            means: the mean of each skill's examples, scaled to unit length.
        """
        self._weights = means[:0]
        self._shift = np.zeros(0, dtype=np.float32)
        steps = min(STEPS, MAX_PAIRS // max(len(rows) * len(means), 1))
        # With quantised rows there are too many examples. A skill's only example cannot be left out
        # of the mean, so skills with one example each give nothing to learn from.
        if len(means) < 2 or not steps or rows.dtype != np.float32 or count.max() < 2:
            return
        place = np.arange(len(rows))
        owner = np.repeat(np.arange(len(means)), count)
        others = np.add.reduceat(rows, np.cumsum(count) - count)[owner] - rows
        length = np.maximum(np.linalg.norm(others, axis=1), np.float32(1e-6))
        cosines = rows @ means.T
        cosines[place, owner] = np.einsum("ij,ij->i", others, rows) / length
        prior_scores = np.float32(SHARPNESS) * cosines
        shares = softmax(prior_scores)
        compared = count[owner] > 1
        mean_probability = float(shares[place, owner][compared].mean())
        even = len(means) / (1 / count).sum() / count.mean()
        by_probability = mean_probability**2 / (mean_probability**2 + HALF_STEP_PROBABILITY**2)
        trust = by_probability * len(means) / (len(means) + HALF_STEP_SKILLS) * even**2
        rate = STEP * trust * steps / STEPS
        part = np.where(compared, -rate / count[owner], 0).astype(np.float32)
        middle = rows.mean(axis=0)
        centred = rows - middle
        weights = np.zeros_like(means)
        for step in range(steps):
            if step:
                shares = softmax(prior_scores + centred @ weights.T)
            shares[place, owner] -= 1
            shares *= part[:, np.newaxis]
            weights += shares.T @ centred
        more = np.maximum(count - 2, 0)
        weights *= (more / (more + SHRINKAGE)).astype(np.float32)[:, np.newaxis]
        self._weights = weights
        self._shift = weights @ middle

    def adjustments(
        self, vectors: NDArray[np.float32], among: NDArray[np.intp]
    ) -> NDArray[np.float32]:
        """The adjustments of some skills for some requests, at most 0; shape (requests, skills).

        Args:
            vectors: of the requests, of unit length.
            among: the places of the skills.
        """
        if not len(self._weights):
            return np.zeros((len(vectors), len(among)), dtype=np.float32)
        scores = vectors @ self._weights.T - self._shift
        found: NDArray[np.float32] = scores[:, among] - scores.max(axis=1, keepdims=True)
        return found


def softmax(scores: NDArray[FloatT]) -> NDArray[FloatT]:
    """The scores as probabilities, over the last axis."""
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
