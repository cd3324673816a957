"""How likely it is that something fits a request, and that its best match is right.

Both are logistic functions of few signals of the best match:

    score     the fused score: wording, meaning, nearness of examples
    evidence  the sum of its term contributions, which grows with what was matched
    examples  1 when it has examples, which raise its score, else 0
    size      ln of the number of skills: the best of many is good by chance
    lead      how far it is ahead of the second; tells right from fits

The coefficients were fitted on whole catalogs: 574 real skills and everyday tools, plain and
enriched, the shipped skills, MetaTool, BFCL, StableToolBench, CLINC150 and BANKING77, with random
parts of them, over the bundled encoder and MiniLM. Each signal was kept only because it helped on
catalogs that were left out of the fit; ``benchmarks/enrichment.py`` measures what came of it. The
weight of ``size`` is a choice inside the range that the fits gave. Until a deployment has labels of
its own the outcome is an estimate, and results say ``calibrated: false``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from router.numeric import logistic
from router.retrieval.index import Ranking

FITS: Final = {"score": 1.69, "evidence": 1.85, "examples": -1.64, "size": -0.35, "bias": 0.15}
RIGHT: Final = {
    "score": 0.69,
    "evidence": 1.32,
    "examples": -0.81,
    "size": -0.175,
    "lead": 1.52,
    "bias": 0.79,
}
"""Log-odds for each unit of a signal. The lead counts as ln(lead + LEAST_LEAD)."""
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
            "score": best.score,
            "evidence": ranking.evidence,
            "examples": float(best.examples is not None),
            "size": math.log(ranking.size),
            "lead": lead,
        }
        values = signals | {"lead": math.log(lead + LEAST_LEAD), "bias": 1.0}
        return cls(_probability(FITS, values), _probability(RIGHT, values), signals)


def _probability(weights: dict[str, float], values: dict[str, float]) -> float:
    log_odds = sum(weight * values[name] for name, weight in weights.items())
    return logistic(log_odds)
