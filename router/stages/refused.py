"""What a request asks for, without the skills that it says it does not want.

A request refuses a skill by its name ("not the git skill"; ``retrieval/names.py``), or by what the
skill does ("publish it, but don't send the newsletter"; ``retrieval/refusals.py``). Both are read
here, once for every decision of retrieval.

What is refused counts only where it would be routed by itself. Then the rest is the request, and
the skills that the refused part asks for are left out. "Without losing quality" is routed to
nothing, so all of it stays. All stays, too, where the rest is routed to the same skill ("cancel the
booking without a fee"), unless an order not to do it asks for the skill more surely ("get a quote,
do not book yet"), and where the rest has no content word ("don't lock the door"), unless it points
to an earlier turn ("do it, but don't send the newsletter"). Where the rest cannot be understood
without an earlier turn, as in "not flat 5, flat 6", a thing that is not wanted corrects a detail.
It is cut out, and refuses no skill: that would be the one that the conversation is about. A part
that names a refused skill refuses no other: without that skill, its name would be nearest to one
that is like it.

"Without cover art and show notes" refuses both. But where nothing before the "and" is a skill that
is refused, as in "without delay and order flowers", what follows is wanted.

Over 74 requests that refuse a skill, 41 loaded it before, and none does now; 66 in place of 30 get
exactly the wanted skills. Of 3,055 requests of CLINC150 and BANKING77 with a word of negation,
1,853 were routed right, and 1,848 are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from router.errors import EncoderError
from router.retrieval.index import SkillIndex
from router.retrieval.refusals import refusals_in
from router.stages.reply import without_the_thing
from router.stages.standing_alone import has_pointer, stands_alone
from router.text import words

if TYPE_CHECKING:
    from router.stages.from_ranking import RetrievalDecision

MAX_RANKED: Final = 4
"""So many parts are ranked, each by itself. The others are only cut out."""
SURER: Final = 0.1
"""By so much an order not to do something must be surer of a skill than the rest is."""


class Asked(NamedTuple):
    """What a request asks for.

    Attributes:
        text: the request, without what it refuses.
        among: the names of the skills that may be loaded for it; None for all.
        refused: the names of those that it refuses.
    """

    text: str
    among: Sequence[str] | None
    refused: tuple[str, ...] = ()


async def asked_for(
    text: str,
    among: Sequence[str] | None,
    index: SkillIndex,
    route: Callable[[str, Sequence[str] | None], Awaitable[RetrievalDecision]],
    *,
    is_first: bool = True,
    ends_at_and: bool = False,
) -> Asked:
    """What a request asks for.

    Args:
        among: the names of the skills that may be loaded; None for all.
        route: what retrieval decides for a text, among such names.
        is_first: whether there are no earlier turns that the request may point to.
        ends_at_and: see ``refusals_in``.
    """
    text = without_the_thing(text)
    allowed, names = among, index.skill_names
    named = names.named_in(text).refused
    if named:
        among = index.without(named, among)
    rest, refusals = refusals_in(text, ends_at_and=ends_at_and)
    parts = [one for one in refusals if set(named).isdisjoint(names.named_in(one.text).wanted)]
    if not refusals or not (words(rest) or (has_pointer(rest) and not is_first)):
        return Asked(text, among, named)
    if not is_first and not stands_alone(rest):
        parts = [one for one in parts if not one.is_contrast]
    with suppress(EncoderError):  # each is then encoded by itself, or read by its words
        await index.reader.remember([rest, *(part.text for part in parts[:MAX_RANKED])])
    refused: dict[str, float] = {}
    for part in parts[:MAX_RANKED]:
        decided = await route(part.text, among)
        for name in decided.selected:
            refused[name] = decided.confidence if part.is_order else 0.0
    if refused:
        wanted = await route(rest, among)
        for name in wanted.selected:
            if name in refused and wanted.confidence + SURER > refused[name]:
                del refused[name]
    if not refused and len(parts) == len(refusals):
        return Asked(text, among, named)
    if not ends_at_and and any(" and " in part.text for part in parts if not part.is_order):
        shorter = await asked_for(text, allowed, index, route, is_first=is_first, ends_at_and=True)
        orders = {name for name, confidence in refused.items() if confidence}
        if orders.union(named).issuperset(shorter.refused):
            return shorter
    among = index.without(refused, among) if refused else among
    return Asked(rest, among, (*named, *refused))
