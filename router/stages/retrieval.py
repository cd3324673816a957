"""Stage 4: decides by retrieval alone.

1. What a request says it does not want is taken out of it (``refused.py``).
2. The rest is ranked, and decided from the ranking (``from_ranking.py``). Clauses that surely ask
   for further skills add them (``apart.py``).
3. A follow-up is read once more in the context of the conversation (``followup.py``), and the
   better of the two readings is taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from router.errors import EncoderError, UnknownSkill
from router.learning.stage_calibrations import ENCODER_FAULT
from router.request import Request
from router.result import Decision
from router.retrieval.index import SkillIndex
from router.retrieval.matches import Ranking
from router.retrieval.reader import Part
from router.stages.apart import UNANSWERED, Apart, clauses_apart, compared_with_whole, decided_apart
from router.stages.followup import RequestInContext, in_context
from router.stages.from_ranking import (
    DEFAULT_CAUTION,
    MAX_SELECTED,
    RetrievalDecision,
    decide_from_ranking,
    instructs_the_router,
    with_more,
)
from router.stages.further import MAX_CANDIDATES
from router.stages.refused import Asked, asked_for
from router.stages.reply import consents, is_comment, offer_before, only_says_no, says_no, wishes
from router.stages.standing_alone import (
    adds_a_detail,
    is_whole_question,
    points_back,
    verb_beside_pronoun,
)

NEW_SUBJECT: Final = 0.65
"""A short request that is routed alone with this confidence, by one of its words, is not read in
its context: the earlier turn has more words, and would win. Over the 22 catalogs of
``benchmarks/trades.py`` with examples, terse requests behind a turn about another skill were routed
right in 87 of 113 cases in place of 78, and as many follow-ups as before. Of 528 fragments such as
"10 copies" 3% fewer got the skill of the turn before."""
UNRELATED_FITS: Final = 0.2
UNRELATED_SPECIAL: Final = -0.3
"""A request that adds no detail begins a new subject, too, where it is unrelated to all skills: the
probability that one fits it alone is below ``UNRELATED_FITS``, and its signal ``special`` is below
``UNRELATED_SPECIAL``. In its context it would load the skill of the turn before: "and a pizza
recipe?" did, with .98. Over the 22 catalogs of ``benchmarks/trades.py``, everyday tools and the
shipped skills, plain and enriched, 40 such requests each behind another turn of a catalog were
routed less often by 45%, and of 150 follow-ups that were routed right one was lost."""
RELATED: Final = 0.33
RELATED_FITS: Final = 0.6
"""A whole question of its own (``is_whole_question``) begins a new subject, too, where it is hardly
like its context and the skill that is chosen in it: its ``SkillIndex.relation`` is below
``RELATED``, and the probability that a skill fits it alone is below ``RELATED_FITS``. Behind turns
of the 22 catalogs of ``benchmarks/trades.py``, everyday tools, the shipped skills and three small
catalogs, 143 everyday requests loaded a skill in 23% of 7,436 cases, and do so in 8%; 64 others,
which had no part in the choice, in 28% and 7% of 3,328. None of 178 follow-ups that were routed
right was lost, and one of 42 questions such as "when is lunch?" about a call sheet. With each
catalog left out of the choice, 5% of these and 91% of the unrelated ones were read alone. No
better: cosines of content words only or of the nearest single words, and the nearest request of the
background. None of these tells statements ("I had a bad day") and names of things ("history of
chess") from the details that a follow-up adds."""
REPLY_CONFIDENCE: Final = 0.9
"""The confidence that nothing is to be loaded for a comment on an answer, as "that worked", and for
who declines an offer."""
OTHER_THAN_OFFERED: Final = 0.85
"""A reply that says no to an offer, and is routed alone to another skill with this confidence, asks
for that skill: "no, the wifi is down"."""
ASKED_CONFIDENCE: Final = 0.6
"""The confidence of asking back behind an offer, where a reply tells neither yes nor no."""
MAX_UNKNOWN: Final = 3
"""How many unknown names of ``available`` the reason shows, where none of its names is
installed."""


async def decide(
    request: Request, index: SkillIndex, *, caution: float = DEFAULT_CAUTION
) -> RetrievalDecision:
    """Rank the skills for a request and decide what to do about the best ones.

    Args:
        request: the request; a follow-up is read together with the turns before it (``followup``).
        caution: least probability, in [0, 1], that a loaded skill is right. The least probability
            that some skill fits follows from it (``_least_fit``).

    Raises:
        EncoderError: the request cannot be encoded.
    """
    began = time.perf_counter()
    ranking, decided = await ranked(request, index, limit=MAX_CANDIDATES, caution=caution)
    reason, evidence, available = decided.reason, decided.evidence, request.available
    if available is not None:
        evidence = {**evidence, "left_out": index.catalog.count_without(available)}
        if not ranking.matches:
            reason += _unknown(available, [skill.name for skill in index.catalog.routable])
    spent = (time.perf_counter() - began) * 1e6
    return replace(decided, reason=reason, evidence=evidence, microseconds=spent)


async def ranked(
    request: Request, index: SkillIndex, *, limit: int, caution: float = DEFAULT_CAUTION
) -> tuple[Ranking, RetrievalDecision]:
    """The ranking for a request and the decision from it; see ``decide``."""
    reader = _Reader(index, limit, caution)
    asked = Asked(request.text, request.available)
    if not instructs_the_router(request.text):  # which must not be cut out as refused
        asked = await asked_for(
            request.text, request.available, index, reader.decide, is_first=not request.history
        )
    ranking, decided = await reader.alone(asked)
    if request.history and ranking.matches:
        ranking, decided = await reader.in_conversation(request, asked, ranking, decided)
    if reader.faults and not decided.by_words_alone:  # a part was read by its words
        evidence = {**decided.evidence, ENCODER_FAULT: reader.faults[0]}
        decided = replace(decided, evidence=evidence)
    return ranking, decided


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads a request alone and in its conversation, over one index.

    Attributes:
        faults: why parts of the request could not be encoded.
    """

    index: SkillIndex
    limit: int
    caution: float
    faults: list[str] = field(default_factory=list)

    async def rank(
        self, text: str, among: Sequence[str] | None, *, context: str = "", limit: int | None = None
    ) -> Ranking:
        """The ranking of a text among some skills. A fault of the encoder is noted."""
        found = await self.index.rank(
            text, context=context, among=among, limit=self.limit if limit is None else limit
        )
        if found.fault:
            self.faults.append(found.fault)
        return found

    async def decide(self, part: str, among: Sequence[str] | None) -> RetrievalDecision:
        """The decision on a part of a request, among some skills."""
        found = await self.rank(part, among, limit=MAX_CANDIDATES)
        return decide_from_ranking(part, found, caution=self.caution)

    async def alone(self, asked: Asked) -> tuple[Ranking, RetrievalDecision]:
        """The ranking of what is asked, without the conversation, and the decision from it."""
        text, among, _ = asked
        ranking = await self.rank(text, among)
        decided = decide_from_ranking(text, ranking, caution=self.caution)
        if decided.selected and not ranking.fault and (parts := clauses_apart(text)):
            apart = compared_with_whole(parts, ranking, decided.selected)
            try:
                apart = apart or await self._decided_apart(parts, among, ranking.named)
            except EncoderError as error:  # the whole was encoded before: it is decided by that
                self.faults.append(str(error))
            else:
                decided = _with_apart(decided, apart)
        return ranking, _without(asked.refused, decided)

    async def _decided_apart(
        self, parts: Sequence[Part], among: Sequence[str] | None, named: Sequence[str]
    ) -> Apart:
        await self.index.reader.remember(part.text for part in parts)
        return await decided_apart(parts, named, partial(self.decide, among=among))

    async def in_conversation(
        self, request: Request, asked: Asked, ranking: Ranking, alone: RetrievalDecision
    ) -> tuple[Ranking, RetrievalDecision]:
        """The decision on a request with a history, and its ranking.

        A request that names a skill, begins a new subject, or says no to an offer and surely asks
        for something else, is decided alone. A mere "no" to an offer and a comment on an answer
        load nothing. What is left is read in the context of the conversation.
        """
        decided, chosen = alone, RequestInContext(asked.text)
        follow_up = in_context(request, self.index.skill_names)
        offer = offer_before(request)
        no = bool(offer) and not follow_up.only_consents and says_no(request.text)
        if alone.names_skills or (no and await self._is_of_another(offer, asked, alone)):
            pass
        elif no and not wishes(request.text):
            decided = _nothing("the request declines what the assistant offers", alone)
        elif is_comment(request):
            decided = _nothing("the request only comments on the answer before it", alone)
        elif follow_up.only_consents or not _begins_subject(asked.text, ranking, alone, says_no=no):
            ranking, decided, chosen = await self._in_context(
                follow_up, asked, ranking, alone, offer=offer
            )
        return ranking, replace(
            decided,
            reason=chosen.explained(decided.reason),
            evidence={**decided.evidence, **chosen.evidence},
            text_read=chosen.whole,
        )

    async def _is_of_another(self, offer: str, asked: Asked, alone: RetrievalDecision) -> bool:
        """Whether a reply that says no is surely routed to another skill than the offer is."""
        is_sure = alone.selected and alone.confidence >= OTHER_THAN_OFFERED
        if not is_sure or only_says_no(asked.text):
            return False
        offered = await self.decide(offer, asked.among)
        return set(alone.selected).isdisjoint(offered.ranked[: len(alone.selected)])

    async def _in_context(
        self,
        follow_up: RequestInContext,
        asked: Asked,
        ranking: Ranking,
        alone: RetrievalDecision,
        *,
        offer: str,
    ) -> tuple[Ranking, RetrievalDecision, RequestInContext]:
        """The better of the decision ``alone`` and those in the context of the conversation, with
        its ranking and how the request was read for it.

        The route with the higher confidence is taken; where there is no route, the last reading.
        Of "cancel it" the verb tells nothing where the skill of the context knows it, too; then the
        context decides. What the assistant has offered, and the request wants, goes before what the
        request says by itself. A context that tries to instruct the router is ignored, and so is
        that of a question about something else (``_is_unrelated``).
        """
        best = ranking, alone, RequestInContext(asked.text)
        if instructs_the_router(follow_up.whole):
            return best
        verb = verb_beside_pronoun(asked.text)
        for reading in follow_up.readings():
            found = await self.rank(reading.asked, asked.among, context=reading.context)
            first = found.matches[0]
            if not found.fault and await _is_unrelated(reading, alone, first.name, self.index):
                continue
            read = decide_from_ranking(reading.asked, found, caution=self.caution)
            if offer and read.selected and not _is_wanted(reading, ranking, read):
                read = _asked_back(await self.decide(offer, asked.among))
            is_shared = verb in first.terms and first.name not in alone.selected
            is_surer = bool(reading.question) or read.confidence > alone.confidence
            if is_shared or not alone.selected or (read.selected and is_surer):
                best = found, _without(asked.refused, read), reading
            if read.selected:
                break
        return best


def _nothing(reason: str, decided: RetrievalDecision) -> RetrievalDecision:
    """The decision to load nothing for a reply that asks for nothing."""
    return RetrievalDecision(
        Decision.ABSTAIN, (), REPLY_CONFIDENCE, reason, decided.evidence, decided.matches
    )


def _is_wanted(reading: RequestInContext, alone: Ranking, read: RetrievalDecision) -> bool:
    """Whether a reply to an offer wants what it is read to want: it consents, it has a word of each
    of these skills, or it completes or corrects the offer without one ("on Friday"). ``alone`` is
    the ranking of the reply by itself."""
    if reading.question or consents(reading.text) or wishes(reading.text):
        return True
    by_word = {match.name for match in alone.matches if match.terms}
    return by_word.issuperset(read.selected)


def _asked_back(offered: RetrievalDecision) -> RetrievalDecision:
    """The question whether an offer is wanted, of which a reply says neither yes nor no."""
    reason = "the request does not say whether it wants what the assistant offers"
    return replace(
        offered, decision=Decision.CLARIFY, selected=(), confidence=ASKED_CONFIDENCE, reason=reason
    )


async def _is_unrelated(
    reading: RequestInContext, alone: RetrievalDecision, best: str, index: SkillIndex
) -> bool:
    """Whether a request is a question about something else than its context: see ``RELATED``.
    ``alone`` was decided without the context, and ``best`` is the best match with it. Where the
    encoder has no background, nothing was measured, and the answer is no."""
    if alone.fits is None or alone.fits >= RELATED_FITS or "special" not in alone.evidence:
        return False
    if not is_whole_question(reading.text):
        return False
    return await index.relation(reading.text, reading.context, best) < RELATED


def _without(refused: tuple[str, ...], decided: RetrievalDecision) -> RetrievalDecision:
    """A decision that was made without some refused skills, and says so."""
    if not refused:
        return decided
    reason = f"{decided.reason}; not wanted: {', '.join(refused)}"
    return replace(decided, reason=reason, evidence={**decided.evidence, "refused": refused})


def _with_apart(decided: RetrievalDecision, apart: Apart) -> RetrievalDecision:
    """A route, with the skills that single clauses surely ask for (``apart.py``)."""
    by_clause = tuple(map(str, apart.singles))
    decided = replace(decided, evidence={**decided.evidence, "by_clause": by_clause})
    wanted = apart.surely_asked_for(decided.selected)
    names = tuple(wanted)[: MAX_SELECTED - len(decided.selected)]
    if names:
        decided = with_more(decided, names, wanted[names[-1]])
    if apart.unanswered(decided.selected):
        decided = replace(decided, confidence=min(decided.confidence, UNANSWERED))
    return decided


def _begins_subject(
    text: str, ranking: Ranking, decided: RetrievalDecision, *, says_no: bool
) -> bool:
    """Whether a request that names no skill needs no context, ranked alone: it does not point back
    but to say no, and is routed well enough by one of its words, it is unrelated to all skills, or
    it has no word at all, as "???"."""
    fits, special = decided.fits, decided.evidence.get("special")
    is_unrelated = (
        fits is not None
        and fits < UNRELATED_FITS
        and isinstance(special, float)
        and special < UNRELATED_SPECIAL
        and not adds_a_detail(text)
    )
    is_sure = bool(decided.selected) and decided.confidence >= NEW_SUBJECT
    by_word = bool(ranking.matches[0].terms) and (says_no or not points_back(text))
    return ranking.wordless or is_unrelated or (is_sure and by_word)


def _unknown(among: Sequence[str], offered: Sequence[str]) -> str:
    """The names of ``available`` that are not installed, with similar names that are."""
    unknown = sorted(set(among).difference(offered))
    named = "; ".join(str(UnknownSkill.among(name, offered)) for name in unknown[:MAX_UNKNOWN])
    more = len(unknown) - MAX_UNKNOWN
    return f"{': ' if named else ''}{named}{f'; and {more} more' if more > 0 else ''}"
