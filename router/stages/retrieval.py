"""Stage 4: what retrieval alone would answer.

A skill that the request names outright is loaded. Otherwise the best match is loaded when it is
likely enough that something fits and that this match is right (``router/stages/likelihood.py``);
the setting ``vector.caution`` says how likely that must be. A request of several clauses may need
several skills (``router/stages/further.py``). If its clauses want different things, the whole may
be like no skill. Then one clause that would be routed alone is enough, if another one likely asks
for something else.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from router.errors import UnknownSkill
from router.request import Request
from router.result import Decision, Evidence
from router.retrieval.index import SkillIndex
from router.retrieval.matches import Match, Ranking
from router.settings.settings import CAUTIONS
from router.stages.followup import Reading, is_courtesy, reading_of
from router.stages.further import MAX_CANDIDATES, further
from router.stages.likelihood import Likelihood

DEFAULT_CAUTION: Final = CAUTIONS["balanced"]
"""The caution where none is set."""
CLARIFY_SHARE: Final = 0.6
"""The router asks back when something fits with at least this share of the probability that a route
needs over a background. Below it, it answers that nothing fits."""
TIE_MARGIN: Final = 0.002
"""When the two best scores differ by less, the router asks which skill is meant."""
OTHER_CLAUSE_SHARE: Final = 0.8
"""One clause is enough for a route when another clause asks for another skill: something fits it
with the probability that a route needs, and the skill is right with at least this share of that.
58% of such routes are right; 34% were without this condition and without that of the two best
matches (21 catalogs, plain and enriched)."""
MAX_SELECTED: Final = 3
NAMED_CONFIDENCE: Final = 0.98
"""The confidence in a skill that the request names outright."""

MAX_SHOWN_TERMS: Final = 8
MAX_UNKNOWN: Final = 3
"""Names that are not installed and are shown where nothing else may be chosen."""

_INSTRUCTS_THE_ROUTER: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,20}"
    r"\b(?:your|previous|prior|above|earlier|preceding)\b[^.\n]{0,20}"
    r"\b(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|restrictions?)\b"
    r"|\b(?:ignore|disregard|forget)\b[^.\n]{0,10}"
    r"\byou(?:.ve been| have been| were) (?:told|taught)\b"
    r"|\byour system prompt\b"
    r"|\byou are now (?:an? |the )?(?:\w*gpt|unrestricted|jailbroken)\b"
    r"|</(?:system|request|skills?|instructions?)>[^<\n]{0,20}<"
    r"|^[^\S\n]*assistant\s*:",
    re.IGNORECASE | re.MULTILINE,
)
"""Finds attempts to instruct whoever reads the request. No skill is loaded for such a text, even if
it names one: that is what its author wants. Developers quote logs, markup and prompts, so only a
few forms count."""
INSTRUCTED_CONFIDENCE: Final = 0.9
"""The confidence with which such a request is refused."""


@dataclass(frozen=True, slots=True)
class RetrievalDecision:
    """What retrieval alone would answer.

    Attributes:
        decision: route, clarify or abstain.
        selected: the skills to load; empty unless ``decision`` is ROUTE.
        confidence: estimated probability, in (0, 1], that the decision is right.
        reason: one sentence for a person.
        evidence: what the decision rests on.
        matches: the best ones, best first; none where the request may be offered nothing.
        microseconds: time spent.
        read: the request behind what was said before it, where it was read so; else empty.
    """

    decision: Decision
    selected: tuple[str, ...]
    confidence: float
    reason: str
    evidence: Evidence
    matches: tuple[Match, ...] = ()
    microseconds: float = 0.0
    read: str = ""

    @property
    def ranked(self) -> tuple[str, ...]:
        """The names of ``matches``."""
        return tuple(match.name for match in self.matches)

    @property
    def fits(self) -> float | None:
        """Estimated probability that the best match fits, in (0, 1); None where nothing was
        weighed: there is no skill, or the request has no word or tries to instruct the router."""
        fits = self.evidence.get("fits")
        return fits if isinstance(fits, float) else None


async def decide(
    request: Request, index: SkillIndex, *, caution: float = DEFAULT_CAUTION
) -> RetrievalDecision:
    """Rank the skills for a request and decide what to do about the best ones.

    Args:
        request: the request; one that cannot stand alone is read with what was said before it.
        caution: least probability, in [0, 1], that a loaded skill is right. That something fits
            must be likely as well: a quarter of the way from there to certainty, or half of the
            way where the encoder has no background.

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
    """A request's ranking and what is decided from it; see ``decide``.

    With a context the request is read twice, alone and in that context, and the surer route counts:
    a request that seems to lean on what was said may be the first one about something else. Where
    neither is a route, it is in its context that it is refused or asked about. A context that tries
    to instruct the router is not read.
    """
    text, among = request.text, request.available
    ranking = await index.rank(text, among=among, limit=limit)
    decided = decide_from_ranking(text, ranking, caution=caution)
    if not request.history or not ranking.matches:
        return ranking, decided
    reading, read = reading_of(request, index.skill_names), Reading(text)
    if reading.context and _INSTRUCTS_THE_ROUTER.search(reading.context) is None:
        behind = await index.rank(text, context=reading.context, among=among, limit=limit)
        other = decide_from_ranking(text, behind, caution=caution)
        if not decided.selected or (other.selected and other.confidence > decided.confidence):
            ranking, decided, read = behind, other, reading
    return ranking, replace(
        decided,
        reason=read.explained(decided.reason),
        evidence={**decided.evidence, **read.evidence},
        read=read.whole,
    )


def _unknown(among: Sequence[str], offered: Sequence[str]) -> str:
    """Which of the names nobody offers, and what may have been meant by them."""
    unknown = sorted(set(among).difference(offered))
    named = "; ".join(str(UnknownSkill.among(name, offered)) for name in unknown[:MAX_UNKNOWN])
    more = len(unknown) - MAX_UNKNOWN
    return f"{': ' if named else ''}{named}{f'; and {more} more' if more > 0 else ''}"


def decide_from_ranking(
    request: str, ranking: Ranking, *, caution: float = DEFAULT_CAUTION
) -> RetrievalDecision:
    """Decide what to do about the best of a request's ranking; see ``decide``."""
    if not ranking.matches:
        return RetrievalDecision(Decision.ABSTAIN, (), 1.0, "there is no skill to choose from", {})
    if _INSTRUCTS_THE_ROUTER.search(request) is not None:
        reason = "the request tries to instruct the router"
        return RetrievalDecision(Decision.ABSTAIN, (), INSTRUCTED_CONFIDENCE, reason, {})
    if ranking.wordless:  # the encoder has vectors of signs, and some skill is always nearest
        return RetrievalDecision(Decision.ABSTAIN, (), 1.0, "the request has no word", {})
    if ranking.named:
        decided = _of_named(ranking)
    else:
        decided = _with_clauses(_of_best(ranking, caution), ranking, caution)
        if decided.decision is Decision.CLARIFY and is_courtesy(request):
            confidence, reason = 1 - (decided.fits or 0.0), "no skill fits thanks or a greeting"
            decided = RetrievalDecision(Decision.ABSTAIN, (), confidence, reason, decided.evidence)
    return replace(decided, matches=ranking.matches[:MAX_CANDIDATES])


def _of_named(ranking: Ranking) -> RetrievalDecision:
    selected = ranking.named[:MAX_SELECTED]
    likelihood = Likelihood.of(ranking)
    reason = f"the request names {' and '.join(selected)}"
    evidence = {"fits": max(likelihood.fits, NAMED_CONFIDENCE), "named": True, **likelihood.signals}
    return RetrievalDecision(Decision.ROUTE, selected, NAMED_CONFIDENCE, reason, evidence)


def _of_best(ranking: Ranking, caution: float) -> RetrievalDecision:
    best = ranking.matches[0]
    likelihood = Likelihood.of(ranking)
    fits, right = likelihood.fits, likelihood.right
    evidence: Evidence = {"fits": fits, "right": right, **likelihood.signals}
    shown = best.shown(MAX_SHOWN_TERMS)
    if fits < CLARIFY_SHARE * _least_fit(caution) and not ranking.foreign:
        only = "only " if best.terms else ""  # "meaning alone" says it already
        reason = f"no skill fits; the nearest, {best.name}, matches {only}on {shown}"
        return RetrievalDecision(Decision.ABSTAIN, (), 1 - fits, reason, evidence)
    least = _least_fit if ranking.background is not None else _least_fit_without_background
    sure = fits >= least(caution) and right >= caution
    if ranking.foreign and not sure:
        reason = (
            f"no skill fits; the nearest, {best.name}, has no word of the request, which is hardly "
            "English, and the encoder knows English alone"
        )
        return RetrievalDecision(Decision.ABSTAIN, (), 1 - fits, reason, evidence)
    if len(ranking.matches) > 1 and ranking.lead < TIE_MARGIN:
        reason = f"{best.name} and {ranking.matches[1].name} fit equally well"
        return RetrievalDecision(Decision.CLARIFY, (), 1 - fits / 2, reason, evidence)
    if not sure:
        reason = f"{best.name} may fit ({shown}), but not surely enough to load it"
        return RetrievalDecision(Decision.CLARIFY, (), 1 - right, reason, evidence)
    reason = f"{best.name} matches on {shown}"
    return RetrievalDecision(Decision.ROUTE, (best.name,), right, reason, evidence)


def _with_clauses(decided: RetrievalDecision, whole: Ranking, caution: float) -> RetrievalDecision:
    """The decision with the skills that single clauses ask for: beside the best match, or, where
    the whole is like no skill because its clauses want different things, in its place."""
    if not decided.selected:
        decided = _of_clause(decided, whole, caution)
    if not decided.selected:
        return decided
    wanted = further(whole, decided.selected[0], caution)
    names = tuple(wanted)[: MAX_SELECTED - 1]
    if not names:
        return decided
    asks = "one clause asks for" if len(names) == 1 else "clauses ask for"
    return replace(
        decided,
        selected=(*decided.selected, *names),
        confidence=min(decided.confidence, wanted[names[-1]]),
        reason=f"{decided.reason}; {asks} {' and '.join(names)}",
        evidence={**decided.evidence, "clauses": names},
    )


def _of_clause(decided: RetrievalDecision, whole: Ranking, caution: float) -> RetrievalDecision:
    """A route to the skill of one clause: the surest one that asks for one of the two best matches,
    if another clause likely asks for another skill. Else ``decided``: a clause of a request for one
    skill, or for none, is like some skill by chance."""
    request = []
    for clause in whole.clauses:
        likelihood = Likelihood.of(clause.ranking)
        request.append((likelihood.right, likelihood.fits, clause.ranking.matches[0].name))
    best = {match.name for match in whole.matches[:2]}
    sure = [
        (right, fits, name)
        for right, fits, name in request
        if right >= caution and fits >= _least_fit_without_background(caution) and name in best
    ]
    if not sure:
        return decided
    confidence, fit, chosen = max(sure)
    if not any(
        right >= OTHER_CLAUSE_SHARE * caution and fits >= caution and name != chosen
        for right, fits, name in request
    ):
        return decided
    evidence = {**decided.evidence, "fits": fit, "right": confidence}
    reason = f"one clause asks for {chosen}"
    return RetrievalDecision(Decision.ROUTE, (chosen,), confidence, reason, evidence)


def _least_fit(caution: float) -> float:
    """How likely it must be that something fits, where the request was compared with the
    background: a quarter of the way from the caution to certainty."""
    return (1 + 3 * caution) / 4


def _least_fit_without_background(caution: float) -> float:
    """The same without that comparison, which makes estimates less certain: half of the way."""
    return (1 + caution) / 2
