"""What happens to a request that no cache knows: the local answer inside the error bound, the LLM,
the vector fallback, and what is learnt from it.

With an LLM the evidence decides whether it need be asked at all. Without one, the evidence speaks
for the skills that it covers and the vector stage for the others. Whatever the LLM says becomes
evidence for the requests to come.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from router.errors import StoreError
from router.learning.calibration import Confidence
from router.learning.evidence import Source
from router.learning.learner import (
    COVERAGE,
    LOCAL,
    OWN_CONFIDENCE,
    Judgement,
    Learner,
    Learnt,
)
from router.request import Request
from router.result import (
    Candidate,
    Decision,
    Outcome,
    RoutingResult,
    Stage,
    StageTrace,
)
from router.stages.followup import read
from router.stages.llm import LLMAnswer, LLMChoice
from router.stages.offer import offer_of
from router.stages.vector import LocalDecision
from router.stages.vector import decide as decide_by_retrieval
from router.stages.verdict import Verdict, brief, is_generic, of_llm, of_retrieval, weakness, weigh

if TYPE_CHECKING:
    from router.components import Components, Snapshot
    from router.retrieval.index import SkillIndex
    from router.settings import Settings

_log: Final = logging.getLogger(__name__)

EVEN: Final = 0.5
"""Least probability at which the evidence's answer is given: rather right than wrong."""

_NOT_WEAK: Final = StageTrace(Stage.VECTOR, Outcome.SKIPPED, "the LLM's route is strong")


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision, and what is to be done with it.

    Attributes:
        verdict: what to tell the caller.
        llm: the LLM stage's trace entry.
        vector: the vector stage's.
        strong: whether the caches may keep it.
        source: what gave the verdict's confidence: a stage's name, or ``local``.
        outcomes: what that confidence was fitted on; None when it is a stage's own.
        audit: the judgement to hold against the LLM, in the background; None for most.
    """

    verdict: Verdict
    llm: StageTrace
    vector: StageTrace
    strong: bool
    source: str
    outcomes: int | None = None
    audit: Judgement | None = None

    def as_result(
        self,
        catalog_version: str,
        caches: tuple[StageTrace, ...],
        learner: Learner | None,
        *,
        id: str,  # noqa: A002 - named like the result's attribute
    ) -> RoutingResult:
        """The whole answer, its confidence calibrated as far as there are outcomes."""
        own = self.verdict.confidence
        confidence = Confidence(own, self.outcomes is not None, self.outcomes or 0)
        if self.outcomes is None and learner is not None:
            confidence = learner.calibrated(self.source, own)
        trace = [*caches, self.llm, self.vector]
        if confidence.value != own:
            trace = [
                entry.copy_with(evidence=MappingProxyType({**entry.evidence, OWN_CONFIDENCE: own}))
                if entry.stage is self.verdict.stage
                else entry
                for entry in trace
            ]
        return self.verdict.as_result(catalog_version, tuple(trace), id=id).copy_with(
            confidence=confidence.value,
            calibrated=confidence.calibrated,
            evidence_count=confidence.evidence_count if confidence.calibrated else 0,
        )


async def decide(
    asked: Request, snapshot: Snapshot, parts: Components, settings: Settings
) -> Decided:
    """Decide a request anew.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    learner, skills = parts.learner, snapshot.catalog.skills
    if not parts.llm.has_models:
        return await _without_llm(asked, snapshot, parts, settings)
    judgement = learnt = None
    if learner is not None:
        judgement = await learner.judge(asked, snapshot.index)
        learnt = _offered(snapshot, None if judgement is None else judgement.learnt())
        if judgement is not None and learnt is not None and judgement.may_answer:
            return _inside_bound(asked, judgement, learnt, settings)
    answer = await _ask(asked, snapshot, parts, settings)
    if learner is not None and answer.choice is not None:
        await _teach(learner, asked, answer.choice, Source.LLM, judgement, settings)
    llm = _explained(answer.trace(), judgement)
    weak = None if answer.choice is None else weakness(answer.choice, skills, settings.vector)
    if answer.choice is not None and weak is None:
        return Decided(of_llm(answer.choice), llm, _NOT_WEAK, strong=True, source=Stage.LLM.value)
    local = await _retrieved(asked, snapshot.index, among=asked.available, settings=settings)
    if answer.choice is not None and weak is not None:
        verdict, vector = weigh(answer.choice, weak, local, settings.vector)
        return Decided(verdict, llm, vector, strong=False, source=Stage.LLM.value)
    # It stands in for an LLM's, and must not outlive what kept that from coming.
    if learnt is not None and learnt.confidence >= max(local.confidence, EVEN):
        return replace(_of_examples(asked, learnt, settings, llm), strong=False)
    return replace(_of_vector(asked, snapshot, local, settings, llm), strong=False)


async def audit(
    asked: Request,
    snapshot: Snapshot,
    parts: Components,
    settings: Settings,
    judgement: Judgement,
) -> bool | None:
    """Ask the LLM about a local answer after the fact: whether it agrees, None if it does not say.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    answer = await _ask(asked, snapshot, parts, settings, purpose="audit")
    if parts.learner is None or answer.choice is None or judgement.local is None:
        return None
    await _teach(parts.learner, asked, answer.choice, Source.AUDIT, judgement, settings)
    return set(answer.choice.selection.skills) == set(judgement.local.skills)


async def _ask(
    asked: Request,
    snapshot: Snapshot,
    parts: Components,
    settings: Settings,
    *,
    purpose: str = "route",
) -> LLMAnswer:
    offer = await offer_of(
        asked, snapshot.index, pinned=settings.pinned_skills, tokens=settings.llm.offered_tokens
    )
    return await parts.llm.choose(asked, offer.skills, likeliest=offer.likeliest, purpose=purpose)


async def _retrieved(
    asked: Request, index: SkillIndex, *, among: Sequence[str] | None, settings: Settings
) -> LocalDecision:
    """What retrieval would answer; a request that cannot stand alone is read with the user's latest
    turn, and the evidence says which text was read."""
    reading = read(asked)
    local = await decide_by_retrieval(
        reading.text, index, among=among, caution=settings.vector.least_right
    )
    if not asked.history:
        return local
    evidence = {**local.evidence, **reading.evidence}
    return replace(local, reason=reading.explained(local.reason), evidence=evidence)


async def _teach(
    learner: Learner,
    asked: Request,
    choice: LLMChoice,
    source: Source,
    judgement: Judgement | None,
    settings: Settings,
) -> None:
    """What the LLM says is evidence, where it is sure of it and the text alone decides."""
    if choice.confidence < settings.vector.confidence_threshold:
        return
    if asked.available is not None or asked.history:
        return
    try:
        await learner.learn(asked, choice.selection.skills, source=source, judgement=judgement)
    except StoreError as error:
        _log.error("an LLM's answer is not kept as evidence: %s", error)


def _explained(entry: StageTrace, judgement: Judgement | None) -> StageTrace:
    """The LLM stage's entry with why it was asked."""
    if judgement is None:
        return entry
    return entry.copy_with(evidence=MappingProxyType({**entry.evidence, **judgement.evidence()}))


def _offered(snapshot: Snapshot, learnt: Learnt | None) -> Learnt | None:
    """What was learnt of skills that the snapshot of this request offers; the model may be of
    another one. None when its answer is not among them."""
    skills = snapshot.catalog.skills

    def offers(names: Sequence[str]) -> bool:
        return all(name in skills and not skills[name].disable_model_invocation for name in names)

    if learnt is None or not offers(learnt.skills):
        return None
    return replace(learnt, ranked=tuple(row for row in learnt.ranked if offers(row[0])))


def _inside_bound(
    asked: Request, judgement: Judgement, learnt: Learnt, settings: Settings
) -> Decided:
    """The local answer, given because its risk keeps within the bound."""
    skipped = StageTrace(
        Stage.LLM, Outcome.SKIPPED, judgement.decision.reason, evidence=judgement.evidence()
    )
    return replace(
        _of_examples(asked, learnt, settings, skipped),
        strong=False,  # a cache that repeated it would repeat its error outside the account
        audit=judgement if judgement.decision.audit else None,
    )


async def _without_llm(
    asked: Request, snapshot: Snapshot, parts: Components, settings: Settings
) -> Decided:
    """Evidence speaks for the skills that it covers, retrieval for the others."""
    learner, index = parts.learner, snapshot.index
    llm = (await parts.llm.choose(asked, [])).trace()
    retrieved = await _retrieved(asked, index, among=asked.available, settings=settings)
    if learner is None or retrieved.fits is None:
        return _of_vector(asked, snapshot, retrieved, settings, llm)
    scores = {candidate.name: candidate.score for candidate in retrieved.candidates}
    learnt = _offered(snapshot, await learner.learnt(asked, index, scores, fits=retrieved.fits))
    if learnt is None:
        return _of_vector(asked, snapshot, retrieved, settings, llm)
    rest = 1 - learnt.coverage
    if learnt.confidence >= max(rest, EVEN):
        return _of_examples(asked, learnt, settings, llm, retrieved.microseconds)
    other = await _retrieved(asked, index, among=learner.others(), settings=settings)
    other = replace(other, confidence=rest * other.confidence)
    routes = other.decision is Decision.ROUTE
    if routes and other.selected == learnt.skills:  # two ways to the same answer
        learnt = replace(learnt, confidence=learnt.confidence + other.confidence)
    elif routes and other.confidence >= learnt.confidence:
        return _of_vector(asked, snapshot, other, settings, llm)
    if learnt.confidence >= EVEN:
        return _of_examples(asked, learnt, settings, llm, retrieved.microseconds)
    return _of_neither(asked, learnt, other, settings, llm)


def _of_examples(
    asked: Request,
    learnt: Learnt,
    settings: Settings,
    llm: StageTrace,
    microseconds: float = 0.0,
) -> Decided:
    """What the examples say."""
    vector = _learnt_trace(learnt, Outcome.ANSWERED, microseconds)
    others = dict.fromkeys(name for skills, _ in learnt.ranked for name in skills)
    verdict = Verdict(
        decision=Decision.ROUTE if learnt.skills else Decision.ABSTAIN,
        selected_skills=learnt.skills,
        suggested_skills=_besides(learnt.skills, others, settings) if learnt.skills else (),
        memory_layers=(),
        mission_brief=brief(asked.text, learnt.skills),
        reasoning=vector.reason,
        confidence=learnt.confidence,
        stage=Stage.VECTOR,
    )
    sure = learnt.confidence >= settings.vector.confidence_threshold
    return Decided(
        verdict,
        llm,
        vector,
        strong=bool(learnt.skills) and sure,
        source=LOCAL,
        outcomes=learnt.outcomes,
    )


def _of_neither(
    asked: Request, learnt: Learnt, other: LocalDecision, settings: Settings, llm: StageTrace
) -> Decided:
    """Whatever would be loaded is rather wrong than right: offer it, or refuse when it is likely
    that nothing fits."""
    nothing = learnt.nothing + (1 - learnt.coverage) * (1 - (other.fits or 0.0))
    known = [name for skills, _ in learnt.ranked for name in skills]
    if other.confidence > learnt.confidence:
        offered = [*other.ranked[:1], *known[:1], *other.ranked, *known]
    else:
        offered = [*known[:1], *other.ranked[:1], *known, *other.ranked]
    refused = nothing >= EVEN
    vector = _learnt_trace(learnt, Outcome.DECLINED, other.microseconds)
    verdict = Verdict(
        decision=Decision.ABSTAIN if refused else Decision.CLARIFY,
        selected_skills=(),
        suggested_skills=_besides((), offered, settings),
        memory_layers=(),
        mission_brief=brief(asked.text, ()),
        reasoning=vector.reason + (f"; of the others, {other.reason}" if other.ranked else ""),
        confidence=nothing,
        stage=Stage.VECTOR,
    )
    return Decided(verdict, llm, vector, strong=False, source=LOCAL, outcomes=learnt.outcomes)


def _besides(selected: Sequence[str], names: Iterable[str], settings: Settings) -> tuple[str, ...]:
    others = (name for name in dict.fromkeys(names) if name not in selected)
    return tuple(islice(others, settings.vector.max_suggestions))


def _of_vector(
    asked: Request,
    snapshot: Snapshot,
    local: LocalDecision,
    settings: Settings,
    llm: StageTrace,
) -> Decided:
    routed = local.decision is Decision.ROUTE
    strong = (
        routed
        and local.confidence >= settings.vector.confidence_threshold
        and not is_generic(local.selected, snapshot.catalog.skills, settings.vector)
    )
    return Decided(
        of_retrieval(asked, local, settings.vector),
        llm,
        local.trace(Outcome.ANSWERED if routed else Outcome.DECLINED),
        strong=strong,
        source=Stage.VECTOR.value,
    )


def _learnt_trace(learnt: Learnt, outcome: Outcome, microseconds: float) -> StageTrace:
    named = " and ".join(learnt.skills) or "no skill"
    return StageTrace(
        Stage.VECTOR,
        outcome,
        f"{learnt.examples} examples say {named}, with a probability of {learnt.confidence:.3f}",
        microseconds,
        {
            "examples": learnt.examples,
            "examples_of_answer": learnt.examples_of_answer,
            COVERAGE: learnt.coverage,
        },
        tuple(Candidate(" + ".join(skills) or "none", share) for skills, share in learnt.ranked),
    )


def of_feedback(text: str, skills: Sequence[str]) -> Verdict:
    """What a person said is right for a request."""
    return Verdict(
        decision=Decision.ROUTE if skills else Decision.ABSTAIN,
        selected_skills=tuple(skills),
        suggested_skills=(),
        memory_layers=(),
        mission_brief=brief(text, tuple(skills)),
        reasoning="feedback on an earlier answer said so",
        confidence=1.0,
        stage=Stage.VECTOR,
    )
