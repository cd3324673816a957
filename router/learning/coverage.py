"""When the local model answers without an LLM: for the requests that its examples cover.

Thirty examples for the skill ``git`` do not help with a request for ``docker``. The local model can
only give answers that some example has. Retrieval ranks all skills, but is less reliable where
there are examples. So two probabilities are estimated for a request: that it is *covered* (its
right answer is one that examples name), and that the model's answer is right if it is. Requests
that are not covered are left to retrieval, among the skills with few examples.

With s_c the score of the model's head for answer c,

    P(answer c is right) = P(covered) q(softmax of c over s + w r)

where r_c is retrieval's fused score of the answer's skills. Its weight w is the smaller, the more
examples the head has; n is the mean number of examples of an answer:

    w = max(RETRIEVAL_WEIGHT / sqrt(n), MIN_WEIGHT)

P(covered) is a monotone function of the energy of the scores, and q is one of the largest softmax.
Both are fitted by cross-validation. The model of a fold has not seen the examples that it is tested
with and, for a fifth of the answers, no example of that answer at all. To this model, the requests
for those answers are not covered.

The share of requests that are not covered differs between the traffic and the folds. So the odds
are corrected (prior shift), from the share in the folds to the one that retrieval expects for this
request. This expected share has two parts: the softmax (over RETRIEVAL_WEIGHT r) of the skills with
few examples, and the probability that no skill fits, which is UNSERVED_PRIOR, corrected by
retrieval's odds that some skill fits. Where examples name "no skill" as an answer, its r comes from
these odds, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from router.learning.calibration import MIN_PAIRS, Calibrator
from router.learning.head import Head, energy
from router.numeric import log_odds, logistic
from router.result import Number, Probability
from router.retrieval.contrast import softmax

RETRIEVAL_WEIGHT: Final = 4.0
"""Cross-validated over 2 to 60 examples an answer, and over catalogs of which half the skills had
some; from 3 to 6 little changes."""
MIN_WEIGHT: Final = 1.5
"""Retrieval keeps this weight however many examples there are: they may all be similar to each
other, and different from the request."""
UNSERVED_PRIOR: Final = 0.1
"""The prior share of requests that no skill serves."""
FITS_WEIGHT: Final = 0.5
"""The weight of retrieval's log-odds that some skill fits in the correction of ``UNSERVED_PRIOR``;
cross-validated likewise."""
FULLY_COVERED_FROM: Final = 5
"""A skill with this many examples is covered in full, because they then say more about it than its
own text. With fewer it is covered in part."""

MIN_EXAMPLES: Final = 300
"""With fewer examples no coverage is fitted: it would not generalise."""
MAX_HELD_OUT: Final = 2_000
FOLDS: Final = 5


@dataclass(frozen=True, slots=True)
class ExampleCoverage:
    """The two fitted functions of a head's scores.

    Attributes:
        covered: from the logistic of the energy to P(covered), for traffic like that of the folds.
        right: from the softmax of the best answer to P(it is right), given that the request is
            covered.
        uncovered: the share of the requests in the folds that were not covered.
        weight: w, see the module's docstring.
    """

    covered: Calibrator
    right: Calibrator
    uncovered: Probability
    weight: Number

    @classmethod
    def fit(
        cls, texts: Sequence[str], answers: Sequence[str], vectors: NDArray[np.float32]
    ) -> Self | None:
        """Fit the coverage of a head over these examples; None with fewer than ``MIN_EXAMPLES``, or
        where too few of them can be held out. It fits ``FOLDS`` heads.

        Args:
            vectors: of the texts, shape (len(texts), dimension), unit length.
        """
        if len(texts) < MIN_EXAMPLES:
            return None
        fold_of = {name: n % FOLDS for n, name in enumerate(sorted(set(answers)))}
        chosen = np.random.default_rng(0).permutation(len(texts))[:MAX_HELD_OUT]
        energies: list[float] = []
        covered: list[bool] = []
        shares: list[float] = []
        right: list[bool] = []
        for fold in range(FOLDS):
            held_out = chosen[fold::FOLDS]
            unseen = set(held_out.tolist())
            seen = [
                i for i, answer in enumerate(answers) if i not in unseen and fold_of[answer] != fold
            ]
            if len({answers[i] for i in seen}) < 2:
                continue
            head = Head.fit([texts[i] for i in seen], [answers[i] for i in seen], vectors[seen])
            scores = head.scores([texts[i] for i in held_out], vectors[held_out])
            energies += map(logistic, energy(scores).tolist())
            named = set(head.classes)
            for i, row in zip(held_out, scores, strict=True):
                covered.append(answers[i] in named)
                if covered[-1]:
                    best = int(row.argmax())
                    shares.append(float(softmax(row.astype(np.float64))[best]))
                    right.append(head.classes[best] == answers[i])
        if len(shares) < MIN_PAIRS or all(covered):
            return None
        return cls(
            covered=Calibrator.fit(energies, covered),
            right=Calibrator.fit(shares, right),
            uncovered=1 - sum(covered) / len(covered),
            weight=max(RETRIEVAL_WEIGHT / math.sqrt(len(texts) / len(fold_of)), MIN_WEIGHT),
        )

    @property
    def pairs(self) -> int:
        """The number of held-out examples that it was fitted to."""
        return self.covered.pairs

    def coverage(self, scores: NDArray[np.float32], *, uncovered: float, fits: float) -> float:
        """P(covered) of one request.

        Args:
            scores: of the head, shape (answers,).
            uncovered: the result of ``uncovered_share``.
            fits: retrieval's probability that some skill fits, in [0, 1].
        """
        raw = self.covered(logistic(float(energy(scores))))
        unserved = logistic(log_odds(UNSERVED_PRIOR) - FITS_WEIGHT * log_odds(fits))
        prior = unserved + (1 - unserved) * uncovered
        return logistic(log_odds(raw) - log_odds(prior) + log_odds(self.uncovered))

    def support(
        self, answers: Sequence[Sequence[str]], retrieved: Mapping[str, float], *, fits: float
    ) -> NDArray[np.float64]:
        """w r: retrieval's weighted score of each answer. An answer of several skills has the mean
        of their scores. A skill that is not among retrieval's best has the score of the last of
        these.

        Args:
            retrieved: the fused scores of retrieval's best skills.
            fits: retrieval's probability that some skill fits, in [0, 1].
        """
        last, first = min(retrieved.values(), default=0.0), max(retrieved.values(), default=0.0)
        return np.array(
            [
                self.weight * sum(retrieved.get(name, last) for name in skills) / len(skills)
                if skills
                else self.weight * first - log_odds(fits)
                for skills in answers
            ]
        )

    def probabilities(
        self, scores: NDArray[np.float32], support: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """P(right) of every answer, given that the request is covered. That of the best answer is
        calibrated, and the others are in proportion to it.

        Args:
            scores: of the head, shape (answers,).
            support: the result of ``support``.
        """
        shares = softmax(scores + support)
        best = float(shares.max())
        return np.asarray(shares * (self.right(best) / best))


def uncovered_share(retrieved: Mapping[str, float], examples: Mapping[str, int]) -> float:
    """Retrieval's probability that the request is for a skill that examples do not cover.

    Args:
        retrieved: the fused scores of retrieval's best skills.
        examples: the number of examples of each skill that has any.
    """
    if not retrieved:
        return 0.0
    shares = softmax(RETRIEVAL_WEIGHT * np.array(list(retrieved.values())))
    uncovered = [max(0.0, 1 - examples.get(name, 0) / FULLY_COVERED_FROM) for name in retrieved]
    return float(shares @ np.array(uncovered))
