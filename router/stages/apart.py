"""Skills that single clauses of a request ask for surely, as if they were requests of their own.

``further.py`` compares the scores of all skills for each clause, which finds a second skill also
where its clause says little. But it loses some clauses that leave no doubt: "transcribe it" and
"write show notes" are each routed by themselves, and "transcribe it and write show notes" loaded
one skill. So each clause is decided like a request, too. Its skill is loaded where it is ``SURE``,
and at least half of the clauses are routed, one of them to the first skill: most clauses of a story
only explain it. Behind a comma often stands a detail, so there all clauses must be routed.

Over the 22 catalogs of ``benchmarks/trades.py`` with examples, 53 of 125 requests for several
skills get exactly these in place of 50, and 18 of 797 for one skill get a wrong one beside it in
place of 16; without examples 17 in place of 15, and 2 as before. Over everyday tools, the shipped
skills and 574 real ones nothing changes.

Where a clause that some skill surely fits is routed to one that is not loaded, the loaded ones are
just what is wanted in 63% of 210 cases, and part of it in 26%, however sure they seem. Then the
confidence is at most ``UNANSWERED``, in the middle of 63% and 89%.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from router.retrieval.reader import Part, clauses

if TYPE_CHECKING:
    from router.stages.retrieval import RetrievalDecision

SURE: Final = 0.9
"""The least confidence in the skill of a clause, and the least probability that some skill fits."""
UNANSWERED: Final = 0.75
MAX_CLAUSES: Final = 5
"""A request of more clauses tells a story. To decide a clause takes about as long as a request."""
MAX_SHOWN_CHARACTERS: Final = 40


class Single(NamedTuple):
    """One clause, decided by itself.

    Attributes:
        clause: the clause.
        skill: the skill that it is routed to; empty where it is not routed.
        confidence: in that skill.
        fits: the probability that some skill fits.
    """

    clause: Part
    skill: str
    confidence: float
    fits: float

    def __str__(self) -> str:
        text = " ".join(self.clause.text.split())
        if len(text) > MAX_SHOWN_CHARACTERS:
            text = f"{text[: MAX_SHOWN_CHARACTERS - 1].rstrip()}…"
        return f"{text}: {f'{self.skill} {self.confidence:.2f}' if self.skill else 'nothing'}"


@dataclass(frozen=True, slots=True)
class Apart:
    """The clauses of a request, each decided by itself."""

    singles: tuple[Single, ...]

    def surely_asked_for(self, selected: Sequence[str]) -> dict[str, float]:
        """The skills besides the selected ones that a clause surely asks for, each with the
        confidence in it, surest first."""
        routed = [one for one in self.singles if one.skill]
        if 2 * len(routed) < len(self.singles) or selected[0] not in {one.skill for one in routed}:
            return {}
        all_routed = len(routed) == len(self.singles)
        return {
            one.skill: one.confidence
            for one in sorted(routed, key=lambda one: -one.confidence)
            if min(one.confidence, one.fits) >= SURE
            and (all_routed or not one.clause.after_comma)
            and one.skill not in selected
        }

    def unanswered(self, selected: Sequence[str]) -> bool:
        """Whether a clause that some skill surely fits is routed to one that is not selected."""
        found = {one.skill for one in self.singles if one.skill and one.fits >= SURE}
        return not found.issubset(selected)


def clauses_apart(text: str) -> list[Part]:
    """The clauses of a request that are decided by themselves; none where there is but one."""
    parts = clauses(text, least=1)
    return parts if 2 <= len(parts) <= MAX_CLAUSES else []


async def decided_apart(
    parts: Sequence[Part],
    named: Sequence[str],
    route: Callable[[str], Awaitable[RetrievalDecision]],
) -> Apart:
    """Some clauses, each decided by ``route``. A clause that is the name of a skill ("build, test
    and deploy") counts only if it is one of ``named``, which the request names."""
    singles = []
    for part in parts:
        decided = await route(part.text)
        skill = decided.selected[0] if decided.selected else ""
        if decided.names_skills and skill not in named:
            skill = ""
        singles.append(Single(part, skill, decided.confidence, decided.fits or 0.0))
    return Apart(tuple(singles))
