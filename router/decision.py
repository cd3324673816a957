"""What happens to a request that no cache knows: the local answer inside the error bound, the LLM,
the vector fallback, and what is learnt from it.

With an LLM the evidence decides whether it need be asked at all. Without one, the evidence and the
vector stage decide, whichever is surer by calibrated probability. Whatever the LLM says becomes
evidence for the requests to come.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from router.errors import StoreError
from router.learning.calibration import Confidence
from router.learning.evidence import Source
from router.learning.learner import OWN_CONFIDENCE, Judgement, Learner
from router.learning.local import LocalAnswer, skills_of
from router.request import Request
from router.result import (
    Candidate,
    Decision,
    Outcome,
    RoutingResult,
    Stage,
    StageTrace,
)
from router.stages.llm import LLMAnswer, LLMChoice
from router.stages.shortlist import shortlist
from router.stages.vector import LocalDecision
from router.stages.vector import decide as decide_by_retrieval
from router.stages.verdict import Verdict, brief, is_generic, of_llm, of_retrieval, weakness, weigh

if TYPE_CHECKING:
    from router.assembly import Assembly, Installed
    from router.settings import Settings

_log: Final = logging.getLogger(__name__)

LOCAL: Final = "local"
"""What answers from evidence are filed under, as a stage has its name for calibration."""

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
        believed = Confidence(own, self.outcomes is not None, self.outcomes or 0)
        if self.outcomes is None and learner is not None:
            believed = learner.believed(self.source, own)
        trace = [*caches, self.llm, self.vector]
        if believed.value != own:
            trace = [
                entry.copy_with(evidence=MappingProxyType({**entry.evidence, OWN_CONFIDENCE: own}))
                if entry.stage is self.verdict.stage
                else entry
                for entry in trace
            ]
        return self.verdict.as_result(catalog_version, tuple(trace), id=id).copy_with(
            confidence=believed.value,
            calibrated=believed.calibrated,
            evidence_count=believed.evidence_count if believed.calibrated else 0,
        )


async def decide(
    asked: Request, installed: Installed, parts: Assembly, settings: Settings
) -> Decided:
    """Decide a request anew.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    learner, skills = parts.learner, installed.catalog.skills
    if not parts.llm.has_models:
        return await _without_llm(asked, installed, parts, settings)
    judgement = None
    if learner is not None:
        judgement = await learner.judge(asked, installed.index)
        if judgement is not None and judgement.may_answer and _offers(installed, judgement.local):
            return _from_evidence(asked, judgement)
    answer = await _ask(asked, installed, parts, settings)
    if learner is not None and answer.choice is not None:
        await _teach(learner, asked, answer.choice, Source.LLM, judgement, settings)
    llm = _explained(answer.trace(), judgement)
    weak = None if answer.choice is None else weakness(answer.choice, skills, settings.vector)
    if answer.choice is not None and weak is None:
        return Decided(of_llm(answer.choice), llm, _NOT_WEAK, strong=True, source=Stage.LLM.value)
    local = await decide_by_retrieval(asked.text, installed.index, among=asked.available)
    if answer.choice is not None and weak is not None:
        verdict, vector = weigh(answer.choice, weak, local, settings.vector)
        return Decided(verdict, llm, vector, strong=False, source=Stage.LLM.value)
    # It stands in for an LLM's, and must not outlive what kept that from coming.
    return replace(_of_vector(asked, installed, local, settings, llm), strong=False)


async def audit(
    asked: Request,
    installed: Installed,
    parts: Assembly,
    settings: Settings,
    judgement: Judgement,
) -> bool | None:
    """Ask the LLM about a local answer after the fact: whether it agrees, None if it does not say.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    answer = await _ask(asked, installed, parts, settings)
    if parts.learner is None or answer.choice is None or judgement.local is None:
        return None
    await _teach(parts.learner, asked, answer.choice, Source.AUDIT, judgement, settings)
    return set(answer.choice.selection.skills) == set(judgement.local.skills)


async def _ask(
    asked: Request, installed: Installed, parts: Assembly, settings: Settings
) -> LLMAnswer:
    offered = await shortlist(
        asked, installed.index, pinned=settings.pinned_skills, limit=settings.llm.max_offered
    )
    return await parts.llm.choose(asked, offered)


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
        await learner.heard(asked, choice.selection.skills, source=source, judgement=judgement)
    except StoreError as error:
        _log.error("an LLM's answer is not kept as evidence: %s", error)


def _explained(entry: StageTrace, judgement: Judgement | None) -> StageTrace:
    """The LLM stage's entry with why it was asked."""
    if judgement is None:
        return entry
    return entry.copy_with(evidence=MappingProxyType({**entry.evidence, **judgement.evidence()}))


def _offers(installed: Installed, local: LocalAnswer | None) -> bool:
    """Whether the snapshot of this request has the skills; the model may be of a later one."""
    if local is None:
        return False
    skills = installed.catalog.skills
    return all(
        name in skills and not skills[name].disable_model_invocation for name in local.skills
    )


def _from_evidence(asked: Request, judgement: Judgement) -> Decided:
    """The local answer, given because its risk keeps within the bound."""
    local = judgement.local
    assert local is not None and judgement.decision.risk is not None  # noqa: S101 - may_answer
    skipped = StageTrace(
        Stage.LLM, Outcome.SKIPPED, judgement.decision.reason, evidence=judgement.evidence()
    )
    confidence = 1 - judgement.decision.risk
    vector = _evidence_trace(local, confidence)
    verdict = _verdict(asked, local, confidence, vector.reason)
    audited = judgement if judgement.decision.audit else None
    return Decided(
        verdict,
        skipped,
        vector,
        strong=False,  # a cache that repeated it would repeat its error outside the account
        source=LOCAL,
        outcomes=judgement.decision.evidence_count,
        audit=audited,
    )


async def _without_llm(
    asked: Request, installed: Installed, parts: Assembly, settings: Settings
) -> Decided:
    """The surer of evidence and retrieval."""
    learner = parts.learner
    llm = (await parts.llm.choose(asked, [])).trace()
    local = await decide_by_retrieval(asked.text, installed.index, among=asked.available)
    found = None if learner is None else await learner.local_answer(asked, installed.index)
    if found is not None and _offers(installed, found.answer):
        sure = found.confidence
        if sure > max(local.confidence, settings.vector.confidence_threshold):
            vector = _evidence_trace(found.answer, sure, local.microseconds)
            verdict = _verdict(asked, found.answer, sure, vector.reason)
            return Decided(
                verdict,
                llm,
                vector,
                strong=bool(verdict.selected_skills),
                source=LOCAL,
                outcomes=found.outcomes,
            )
    return _of_vector(asked, installed, local, settings, llm)


def _of_vector(
    asked: Request,
    installed: Installed,
    local: LocalDecision,
    settings: Settings,
    llm: StageTrace,
) -> Decided:
    routed = local.decision is Decision.ROUTE
    strong = (
        routed
        and local.confidence >= settings.vector.confidence_threshold
        and not is_generic(local.selected, installed.catalog.skills, settings.vector)
    )
    return Decided(
        of_retrieval(asked, local, settings.vector),
        llm,
        local.trace(Outcome.ANSWERED if routed else Outcome.DECLINED),
        strong=strong,
        source=Stage.VECTOR.value,
    )


def _evidence_trace(local: LocalAnswer, confidence: float, microseconds: float = 0.0) -> StageTrace:
    named = " and ".join(local.skills) or "no skill"
    return StageTrace(
        Stage.VECTOR,
        Outcome.ANSWERED,
        f"{local.signals.evidence} examples say {named}, with a probability of {confidence:.3f}",
        microseconds,
        {
            "examples": local.signals.evidence,
            "examples_of_answer": local.signals.examples,
            "nearest_agreeing": local.signals.agreeing,
            "nearest_disagreeing": local.signals.disagreeing,
        },
        tuple(
            Candidate(" + ".join(skills_of(name)) or "none", share) for name, share in local.ranked
        ),
    )


def _verdict(asked: Request, local: LocalAnswer, confidence: float, reason: str) -> Verdict:
    others: Sequence[str] = ()
    if local.skills:
        seen = dict.fromkeys(skill for name, _ in local.ranked for skill in skills_of(name))
        others = [name for name in seen if name not in local.skills]
    return Verdict(
        decision=Decision.ROUTE if local.skills else Decision.ABSTAIN,
        selected_skills=local.skills,
        suggested_skills=tuple(others[:3]),
        memory_layers=(),
        mission_brief=brief(asked.text, local.skills),
        reasoning=reason,
        confidence=confidence,
        stage=Stage.VECTOR,
    )


def of_feedback(text: str, skills: Sequence[str]) -> Verdict:
    """What a person said is right for a request."""
    return Verdict(
        decision=Decision.ROUTE,
        selected_skills=tuple(skills),
        suggested_skills=(),
        memory_layers=(),
        mission_brief=brief(text, tuple(skills)),
        reasoning="feedback on an earlier answer said so",
        confidence=1.0,
        stage=Stage.VECTOR,
    )
