"""How likely it is that something fits a request, and that its best match is right.

Both are logistic functions of few signals of the best match:

    lexical   how much of the request its wording matches, whatever the request's length
    own       its score without examples: wording and meaning of its own text
    near      how near its examples are, as much as they count; 0 without examples
    examples  how much they count: 1 when it has many, 0 without (``router/retrieval/examples.py``)
    evidence  the sum of its term contributions, which grows with what was matched
    size      ln of the number of skills: the best of many is good by chance
    lead      how far it is ahead of the second; tells right from fits
    special   how much nearer its nearest text is than the nearest request of the background
    clear     how much nearer than that, and than any other skill's nearest text

The last two compare the request with requests of all kinds (``router/retrieval/background.py``)
and are there where the encoder has a background; without them, and for single clauses, the others
decide with coefficients of their own.

Whether something fits is told by the wording that matches for its share of the request, never for
its amount. A sum of matches grows with the request, and in most data sets the requests that nothing
serves are shorter than the others, so a sum seems to tell them apart: it lowers the log loss of
fits over catalogs that are left out (.388 with it, .426 without). In use they are as long as any.
Over the fifteen catalogs of ``benchmarks/trades.py``, where both are equally long, a third of them
was routed by the sum, and a tenth is by the share. Over the six of these that no fit has seen,
enriched, the log loss is .547 with the sum and .296 with the share; with MiniLM .526 and .311. The
cosine and the score of the skill's own text, and how near the background is as a whole, add nothing
to that.

The coefficients of fits were fitted on whole catalogs: 572 real skills, everyday tools, the shipped
skills, 62 tools of MetaTool, CLINC150, BANKING77, and the nine ``develop`` catalogs of trades at
half weight; each plain, enriched and with half of the skills enriched, and random parts of them.
Those of right are older, and were fitted without the trades over the encoder that was bundled
before; fitted anew they do no better on catalogs that are left out. The weights of ``size`` are a
choice inside the range that the fits gave, and the bias of fits was moved by .1 for coverage.

Signals were chosen by what they did on catalogs that were left out of the fit. These did not help
there: the square root of the evidence, how much of the request is matched, the share of words that
no skill knows, how rare those words are that the best skill does not have, the lead over the next
five, the lead of the nearest examples alone, the nearest example, near misses, whether own text and
examples agree on the best, how alike the two best are, scores standardised over all skills, how
well the vector of some word of the skill explains each word of the request, how alike the skill's
examples are, how each catalog ranks its own examples when they are left out of it, and means of
several nearest texts or requests of the background. Trees, and the products of all signals, did
worse than these sums.

``benchmarks/enrichment.py`` and ``benchmarks/trades.py`` measure what came of it. Until a
deployment has labels of its own the outcome is an estimate, and results say ``calibrated: false``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from router.numeric import logistic
from router.retrieval.index import Ranking

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
"""Log-odds for each unit of a signal. The lead counts as ln(lead + LEAST_LEAD)."""
FITS_ALONE: Final = {
    "own": 3.50,
    "near": 2.15,
    "examples": -3.15,
    "size": -0.35,
    "bias": 0.35,
}
RIGHT_ALONE: Final = {
    "own": 1.81,
    "near": 0.41,
    "examples": -1.41,
    "evidence": 1.0,
    "size": -0.30,
    "lead": 1.16,
    "bias": 0.28,
}
"""The same without a background."""
LEAST_LEAD: Final = 0.15


@dataclass(frozen=True, slots=True)
class Likelihood:
    """What the best match of a ranking is worth.

    Attributes:
        fits: probability that some skill fits the request, in (0, 1).
        right: probability that the best match is a right one, in (0, 1).
        signals: what they were computed from, by name.
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
            "near": best.known * best.examples,
            "examples": best.known,
            "evidence": ranking.evidence,
            "size": math.log(ranking.size),
            "lead": lead,
        }
        fits, right = FITS_ALONE, RIGHT_ALONE
        if ranking.background is not None:
            fits, right = FITS, RIGHT
            signals |= ranking.background._asdict()
        values = signals | {"lead": math.log(lead + LEAST_LEAD), "bias": 1.0}
        return cls(_probability(fits, values), _probability(right, values), signals)


def _probability(weights: dict[str, float], values: dict[str, float]) -> float:
    log_odds = sum(weight * values[name] for name, weight in weights.items())
    return logistic(log_odds)
