"""What happens to a request that no cache answers: evidence, LLM, retrieval, verdict.

Each stage gives its answer or says why it has none. What a person said of this very request comes
before all of them. Where there is an LLM, the evidence comes next: it answers alone where its risk
keeps within the error bound, and else the LLM is asked, once. Without an LLM, the evidence answers
after retrieval, for the skills that its examples cover; retrieval then runs a second time, over the
other skills. What the LLM says becomes evidence for later requests.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from router.errors import StoreError
from router.learning.evidence import Source
from router.learning.learner import EvidenceCheck
from router.learning.stage_calibrations import CORRECTED
from router.memory.model import MAX_QUERY_CHARACTERS
from router.request import Request
from router.result import Decision, LayerChoice, Outcome, RoutingResult, Stage, StageTrace
from router.stages.llm import LLMAnswer
from router.stages.offer import offer_of
from router.stages.retrieval import RetrievalDecision
from router.stages.retrieval import decide as decide_by_retrieval
from router.stages.validation import DecidedBy
from router.stages.verdict import (
    LIKELY,
    brief,
    of_examples,
    of_llm,
    of_neither,
    of_retrieval,
    weakness,
    weigh,
)

if TYPE_CHECKING:
    from router.components import Snapshot
    from router.settings.settings import Settings

_log: Final = logging.getLogger(__name__)

_NO_LLM: Final = StageTrace(Stage.LLM, Outcome.SKIPPED, "no LLM is configured")


class Decided(NamedTuple):
    """An answer that was decided anew.

    Attributes:
        result: the answer.
        kept_as: who decided, if the caches may keep it; else None.
        audit: the check by which it was given without the LLM, if the LLM is to be asked about it
            in the background.
    """

    result: RoutingResult
    kept_as: DecidedBy | None
    audit: EvidenceCheck | None = None


class Decider:
    """Decides requests over one snapshot; raises ``EncoderError`` where one cannot be encoded."""

    def __init__(self, snapshot: Snapshot, settings: Settings, evidence_digest: str = "") -> None:
        """Nothing takes long here: one is made for each request. ``evidence_digest`` is that of
        what has been learnt, as far as it may answer without an LLM; empty where nothing may."""
        self._index = snapshot.index
        self._skills = snapshot.index.catalog.skills
        self._parts = snapshot.parts
        self._waits = snapshot.waits
        self._settings = settings
        self._examples_answer = evidence_digest != ""

    async def decide(self, asked: Request, caches: tuple[StageTrace, ...]) -> Decided:
        """Decide a request anew; ``caches`` had no answer."""
        learner = self._parts.learner
        by_person = None if learner is None else await learner.correction(asked)
        if by_person is not None and all(map(self._index.catalog.offers, by_person)):
            return Decided(self.corrected(asked.text, by_person, caches), DecidedBy.PERSON)
        decided = await self._by_stages(asked, caches)
        if (
            decided.kept_as is not None
            and learner is not None
            and (self._waits or self._examples_answer)
            and await learner.correction(asked) != by_person
        ):  # A person has said meanwhile what is right.
            return decided._replace(kept_as=None)
        return decided

    async def _by_stages(self, asked: Request, caches: tuple[StageTrace, ...]) -> Decided:
        """What the evidence, the LLM and retrieval make of a request."""
        settings, learner = self._settings.vector, self._parts.learner
        if not self._parts.llm.models:
            verdict = await self._without_llm(asked)
            weak = weakness(verdict.selected_skills, verdict.confidence, self._skills, settings)
            result = self._result(asked, verdict, (*caches, _NO_LLM))
            return Decided(result, DecidedBy.ROUTER if weak is None else None)
        check = None if learner is None else await learner.check(asked, self._index)
        if check is not None and check.answer is not None and check.bound.local:
            reason, evidence = check.bound.reason, check.evidence()
            skipped = StageTrace(Stage.LLM, Outcome.SKIPPED, reason, evidence=evidence)
            verdict = of_examples(asked.text, check.answer, settings)
            result = self._result(asked, verdict, (*caches, skipped))
            # Not for the caches: a repeated error would stand outside the account of the bound.
            return Decided(result, None, check if check.bound.audit else None)
        answer = await self._ask_llm(asked, check)
        chosen, confidence, kept_as = answer.selection, answer.confidence, None
        if chosen is None:  # what stands in for an LLM that is down is not for the caches
            verdict = await self._while_llm_is_down(asked, check)
        elif (weak := weakness(chosen.skills, confidence, self._skills, settings)) is not None:
            retrieved = await self._retrieve(asked)
            verdict = weigh(chosen, confidence, weak, retrieved, settings)
        else:
            verdict, kept_as = of_llm(chosen, confidence), DecidedBy.LLM
        entry = answer.trace
        if check is not None:  # why the LLM was asked
            entry = entry.with_evidence(check.evidence())
        return Decided(self._result(asked, verdict, (*caches, entry)), kept_as)

    async def agrees(self, asked: Request, check: EvidenceCheck) -> bool | None:
        """Whether the LLM agrees with an answer given without it; None when it gives none."""
        answer = await self._ask_llm(asked, check, audit=True)
        if answer.selection is None or check.answer is None:
            return None
        return set(answer.selection.skills) == set(check.answer.skills)

    def corrected(
        self, text: str, skills: Sequence[str], caches: tuple[StageTrace, ...] = ()
    ) -> RoutingResult:
        """The answer that a person said is right for a request; ``caches`` had none."""
        selected, why = tuple(skills), "feedback on an earlier answer said so"
        skipped = StageTrace(Stage.LLM, Outcome.SKIPPED, why)
        given = StageTrace(Stage.VECTOR, Outcome.ANSWERED, why, evidence={CORRECTED: True})
        return RoutingResult(
            decision=Decision.ROUTE if selected else Decision.ABSTAIN,
            selected_skills=selected,
            memory_layers=self._layers(text),
            mission_brief=brief(text, selected),
            reasoning=why,
            confidence=1.0,
            stage=Stage.VECTOR,
            trace=(*caches, skipped, given),
            catalog_version=self._index.catalog.version,
        )

    def _layers(self, text: str) -> tuple[LayerChoice, ...]:
        """The memory layers to read for a request."""
        return self._parts.classifier.layers(text.strip()[:MAX_QUERY_CHARACTERS])

    async def _ask_llm(
        self, asked: Request, check: EvidenceCheck | None, *, audit: bool = False
    ) -> LLMAnswer:
        """Ask the LLM which skills fit. A sure answer that depends on the text alone becomes
        evidence."""
        settings = self._settings
        offer = await offer_of(
            asked,
            self._index,
            pinned=settings.pinned_skills,
            token_budget=settings.llm.offered_tokens,
        )
        answer = await self._parts.llm.choose(
            asked,
            offer.skills,
            likeliest=offer.likeliest,
            purpose="audit" if audit else "route",
        )
        learner = self._parts.learner
        if (
            learner is not None
            and answer.selection is not None
            and answer.confidence >= settings.vector.confidence_threshold
            and asked.available is None
            and not asked.history
        ):
            source = Source.AUDIT if audit else Source.LLM
            skills = answer.selection.skills
            try:
                await learner.learn(asked, skills, source=source, check=check)
            except StoreError as error:
                _log.error("an LLM's answer is not kept as evidence: %s", error)
        return answer

    async def _while_llm_is_down(
        self, asked: Request, check: EvidenceCheck | None
    ) -> RoutingResult:
        """The verdict when no LLM has answered: that of the examples or that of retrieval,
        whichever is surer."""
        settings = self._settings.vector
        retrieved = await self._retrieve(asked)
        by_examples = None if check is None else check.answer
        if by_examples is not None and by_examples.confidence >= max(retrieved.confidence, LIKELY):
            return of_examples(asked.text, by_examples, settings)
        return of_retrieval(asked.text, retrieved, settings)

    async def _without_llm(self, asked: Request) -> RoutingResult:
        """The verdict where no LLM is configured: the examples answer for the skills that they
        cover, retrieval for the others."""
        settings, learner = self._settings.vector, self._parts.learner
        retrieved = await self._retrieve(asked)
        by_examples = None
        if learner is not None and self._examples_answer and (fits := retrieved.fits) is not None:
            scores = {match.name: match.score for match in retrieved.matches}
            by_examples = await learner.answer_by_examples(asked, self._index, scores, fits=fits)
        if learner is None or by_examples is None:
            return of_retrieval(asked.text, retrieved, settings)
        uncovered = 1 - by_examples.coverage
        if by_examples.confidence >= max(uncovered, LIKELY):
            return of_examples(asked.text, by_examples, settings, retrieved.microseconds)
        uncovered_skills = tuple(learner.uncovered_skills())
        other = await self._retrieve(replace(asked, available=uncovered_skills))
        other = replace(other, confidence=uncovered * other.confidence)
        if other.decision is Decision.ROUTE and other.selected == by_examples.skills:
            # Two ways to the same answer.
            by_examples = replace(by_examples, confidence=by_examples.confidence + other.confidence)
        elif other.decision is Decision.ROUTE and other.confidence >= by_examples.confidence:
            return of_retrieval(asked.text, other, settings)
        if by_examples.confidence >= LIKELY:
            return of_examples(asked.text, by_examples, settings, retrieved.microseconds)
        return of_neither(by_examples, other, settings)

    async def _retrieve(self, asked: Request) -> RetrievalDecision:
        """What retrieval decides."""
        caution = self._settings.vector.least_right
        return await decide_by_retrieval(asked, self._index, caution=caution)

    def _result(
        self, asked: Request, verdict: RoutingResult, before: tuple[StageTrace, ...]
    ) -> RoutingResult:
        """The whole answer: the verdict behind the trace of the earlier stages, with the memory
        layers to read where no LLM has named any, and with a calibrated confidence as far as
        outcomes are known."""
        whole = verdict.copy_with(
            memory_layers=verdict.memory_layers or self._layers(asked.text),
            catalog_version=self._index.catalog.version,
            trace=(*before, *verdict.trace),
        )
        learner = self._parts.learner
        return whole if learner is None else learner.calibrations.calibrated(whole)
