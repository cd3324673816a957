"""The result of a ranking: the matches, best first, and the signals for a decision about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from router.retrieval.background import BackgroundComparison

SHOWN_TERMS: Final = 5


class Match(NamedTuple):
    """The scores of one skill for one request.

    Attributes:
        name: the skill.
        score: the fused score; comparable within one ranking only.
        lexical: BM25F divided by the norm of the request (``ReadText.norm``): at least 0, and below
            the square root of the number of the request's terms.
        cosine: of the vectors of the request and of the skill's own text.
        examples: how near its examples are (``examples.py``).
        examples_weight: the weight of its own examples in that, in [0, 1]. The rest is the default
            for skills without examples; 0 for such a skill.
        terms: the words of the request that the skill has, largest contribution first.
    """

    name: str
    score: float
    lexical: float
    cosine: float
    examples: float
    examples_weight: float
    terms: tuple[str, ...]

    def shown(self, most: int = SHOWN_TERMS) -> str:
        """The words that match, for the user. A request without a vector is near to nothing."""
        return ", ".join(self.terms[:most]) or ("meaning alone" if self.cosine else "nothing")


@dataclass(frozen=True, slots=True)
class Ranking:
    """The ranking of the skills for one request, or for one clause of it.

    Attributes:
        matches: the best skills, best first; empty where there is no skill to rank.
        size: the number of skills that were ranked.
        evidence: the sum of the best skill's term contributions.
        lead: the difference of the two best scores; the score itself where there is one skill.
        named: the skills that the request names outright, in its order; at most ``FULLY_SCORED``.
        background: the request compared with the background. None where the encoder has none, and
            for a clause: short clauses are near to some request of the background by chance.
        clauses: the clauses of a request that has several and names no skill; else empty.
        foreign: whether the request has no word of the best skill, and hardly an English word or
            none that the encoder knows. False where there is no background.
        wordless: whether the request has no words at all.
        fault: why the request could not be encoded, where its words alone were compared; else
            empty.
    """

    matches: tuple[Match, ...]
    size: int = 0
    evidence: float = 0.0
    lead: float = 0.0
    named: tuple[str, ...] = ()
    background: BackgroundComparison | None = None
    clauses: tuple[Clause, ...] = ()
    foreign: bool = False
    wordless: bool = False
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """The scores for one clause of a request.

    Attributes:
        ranking: for this clause, of the skills that were scored in full for the whole request. It
            holds only the best match, without terms.
        scores: the scores for the clause of the whole request's matches, in their order.
        examples: how near the examples of these matches are to the clause; part of the scores.
        highest: the two best scores for the clause, or the only one, best first.
        words: the number of its different words that some skill has.
        after_comma: whether only a comma separates it from the clause before.
    """

    ranking: Ranking
    scores: tuple[float, ...]
    examples: tuple[float, ...]
    highest: tuple[float, ...]
    words: int
    after_comma: bool = False
