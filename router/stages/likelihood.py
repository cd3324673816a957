"""How likely it is that something fits a request, and that its best match is right.

Both are logistic functions of few signals of the best match:

    own       its score without examples: wording and meaning of its own text
    near      how near its examples are, as much as they count; 0 without examples
    examples  how much they count: 1 when it has many, 0 without (``router/retrieval/examples.py``)
    evidence  the sum of its term contributions, which grows with what was matched
    size      ln of the number of skills: the best of many is good by chance
    lead      how far it is ahead of the second; tells right from fits
    special   how much nearer its nearest text is than the nearest request of the background
    clear     how much nearer than that, and than any other skill's nearest text
    common    how near the background is as a whole

The last three compare the request with requests of all kinds (``router/retrieval/background.py``)
and are there where the encoder has a background; without them, and for single clauses, the others
decide with coefficients of their own. Where a catalog was left out of a fit over the
bundled encoder, they lowered the mean log loss of fits from .429 to .381 and that of right from
.439 to .414, and the false accepts at 85% coverage from 28% to 22%. With MiniLM and the same fits
they lowered them from .403 to .361, from .428 to .403, and from 22% to 18%.

The coefficients were fitted on whole catalogs: 574 real skills, everyday tools, the shipped
skills and 62 tools of MetaTool, each plain, enriched, and with half of the skills enriched;
CLINC150 and BANKING77 plain and enriched; MetaTool and BFCL; with random parts of them. Those
without a background were fitted over the encoder that was bundled before and MiniLM, the others
over the former: fitted over both, or over MiniLM, they did no better on left-out catalogs with
either. They hold for the encoder that is bundled now. Fitted over that, they lowered the log loss
of left-out catalogs by .002 and .006, and with as many routes for what nothing serves at most one
request in a hundred more was routed right; over all catalogs the decisions on real skills changed
by one to three requests of each kind. Means of several nearest texts or requests of the background,
and cosines less the mean of the background, did no better than the nearest alone. Signals were
chosen by what they did on catalogs that were left out of the fit. These did not help there: the
square root of the evidence, how much of the request is matched, the share of words that no skill
knows, the lead over the next five, the lead of the nearest examples alone, the nearest example,
near misses, whether own text and examples agree on the best, how alike the two best are, scores
standardised over all skills, how well the vector of some word of the skill explains each word of
the request, how alike the skill's examples are, and how each catalog ranks its own examples when
they are left out of it. Where requests of the background that the best skill serves counted less,
the log loss fell by .004, but one in a hundred more was let in of what nothing serves. The weight
of ``size`` is a choice inside the range that the fits gave.
Trees, and the products of all signals, did worse than these sums.

One more signal only seemed to help: how rare those words are, among the requests of the background,
that the best skill does not have. Over the encoder that was bundled before, it lowered the log loss
of fits from .392 to .377 (MiniLM: .356 to .341). But the mere number of words in the request did
nearly the same: in these catalogs, requests that nothing serves happen to be shorter than the
others. Over the 199 tools of MetaTool they are longer, and there it raised the log loss from .54 to
.59 (.51 to .57). In a fit that weighs requests so that both kinds are equally long it did nothing,
and neither did ``evidence``, which grows with the length too. Such a fit is better over MetaTool
(.52, and .49) and worse over the others as they are (.402, and .360), so it was not taken. Counting
the words of the background among those of the catalog, as 100 or 400 documents, ranked no better
and helped to decide over the shipped skills only.
``benchmarks/enrichment.py`` measures what came of it. Until a deployment has labels of its own
the outcome is an estimate, and results say ``calibrated: false``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from router.numeric import logistic
from router.retrieval.index import Ranking

FITS: Final = {
    "own": 0.66,
    "near": 1.61,
    "examples": -2.65,
    "evidence": 1.52,
    "size": -0.30,
    "special": 4.81,
    "common": 0.43,
    "bias": 1.58,
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
    "own": 2.66,
    "near": 1.34,
    "examples": -1.89,
    "evidence": 1.30,
    "size": -0.35,
    "bias": -0.36,
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
