"""The probability that some skill fits a request, and that the best match is a right one.

Both are logistic functions of a few signals of the best match:

    lexical   the share of the request that its wording matches (``Match.lexical``)
    own       its score without examples: lexical score and cosine of its own text
    near      how near its examples are, times ``examples``
    examples  the weight of its examples: 1 with many, 0 with none (``retrieval/examples.py``)
    evidence  the sum of its BM25F term contributions, which grows with the amount that matches
    size      ln of the number of skills: with many, the best one scores higher by chance
    lead      by how much its score is above the second-best score
    special   by how much its nearest text is nearer than the nearest request of the background
    clear     by how much it is nearer than both that and the nearest text of any other skill

``special`` and ``clear`` compare the request with a background of common requests
(``router/retrieval/background.py``). Where the encoder has no background, and for single clauses,
the other signals are used, with other coefficients.

Why ``FITS`` uses ``lexical``, a share, and not ``evidence``, an amount: in the usual data sets,
``evidence`` lowers the log loss, but only because there the requests that no skill serves are
shorter than the others. In real use they are as long, as in ``benchmarks/trades.py``. Over fifteen
of its catalogs, with examples, 26% of these requests were routed with ``evidence``, and 12% are
with ``lexical``; over four that were written after this was chosen, 20% and 9%. Where skills have
no examples, both route equally many.

``FITS`` was fitted on whole catalogs: 572 real skills, everyday tools, the shipped skills, 62 tools
of MetaTool, CLINC150, BANKING77, and at half weight the nine ``develop`` catalogs of trades; each
plain, enriched and half enriched, and random parts of them. ``RIGHT`` is older, and was fitted
without the trades; fitted anew it does no better. The weights of ``size`` were chosen inside the
range that the fits gave, and the bias of ``FITS`` was moved by .1 to route more.

These signals did not help on catalogs that were left out of the fit: the square root of the
evidence; the share of unknown words; how rare the words are that the best skill lacks; the lead
over the next five; the lead of the nearest examples alone; the nearest example; near misses;
whether own text and examples agree on the best; how alike the two best are; scores standardised
over all skills; how well some word of the skill explains each word of the request; how alike the
skill's examples are; how each catalog ranks its own examples when they are left out; how near the
background is as a whole; means of several nearest texts. Trees, and products of all signals, did
worse than these sums.

Until a deployment has labels of its own the outcome is an estimate, and results say ``calibrated:
false``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from router.numeric import logistic
from router.retrieval.matches import Ranking

FITS: Final = {
    "lexical": 3.20,
    "near": 1.90,
    "examples": -3.45,
    "size": -0.30,
    "special": 7.50,
    "bias": 2.45,
}
RIGHT: Final = {
    "own": 0.35,
    "near": 0.36,
    "examples": -1.53,
    "evidence": 1.17,
    "size": -0.25,
    "lead": 1.09,
    "clear": 4.01,
    "bias": 1.81,
}
"""Log-odds for each unit of a signal; for ``lead``, of ln(lead + LEAD_OFFSET)."""
FITS_WITHOUT_BACKGROUND: Final = {
    "own": 3.50,
    "near": 2.15,
    "examples": -3.15,
    "size": -0.35,
    "bias": 0.35,
}
RIGHT_WITHOUT_BACKGROUND: Final = {
    "own": 1.81,
    "near": 0.41,
    "examples": -1.41,
    "evidence": 1.0,
    "size": -0.30,
    "lead": 1.16,
    "bias": 0.28,
}
"""The coefficients where the request was not compared with a background."""
LEAD_OFFSET: Final = 0.15
"""Added to the lead before its logarithm is taken, so that a lead of 0 has a finite one."""


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How far the best match of a ranking can be trusted.

    Attributes:
        fits: probability that some skill fits the request, in (0, 1).
        right: probability that the best match is a right one, in (0, 1).
        signals: the values that both were computed from, by name.
    """

    fits: float
    right: float
    signals: dict[str, float]

    @classmethod
    def of(cls, ranking: Ranking) -> Likelihood:
        """The likelihood of a ranking, which has one match or more."""
        best = ranking.matches[0]
        lead = max(0.0, ranking.lead)  # a lone skill may have a score below zero
        signals = {
            "lexical": best.lexical,
            "own": best.score - best.examples,
            "near": best.examples_weight * best.examples,
            "examples": best.examples_weight,
            "evidence": ranking.evidence,
            "size": math.log(ranking.size),
            "lead": lead,
        }
        fits, right = FITS_WITHOUT_BACKGROUND, RIGHT_WITHOUT_BACKGROUND
        if ranking.background is not None:
            fits, right = FITS, RIGHT
            signals |= ranking.background._asdict()
        values = signals | {"lead": math.log(lead + LEAD_OFFSET), "bias": 1.0}
        return cls(_probability(fits, values), _probability(right, values), signals)


def _probability(weights: dict[str, float], values: dict[str, float]) -> float:
    log_odds = sum(weight * values[name] for name, weight in weights.items())
    return logistic(log_odds)
