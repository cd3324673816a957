"""Which skills a request of several clauses needs beside the first.

Most clauses only explain the first one, and a clause like "half an hour earlier" is like some skill
by chance. So a further skill is loaded by a decision of its own: a logistic function of what its
clause, which is the one that it fits best compared with all other skills, and the whole request say
of it:

    near     how near its examples are to the clause, as much as they count; 0 without examples
    margin   how far its score for the clause is ahead of that of the best other skill
    instead  how far it is ahead of the first skill's there
    apart    how far the first skill is ahead of it in some other clause: then both have a clause of
             their own, and are no rivals for the same one
    best     1 when it is the best for the clause read in its context, else 0
    words    ln of the number of the clause's words that some skill knows
    gap      how far it is behind the first skill for the whole request
    place    ln of its place among the matches of the whole request
    clauses  ln of their number: of many, one is like some skill by chance

Near examples make all differences of scores larger, so they count less. None of the signals hangs
on what the decision about the whole request takes to be likely. These did not help, on catalogs
that were left out of the fit: that likelihood, taken of the clause; its score for the clause
without examples, and how much its examples count; the size of the catalog; how a clause begins
(with a verb, "I", or a preposition); its place in the request; how like the others it is; how alike
the two skills are; scores standardised over all skills; the clause beside the background
(``router/retrieval/background.py``). Where the request is cut in two, how far each of the two
skills is ahead in one of the parts found one exact set more in a hundred, and in everyday words it
added as many wrong skills as right ones. Trees did no better. Of requests in everyday words most
second skills are lost here: the request has its clauses, and the skill is among its best ones, but
for its own short clause another skill scores higher as often as not.

The coefficients were fitted to 2,938 requests that are routed, as people and language models wrote
them, plain and enriched: for 572 real skills, everyday tools, the shipped skills, intents, and the
nine catalogs of ``develop`` in ``benchmarks/trades.py``. The 241 that need several skills count two
and a half times, so that a further skill is loaded where it makes a set exact about as often as it
spoils a route. Over the six catalogs that were left out, with as many routes spoilt (8 and 7 of
245), 22 of 53 sets are exact where 17 were by the fit to joined requests that this has replaced.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from router.numeric import logistic
from router.retrieval.index import Clause, Ranking

WEIGHTS: Final = {
    "near": -1.30,
    "margin": 1.50,
    "instead": 0.90,
    "apart": 0.75,
    "best": 0.70,
    "words": 0.75,
    "gap": -1.30,
    "place": -1.40,
    "clauses": -0.30,
    "bias": -1.55,
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
        values = {
            "near": match.known * clause.examples[place],
            "margin": margins[number],
            "instead": ahead[number],
            "apart": -min(ahead[:number] + ahead[number + 1 :]),
            "best": float(clause.ranking.matches[0].name == match.name),
            "words": math.log(max(clause.words, 1)),
            "gap": matches[ours].score - match.score,
            "place": math.log(place + 1),
            "clauses": math.log(len(clauses)),
            "bias": 1.0,
        }
        log_odds = sum(weight * values[name] for name, weight in WEIGHTS.items())
        yield log_odds, number, match.name


def _margin(clause: Clause, place: int) -> float:
    """How far a match is ahead of the best other skill for a clause; below zero when behind."""
    score = clause.scores[place]
    best, second = clause.highest
    return score - (second if score >= best else best)
