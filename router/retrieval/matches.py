"""What a ranking gives: the matches, best first, and what a decision about them rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from router.retrieval.background import Compared

SHOWN_TERMS: Final = 5


class Match(NamedTuple):
    """One skill as retrieval sees it for one request.

    Attributes:
        name: the skill.
        score: the fused score; comparable between the skills of one ranking only.
        lexical: BM25F divided by the length of the request (``ReadText.length``): at least 0, and
            below the square root of the number of its terms.
        cosine: of the encoder's vectors of the request and of the skill's own text.
        examples: how near its examples are, see ``ExampleIndex``.
        known: how much its own examples count in that, in [0, 1]; the rest is the benefit of the
            doubt. 0 without examples.
        terms: words of the request found in the skill, strongest contribution first.
    """

    name: str
    score: float
    lexical: float
    cosine: float
    examples: float
    known: float
    terms: tuple[str, ...]

    def shown(self, most: int = SHOWN_TERMS) -> str:
        """What it rests on, for a person."""
        return ", ".join(self.terms[:most]) or "meaning alone"


@dataclass(frozen=True, slots=True)
class Ranking:
    """The skills for one request, best first, and what the decision rests on.

    Attributes:
        matches: best first; empty when there is no skill to rank.
        size: number of skills that were ranked.
        evidence: sum of the best skill's term contributions; grows with what was matched.
        lead: how far the best score is ahead of the second; the score itself when it is alone.
        named: the skills that the request names outright, in its order; at most ``BY_SCORE``.
        background: the request beside the background; None where the encoder has none, and for a
            clause: what is said in passing is like some request by chance.
        clauses: of a request that has several and names no skill.
        foreign: the request has no word of the best skill, and hardly an English one, or none that
            the encoder knows. False where there is no background.
        wordless: the request has no words at all.
    """

    matches: tuple[Match, ...]
    size: int = 0
    evidence: float = 0.0
    lead: float = 0.0
    named: tuple[str, ...] = ()
    background: Compared | None = None
    clauses: tuple[Clause, ...] = ()
    foreign: bool = False
    wordless: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a request, and what it asks for when it is looked at by itself.

    Attributes:
        ranking: of the whole request's best skills for this clause. It has one match, without
            terms: the best for the clause.
        scores: for the clause, of the whole request's matches in their order.
        examples: how near the examples of each of them are to it; part of the score.
        highest: the best scores for the clause, at most two, best first.
        words: how many of its words some skill knows.
        listed: nothing but a comma sets it apart from the clause before.
    """

    ranking: Ranking
    scores: tuple[float, ...]
    examples: tuple[float, ...]
    highest: tuple[float, ...]
    words: int
    listed: bool = False
