"""Which skills a request of several clauses needs beside the first.

Most clauses only explain the first one, and a clause like "half an hour earlier" is like some skill
by chance. So a further skill is loaded by a decision of its own: a logistic function of what its
clause, which is the one that it fits best compared with all other skills, and the whole request say
of it:

    own       its score for the clause without examples: wording and meaning of its own text
    near      how near its examples are to the clause, as much as they count; 0 without examples
    margin    how far its score for the clause is ahead of that of the best other skill
    instead   how far it is ahead of the first skill's there
    apart     how far the first skill is ahead of it in some other clause: then both have a clause
              of their own, and are no rivals for the same one
    best      1 when it is the best for the clause read in its context, else 0
    words     ln of the number of the clause's words that some skill knows
    gap       how far it is behind the first skill for the whole request
    place     ln of its place among the matches of the whole request
    clauses   ln of their number: of many, one is like some skill by chance
    examples  how much they count: 1 when it has many, 0 without (``router/retrieval/examples.py``)
    known     the gap, as much as its examples count: near ones make all differences of scores
              larger, and this one most, so that it counts less

None of them hangs on what the decision about the whole request takes to be likely. These did not
help, on catalogs that were left out of the fit: that likelihood, taken of the clause; the size of
the catalog; how a clause begins (with a verb, "I", or a preposition); its place in the request; how
like the others it is; how alike the two skills are; scores standardised over all skills; the
clause beside the background (``router/retrieval/background.py``). Where the request is cut in two,
how far each of the two skills is ahead in one of the parts found one exact set more in a hundred,
and in everyday words it added as many wrong skills as right ones. Trees did no better. Of requests
in everyday words most second skills are lost here: the request has its clauses, and the skill is
among its best ones, but for its own short clause another skill scores higher as often as not.

The coefficients were fitted on requests of people and on pairs of them that were joined by "and",
"then" or a full stop, for different skills and for the same: for 574 real skills, the intents of
CLINC150 and BANKING77, and tools of MetaTool and StableToolBench, plain and enriched. The weights
of ``examples`` and ``bias`` were then moved, so that at .5 requests for a single skill are given
fewer wrong ones than by the rule that this has replaced.
Fitted over MiniLM as well they are the same to a tenth. The bundled encoder was another one then;
over the present one and MiniLM, a fit is no better on left-out catalogs. The gap as a share of the
first skill's score would do without ``known``; it was no better, and worse on the real skills.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from router.numeric import logistic
from router.retrieval.index import Clause, Ranking

WEIGHTS: Final = {
    "own": 0.85,
    "near": -0.5,
    "margin": 1.38,
    "instead": 0.44,
    "apart": 0.3,
    "best": 0.49,
    "words": 0.19,
    "gap": -1.91,
    "place": -0.54,
    "clauses": -0.44,
    "examples": -0.45,
    "known": 1.01,
    "bias": -1.41,
}
"""Log-odds for each unit of a signal."""
MAX_CANDIDATES: Final = 10
"""So many of the best matches of a request are looked at: they may be further skills, and they are
the candidates that stage 4 tells of."""


def further(whole: Ranking, first: str, least: float = 0.0) -> dict[str, float]:
    """The skills that clauses may ask for beside the first, likeliest first, each with the
    estimated probability, in (0, 1), that it is needed. No two of them are asked for by the same
    clause.

    Args:
        whole: of the request.
        first: the skill that is loaded anyway, one of the matches.
        least: the least probability of those that are given.
    """
    if len(whole.clauses) < 2:
        return {}
    found: dict[str, float] = {}
    taken: set[int] = set()
    for log_odds, clause, name in sorted(_asked_for(whole, first), key=lambda one: -one[0]):
        if clause not in taken:
            probability = logistic(log_odds)
            if probability < least:
                break
            taken.add(clause)
            found[name] = probability
    return found


def _asked_for(whole: Ranking, first: str) -> Iterator[tuple[float, int, str]]:
    """The log-odds of each other skill, with its clause."""
    matches, clauses = whole.matches, whole.clauses
    ours = next(place for place, match in enumerate(matches) if match.name == first)
    for place, match in enumerate(matches[:MAX_CANDIDATES]):
        if place == ours:
            continue
        margins = [_margin(clause, place) for clause in clauses]
        number = margins.index(max(margins))
        clause = clauses[number]
        ahead = [clause.scores[place] - clause.scores[ours] for clause in clauses]
        gap = matches[ours].score - match.score
        near = clause.examples[place]
        values = {
            "own": clause.scores[place] - near,
            "near": match.known * near,
            "margin": margins[number],
            "instead": ahead[number],
            "apart": -min(ahead[:number] + ahead[number + 1 :]),
            "best": float(clause.ranking.matches[0].name == match.name),
            "words": math.log(max(clause.words, 1)),
            "gap": gap,
            "place": math.log(place + 1),
            "clauses": math.log(len(clauses)),
            "examples": match.known,
            "known": match.known * gap,
            "bias": 1.0,
        }
        log_odds = sum(weight * values[name] for name, weight in WEIGHTS.items())
        yield log_odds, number, match.name


def _margin(clause: Clause, place: int) -> float:
    """How far a match is ahead of the best other skill for a clause; below zero when behind."""
    score = clause.scores[place]
    best, second = clause.highest
    return score - (second if score >= best else best)
