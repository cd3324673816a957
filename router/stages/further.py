"""Which skills a request of several clauses needs besides the first one.

Most clauses only explain the first one, and a clause like "half an hour earlier" is similar to some
skill by chance. So whether to load a further skill is a separate decision. A skill's *own clause*
is the one in which its score is furthest ahead of all other skills. A logistic function of these
signals decides:

    near     how near its examples are to its own clause, times their weight; 0 without examples
    margin   by how much its score for its own clause is above that of the best other skill
    instead  by how much it is above the first skill's score for that clause
    apart    the largest lead of the first skill over it in another clause: where it is large, each
             of the two has a clause of its own
    best     1 if it is the best skill for its own clause, else 0
    words    ln of the number of that clause's words which some skill has
    gap      how far it is behind the first skill for the whole request
    place    ln of its rank for the whole request
    clauses  ln of the number of clauses: of many, one is similar to some skill by chance
    listed   1 if only commas stand between its own clause and that of the first skill, else 0:
             people put "and", "then" or a full stop between two tasks, and commas between the
             details of one

The weight of ``near`` is negative: near examples make all differences of scores larger, so that
these count less.

These did not help, on catalogs that were left out of the fit: the likelihood that the clause by
itself fits; its score without examples, and how much its examples count; the size of the catalog;
how a clause begins (with a verb, "I", or a preposition); its place in the request; how like the
others it is; how alike the two skills are; standardised scores; the clause beside the background;
trees; cutting the request in two. Of requests in everyday words most second skills are lost here,
because another skill scores higher for their own short clause.

The coefficients were fitted to 2,938 requests as people and language models wrote them, plain and
enriched: for 572 real skills, everyday tools, the shipped skills, intents, and the nine catalogs of
``develop`` in ``benchmarks/trades.py``. The 241 that need several skills count two and a half
times, so that a further skill is loaded where it makes a set exact about as often as it spoils a
route. A fit to requests that were joined from two found fewer exact sets: 17 of 53 instead of 22.
``listed`` was added later, by leaving out catalogs among those of ``held_out`` too. Over them and
``develop``, with examples, 17 requests for one skill get another beside it in place of 28, and as
many sets are exact. That an "and" stands between makes more sets exact, and as many wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from router.numeric import logistic
from router.retrieval.matches import Clause, Ranking

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
    "listed": -1.00,
    "bias": -1.55,
}
"""Log-odds for each unit of a signal."""
MAX_CANDIDATES: Final = 10
"""How many of the best matches may be further skills; stage 4 also shows as many in its trace."""


def further(whole: Ranking, first: str, least: float = 0.0) -> dict[str, float]:
    """The skills besides the first that some clause may ask for, likeliest first, each with the
    estimated probability, in (0, 1), that it is needed. No two of them have the same own clause.

    Args:
        whole: the ranking for the whole request.
        first: the skill that is loaded anyway, one of the matches.
        least: skills with a lower probability are left out.
    """
    if len(whole.clauses) < 2 or len(whole.matches) < 2:
        return {}
    found: dict[str, float] = {}
    taken: set[int] = set()
    for log_odds, clause, name in sorted(_candidates(whole, first), key=lambda one: -one[0]):
        if clause not in taken:
            probability = logistic(log_odds)
            if probability < least:
                break
            taken.add(clause)
            found[name] = probability
    return found


def _candidates(whole: Ranking, first: str) -> Iterator[tuple[float, int, str]]:
    """For each match but the first skill: the log-odds that it is needed, the number of its own
    clause, and its name."""
    matches, clauses = whole.matches, whole.clauses
    place_of_first = next(place for place, match in enumerate(matches) if match.name == first)
    clause_of_first, _ = _own_clause(clauses, place_of_first)
    for place, match in enumerate(matches[:MAX_CANDIDATES]):
        if place == place_of_first:
            continue
        number, margin = _own_clause(clauses, place)
        clause = clauses[number]
        start, end = sorted((number, clause_of_first))
        between = clauses[start + 1 : end + 1]
        ahead = [clause.scores[place] - clause.scores[place_of_first] for clause in clauses]
        values = {
            "near": match.examples_weight * clause.examples[place],
            "margin": margin,
            "instead": ahead[number],
            "apart": -min(ahead[:number] + ahead[number + 1 :]),
            "best": float(clause.ranking.matches[0].name == match.name),
            "words": math.log(max(clause.words, 1)),
            "gap": matches[place_of_first].score - match.score,
            "place": math.log(place + 1),
            "clauses": math.log(len(clauses)),
            "listed": float(bool(between) and all(one.after_comma for one in between)),
            "bias": 1.0,
        }
        log_odds = sum(weight * values[name] for name, weight in WEIGHTS.items())
        yield log_odds, number, match.name


def _own_clause(clauses: Sequence[Clause], place: int) -> tuple[int, float]:
    """The number of the clause in which a match is furthest ahead of all others, and how far."""
    margins = [_margin(clause, place) for clause in clauses]
    number = margins.index(max(margins))
    return number, margins[number]


def _margin(clause: Clause, place: int) -> float:
    """How far a match is ahead of the best other skill for a clause; below zero when behind."""
    score = clause.scores[place]
    best, second = clause.highest
    return score - (second if score >= best else best)
