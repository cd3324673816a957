"""Why one skill won and another did not: retrieval's ranking beside the answer.

The ranking is made once more for the request, so it is there for every answer, also for one that
came from a cache or from an LLM. A skill's score is the sum of three weighted parts, so the lead of
one skill over another can be split into them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from router.request import Request
from router.result import Number, RoutingResult
from router.retrieval.index import SkillIndex
from router.retrieval.matches import Match
from router.retrieval.scoring import DENSE_WEIGHT, EXAMPLES_WEIGHT, LEXICAL_WEIGHT
from router.stages.retrieval import ranked

PARTS: Final = ("wording", "meaning", "examples")
"""What a score is made of: words in common (BM25F), the encoder's cosine, and how near the skill's
examples are."""
SHOWN_TERMS: Final = 8
CANDIDATES: Final = 10
"""How many of the best skills are shown in any case."""


@dataclass(frozen=True, slots=True)
class Example:
    """The example request of a skill that is nearest to what was asked, and the cosine of both."""

    text: str
    cosine: Number


@dataclass(frozen=True, slots=True)
class Weighed:
    """One skill of the ranking.

    Attributes:
        role: ``selected``, ``suggested`` or ``not chosen``.
        score: the sum of ``parts``.
        parts: the weighted parts, in the order of ``PARTS``; one may be below 0.
        terms: words of the request found in the skill, strongest first.
        example: its nearest example; None when it has none.
    """

    name: str
    role: str
    description: str
    score: Number
    parts: tuple[Number, Number, Number]
    terms: tuple[str, ...]
    example: Example | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an answer is what it is.

    Attributes:
        candidates: the best skills by retrieval and those of the answer, best first.
        winner: the first selected skill, or the best one where none is selected.
        runner_up: the best of those that were not selected.
        lead: one sentence that splits the distance of their scores; empty without a runner-up.
    """

    candidates: tuple[Weighed, ...]
    winner: Weighed | None
    runner_up: Weighed | None
    lead: str


async def explain(request: Request, result: RoutingResult, index: SkillIndex) -> Explanation:
    """The evidence behind an answer; ``index`` is of the skills that it was answered over, or of
    later ones.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    everything = max(1, len(index.catalog.routable))
    ranking, decided = await ranked(request, index, limit=everything)
    selected = result.selected_skills
    other = next((match.name for match in ranking.matches if match.name not in selected), None)
    shown = {*selected, *result.suggested_skills, other}
    candidates = [
        Weighed(
            name=match.name,
            role=_role_of(match.name, result),
            description=index.catalog.skills[match.name].description,
            score=match.score,
            parts=_weighted(match),
            terms=match.terms,
            example=Example(*near)
            if (near := await index.nearest_example(decided.text_read or request.text, match.name))
            else None,
        )
        for place, match in enumerate(ranking.matches)
        if place < CANDIDATES or match.name in shown
    ]
    winner = next((one for one in candidates if one.name in selected[:1]), None)
    if winner is None:
        winner, runner_up = (*candidates[:2], None, None)[:2]
    else:
        runner_up = next((one for one in candidates if one.name == other), None)
    return Explanation(
        candidates=tuple(candidates),
        winner=winner,
        runner_up=runner_up,
        lead="" if winner is None or runner_up is None else _lead_of(winner, runner_up),
    )


def _role_of(name: str, result: RoutingResult) -> str:
    if name in result.selected_skills:
        return "selected"
    return "suggested" if name in result.suggested_skills else "not chosen"


def _weighted(match: Match) -> tuple[float, float, float]:
    """The parts of a skill's score, in the order of ``PARTS``."""
    return (
        LEXICAL_WEIGHT * match.lexical,
        DENSE_WEIGHT * match.cosine,
        EXAMPLES_WEIGHT * match.examples,
    )


def _lead_of(winner: Weighed, other: Weighed) -> str:
    """One sentence that splits the distance of two scores into its parts."""
    gap = winner.score - other.score
    ahead, behind = (winner, other) if gap >= 0 else (other, winner)
    parts = [
        f"{label} {mine - theirs:+.3f}"
        for label, mine, theirs in zip(PARTS, ahead.parts, behind.parts, strict=True)
    ]
    only = [term for term in ahead.terms if term not in behind.terms]
    words = f"; only it has: {', '.join(only[:SHOWN_TERMS])}" if only else ""
    return f"{ahead.name} is {abs(gap):.3f} ahead of {behind.name} ({', '.join(parts)}){words}"
