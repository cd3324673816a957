"""Ranks the skills for a request, best first, for callers that decide for themselves.

``route`` may abstain. A program that shows a model a list of tools needs the best ones in any case.
So this always returns a ranking, together with what retrieval would decide.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from router.request import Request, check_limit
from router.result import Decision
from router.retrieval.discover import always_included, with_room
from router.retrieval.index import SkillIndex
from router.retrieval.matches import Match
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest
from router.stages.from_ranking import DEFAULT_CAUTION
from router.stages.further import MAX_CANDIDATES
from router.stages.retrieval import ranked


@dataclass(frozen=True, slots=True)
class RankedSkill:
    """One skill or tool of a ranking.

    Attributes:
        name: of the skill.
        score: comparable within one ranking only; None for a skill that is only always included.
        reason: why it is in the list, for the user.
        description: what it does, as its author says.
        payload: the program's own object, as it was given; None for a skill that has a file.
        match: the parts of the score; None where there is no score.
    """

    name: str
    score: float | None
    reason: str
    description: str
    payload: object
    match: Match | None


@dataclass(frozen=True, slots=True)
class RankedSkills:
    """The skills for a request, and what retrieval would decide.

    Attributes:
        skills: best first, then those that are always included and have no rank.
        decision: what retrieval alone would decide; ``abstain`` means that nothing seems to fit.
        selected: the names that it would load; empty unless ``decision`` is ``route``.
        confidence: that the decision is right, in (0, 1]; an estimate.
        reasoning: one sentence for a person.
        left_out: how many skills were not ranked because the caller may not use them.
        catalog_version: of the snapshot that was ranked.
        microseconds: time spent.
    """

    skills: tuple[RankedSkill, ...]
    decision: Decision
    selected: tuple[str, ...]
    confidence: float
    reasoning: str
    left_out: int
    catalog_version: str
    microseconds: float

    @property
    def names(self) -> tuple[str, ...]:
        """The names of ``skills``, in their order."""
        return tuple(skill.name for skill in self.skills)


async def rank(
    request: Request,
    *,
    catalog: Catalog,
    index: SkillIndex,
    limit: int = 10,
    always_include: Iterable[str] = (),
    caution: float = DEFAULT_CAUTION,
) -> RankedSkills:
    """Rank the skills for a request; the arguments are those of ``SemanticRouter.rank``. Always
    included skills that are not among the best replace the last of these. Where there are more of
    them than ``limit``, all of them are returned.

    Raises:
        InvalidRequest: the limit is out of range, or ``always_include`` is no list of names.
        EncoderError: a static encoder fails.
    """
    began = time.perf_counter()
    check_limit(limit)
    included = always_included(always_include, catalog, request.available)
    ranking, decided = await ranked(
        request, index, limit=max(limit, MAX_CANDIDATES), caution=caution
    )
    matches, missing = with_room(ranking.matches, included, limit)
    placed = [*((match.name, match) for match in matches), *((name, None) for name in missing)]
    return RankedSkills(
        tuple(_placed(catalog.skills[name], match) for name, match in placed),
        decided.decision,
        decided.selected,
        decided.confidence,
        decided.reason,
        left_out=catalog.count_without(request.available),
        catalog_version=catalog.version,
        microseconds=(time.perf_counter() - began) * 1e6,
    )


def _placed(skill: SkillManifest, match: Match | None) -> RankedSkill:
    score, reason = None, "always included"
    if match is not None:
        score, reason = match.score, f"matches on {match.shown()}"
    return RankedSkill(skill.name, score, reason, skill.description, skill.payload, match)
