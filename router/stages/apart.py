"""Skills that single clauses of a request ask for surely, as if they were requests of their own.

``further.py`` compares the scores of all skills for each clause, which finds a second skill also
where its clause says little. But it loses some clauses that leave no doubt: "transcribe it" and
"write show notes" are each routed by themselves, and "transcribe it and write show notes" loaded
one skill. So each clause is decided like a request, too. Its skill is loaded where it is ``SURE``,
another clause asks for the first skill as surely, and at least half of the clauses are routed: most
clauses of a story only explain it. Behind a comma often stands a detail. So it counts only in a
list that ends with "and" and whose clauses are all routed.

Over the 22 catalogs of ``benchmarks/trades.py`` with examples, 52 of 125 requests for several
skills get exactly these in place of 50; without examples 16 in place of 15. Nothing else changes
there, nor over everyday tools, the shipped skills and 574 real ones. Of 2,400 requests of BANKING77
and CLINC150 with several clauses, which all want one intent, 25 more get another beside it. Where
the first skill need not be sure and any comma may stand between, it is 58 more, and 54 and 17 of
the 125 are exact.

Where a clause that some skill surely fits is routed to one that is not loaded, the loaded ones are
just what is wanted in 63% of 210 cases, and part of it in 26%, however sure they seem. Then the
confidence is at most ``UNANSWERED``, in the middle of 63% and 89%.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from router.retrieval.reader import Part, clauses
from router.stages.likelihood import Likelihood

if TYPE_CHECKING:
    from router.retrieval.matches import Ranking
    from router.stages.from_ranking import RetrievalDecision

SURE: Final = 0.9
"""The least confidence in the skill of a clause, and the least probability that some skill fits."""
UNANSWERED: Final = 0.75
MAX_CLAUSES: Final = 5
"""A request of more clauses tells a story. To decide a clause takes about as long as a request."""
LEAST_RIGHT: Final = 0.4
"""The least probability that the best skill of a clause, as the whole request is ranked, is right,
for each clause to be decided by itself. Of 953 requests of ``benchmarks/trades.py`` with several
clauses this leaves 509; all that add a skill are among them, and 60 of 73 whose confidence is
lowered."""
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

    @property
    def is_sure(self) -> bool:
        """Whether it is sure that some skill fits, and that it is this one."""
        return bool(self.skill) and min(self.confidence, self.fits) >= SURE

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
        routed = sum(bool(one.skill) for one in self.singles)
        sure = [one for one in self.singles if one.is_sure]
        if 2 * routed < len(self.singles) or selected[0] not in {one.skill for one in sure}:
            return {}
        is_list = routed == len(self.singles) and not self.singles[-1].clause.after_comma
        return {
            one.skill: one.confidence
            for one in sorted(sure, key=lambda one: -one.confidence)
            if one.skill not in selected and (is_list or not one.clause.after_comma)
        }

    def unanswered(self, selected: Sequence[str]) -> bool:
        """Whether a clause that some skill surely fits is routed to one that is not selected."""
        found = {one.skill for one in self.singles if one.skill and one.fits >= SURE}
        return not found.issubset(selected)


def clauses_apart(text: str) -> list[Part]:
    """The clauses of a request that are decided by themselves; none where there is but one."""
    parts = clauses(text, least=1)
    return parts if 2 <= len(parts) <= MAX_CLAUSES else []


def compared_with_whole(
    parts: Sequence[Part], whole: Ranking, selected: Sequence[str]
) -> Apart | None:
    """Some clauses as they were ranked with the whole request, where this shows that none of them
    asks for a skill that is not selected; None where it does not."""
    if len(parts) != len(whole.clauses):  # a short clause is not ranked by itself there
        return None
    singles = []
    for part, clause in zip(parts, whole.clauses, strict=True):
        likelihood, best = Likelihood.of(clause.ranking), clause.ranking.matches[0].name
        is_likely = likelihood.right >= LEAST_RIGHT
        if is_likely and best not in selected:
            return None
        skill = best if is_likely else ""
        singles.append(Single(part, skill, likelihood.right, likelihood.fits))
    return Apart(tuple(singles))


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
