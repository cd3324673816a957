"""Which requests the examples cover, and what they say of those, where no LLM can be asked.

Labelled examples speak about some requests and say nothing of others: thirty examples for the skill
``git`` do not tell what is meant for ``docker``. Retrieval speaks about every skill, less surely
where there are examples. So two questions are asked of a request. Is it *covered*: is its answer
one that examples name? And if so, which answer is it? What is not covered is left to retrieval
among the skills that few examples cover.

For a request whose head scores are s_c,

    P(answer c is right) = P(covered) q(softmax of c over s + w r)

where r_c is retrieval's fused score of the answer's skills. Its weight w falls with the noise of
the head, which n examples of each answer leave on average:

    w = max(RETRIEVAL_WEIGHT / sqrt(n), LEAST_WEIGHT)

P(covered) is a monotone function of the energy of the scores, and q one of the softmax. Both are
fitted across folds. The model of a fold has seen neither the example that is asked nor, for a fifth
of the answers, any example of its answer: to that model those are requests that no example speaks
about, which is what most of the traffic may be.

The share of requests that are not covered is another one in the traffic than in the folds. So the
odds are corrected from the share in the folds to the one that retrieval expects for this request.
That has two parts: the softmax (over RETRIEVAL_WEIGHT r) of the skills that few examples cover, and
the probability that no skill fits, which is UNSERVED corrected by retrieval's odds that anything
fits. Where examples name "no skill" as an answer, its support comes from those odds, too.
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
LEAST_WEIGHT: Final = 1.5
"""However many examples there are, they may all be of one mould, and the request of another."""
UNSERVED: Final = 0.1
"""The share of requests that no skill serves, before anything is known of them."""
FITS_WEIGHT: Final = 0.5
"""How much retrieval's log-odds that anything fits count in that share; cross-validated
likewise."""
COVERED: Final = 5
"""Examples of a skill from which on they say more of it than its own text. With fewer it is partly
left to retrieval."""

MIN_EXAMPLES: Final = 300
"""With fewer examples the maps would describe those few, and not the requests to come."""
MAX_HELD_OUT: Final = 2_000
FOLDS: Final = 5


@dataclass(frozen=True, slots=True)
class ExampleCoverage:
    """The two maps of a head's scores, cross-fitted.

    Attributes:
        covered: from the logistic of the energy to P(covered), in traffic like that of the folds.
        right: from the softmax of the best answer to P(right), given that it is covered.
        uncovered: share of requests in the folds that were not covered.
        weight: w of the module's docstring.
    """

    covered: Calibrator
    right: Calibrator
    uncovered: Probability
    weight: Number

    @classmethod
    def fit(
        cls, texts: Sequence[str], answers: Sequence[str], vectors: NDArray[np.float32]
    ) -> Self | None:
        """The maps of a head over these examples; None with fewer than ``MIN_EXAMPLES``, or where
        too few of them can be held out. Takes ``FOLDS`` fits of a head.

        Args:
            vectors: of the texts, shape (len(texts), dimension), unit length.
        """
        if len(texts) < MIN_EXAMPLES:
            return None
        fold_of = {name: n % FOLDS for n, name in enumerate(sorted(set(answers)))}
        chosen = np.random.default_rng(0).permutation(len(texts))[:MAX_HELD_OUT]
        known: list[float] = []
        covered: list[bool] = []
        shares: list[float] = []
        right: list[bool] = []
        for fold in range(FOLDS):
            asked = chosen[fold::FOLDS]
            unseen = set(asked.tolist())
            seen = [
                i for i, answer in enumerate(answers) if i not in unseen and fold_of[answer] != fold
            ]
            if len({answers[i] for i in seen}) < 2:
                continue
            head = Head.fit([texts[i] for i in seen], [answers[i] for i in seen], vectors[seen])
            scores = head.scores([texts[i] for i in asked], vectors[asked])
            known += map(logistic, energy(scores).tolist())
            named = set(head.classes)
            for i, row in zip(asked, scores, strict=True):
                covered.append(answers[i] in named)
                if covered[-1]:
                    best = int(row.argmax())
                    shares.append(float(softmax(row.astype(np.float64))[best]))
                    right.append(head.classes[best] == answers[i])
        if len(shares) < MIN_PAIRS or all(covered):
            return None
        return cls(
            covered=Calibrator.fit(known, covered),
            right=Calibrator.fit(shares, right),
            uncovered=1 - sum(covered) / len(covered),
            weight=max(RETRIEVAL_WEIGHT / math.sqrt(len(texts) / len(fold_of)), LEAST_WEIGHT),
        )

    @property
    def pairs(self) -> int:
        """Outcomes that the maps were fitted on."""
        return self.covered.pairs

    def coverage(self, scores: NDArray[np.float32], *, uncovered: float, fits: float) -> float:
        """P(covered) of one request.

        Args:
            scores: by the head, shape (answers,).
            uncovered: the share that retrieval expects; see ``uncovered_share``.
            fits: retrieval's estimate that anything fits, in [0, 1].
        """
        raw = self.covered(logistic(float(energy(scores))))
        unserved = logistic(log_odds(UNSERVED) - FITS_WEIGHT * log_odds(fits))
        prior = unserved + (1 - unserved) * uncovered
        return logistic(log_odds(raw) - log_odds(prior) + log_odds(self.uncovered))

    def support(
        self, answers: Sequence[Sequence[str]], found: Mapping[str, float], *, fits: float
    ) -> NDArray[np.float64]:
        """w r: what retrieval says of each answer. An answer of several skills has the mean of what
        it says of each; a skill that it did not find scores like the last that it did.

        Args:
            found: fused scores of the best skills.
            fits: retrieval's estimate that anything fits, in [0, 1].
        """
        last, first = min(found.values(), default=0.0), max(found.values(), default=0.0)
        return np.array(
            [
                self.weight * sum(found.get(name, last) for name in skills) / len(skills)
                if skills
                else self.weight * first - log_odds(fits)
                for skills in answers
            ]
        )

    def probabilities(
        self, scores: NDArray[np.float32], support: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """P(right) of every answer, given that the request is covered: of the best one calibrated,
        of the others in proportion to it. The scores are by the head, ``support`` of the same
        answers by retrieval; all have the shape (answers,)."""
        shares = softmax(scores + support)
        best = float(shares.max())
        return np.asarray(shares * (self.right(best) / best))


def uncovered_share(found: Mapping[str, float], examples: Mapping[str, int]) -> float:
    """P(the request is about a skill that examples do not cover) as far as retrieval can tell.

    Args:
        found: fused scores of the best skills.
        examples: number of examples of each skill that has any; from 0 to ``COVERED`` of them
            cover it in proportion.
    """
    if not found:
        return 0.0
    shares = softmax(RETRIEVAL_WEIGHT * np.array(list(found.values())))
    open_ = [max(0.0, 1 - examples.get(name, 0) / COVERED) for name in found]
    return float(shares @ np.array(open_))
