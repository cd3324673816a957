"""Decides the requests that no cache answers: correction, local model, LLM, retrieval, verdict.

* A person's correction of this very request is the answer, before anything else.
* A skill that the request addresses by its name ("/git", "the git skill") is loaded; neither the
  LLM nor the local model is asked. Skills that it refuses by name are offered to neither. Those
  that it refuses in other words ("but don't send it") are refused to all but an LLM that is sure:
  the local model, which reads words as retrieval does, answers no such request.
* With an LLM, the local model (which is fitted to the labels) comes next. It answers where the risk
  of its answer is within the error bound. Otherwise the LLM is asked once, and its answer becomes a
  label for later requests if the router gives it as it is. Retrieval runs only when that answer is
  weak or missing, and where the wording of the request may refuse a skill.
* Without an LLM, retrieval runs first. Then the local model answers for the skills that its labels
  cover, and retrieval runs a second time, over the other skills.
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
from router.retrieval.refusals import refusals_in
from router.stages.from_ranking import RetrievalDecision
from router.stages.llm import LLMAnswer
from router.stages.offer import offer_of
from router.stages.retrieval import decide as decide_by_retrieval
from router.stages.validation import DecidedBy
from router.stages.verdict import (
    LIKELY,
    brief,
    verdict_of_llm,
    verdict_of_local_model,
    verdict_of_neither,
    verdict_of_retrieval,
    verdict_of_weak_llm,
    weakness,
)

if TYPE_CHECKING:
    from router.components import Snapshot
    from router.settings.settings import Settings

_log: Final = logging.getLogger(__name__)

_NO_LLM: Final = StageTrace(Stage.LLM, Outcome.SKIPPED, "no LLM is configured")


class Decided(NamedTuple):
    """An answer that did not come from a cache.

    Attributes:
        result: the answer.
        cache_as: who decided it, where it may be cached; else None.
        for_similar: whether similar requests may be given it, too, where it may be cached.
        audit: set where the local model answered and the LLM shall be asked about the same request
            in the background, to measure how often the local model is wrong.
    """

    result: RoutingResult
    cache_as: DecidedBy | None
    for_similar: bool = True
    audit: EvidenceCheck | None = None


class Decider:
    """Decides requests over one snapshot. While an encoder that may be down is, retrieval goes by
    words alone, and no decision that used it is cached or learnt from."""

    def __init__(self, snapshot: Snapshot, settings: Settings, evidence_digest: str = "") -> None:
        """Make a decider for one request. ``evidence_digest`` identifies the labels of the local
        model; it is empty where no local model may answer without an LLM."""
        self._index = snapshot.index
        self._skills = snapshot.index.catalog.skills
        self._parts = snapshot.parts
        self._waits = snapshot.waits
        self._settings = settings
        self._local_model_may_answer = evidence_digest != ""

    async def decide(self, request: Request, cache_trace: tuple[StageTrace, ...]) -> Decided:
        """Decide a request. ``cache_trace`` are the trace entries of both caches."""
        learner = self._parts.learner
        corrected_skills = None if learner is None else await learner.correction(request)
        if corrected_skills is not None and all(map(self._index.catalog.offers, corrected_skills)):
            return Decided(
                self.corrected(request.text, corrected_skills, cache_trace), DecidedBy.PERSON
            )
        decided = await self._by_stages(request, cache_trace)
        if (
            decided.cache_as is not None
            and learner is not None
            and (self._waits or self._local_model_may_answer)
            and await learner.correction(request) != corrected_skills
        ):  # A person has corrected this request while it was being decided.
            return decided._replace(cache_as=None)
        return decided

    async def _by_stages(self, request: Request, cache_trace: tuple[StageTrace, ...]) -> Decided:
        """Decide a request that nobody has corrected."""
        settings, learner = self._settings.vector, self._parts.learner
        named = self._index.skill_names.named_in(request.text)
        if named.refused:
            offered = self._index.without(named.refused, request.available)
            request = replace(request, available=offered)
        if named.is_addressed and (retrieved := await self._retrieve(request)).names_skills:
            return self._by_name(request, retrieved, cache_trace)
        if not self._parts.llm.models:
            verdict, may_be_cached = await self._without_llm(request)
            weak = weakness(verdict.selected_skills, verdict.confidence, self._skills, settings)
            result = self._result(request, verdict, (*cache_trace, _NO_LLM))
            return Decided(result, DecidedBy.ROUTER if weak is None and may_be_cached else None)
        check = None
        if learner is not None and not await self._refuses(request):
            check = await learner.check(request, self._index)
        if check is not None and check.answer is not None and check.bound.local:
            reason, evidence = check.bound.reason, check.evidence()
            skipped = StageTrace(Stage.LLM, Outcome.SKIPPED, reason, evidence=evidence)
            verdict = verdict_of_local_model(request.text, check.answer, settings)
            result = self._result(request, verdict, (*cache_trace, skipped))
            # Not cached: the error bound would not count the errors of repeated answers.
            return Decided(result, None, audit=check if check.bound.audit else None)
        answer, may_be_cached = await self._ask_llm(request)
        chosen, confidence, cache_as, weak = answer.selection, answer.confidence, None, None
        if chosen is None:  # not cached: the LLM will decide when it is back
            verdict = await self._while_llm_is_down(request, check)
        elif (weak := weakness(chosen.skills, confidence, self._skills, settings)) is not None:
            retrieved = await self._retrieve(request)
            if retrieved.names_skills:
                verdict = verdict_of_retrieval(request.text, retrieved, settings)
            else:
                verdict = verdict_of_weak_llm(chosen, confidence, weak, retrieved, settings)
                is_sure = confidence is not None and confidence >= settings.confidence_threshold
                if is_sure and verdict.selected_skills == chosen.skills:
                    # No skill, or a generic one, and sure. A similar request may well need another.
                    cache_as = DecidedBy.LLM
            may_be_cached = may_be_cached and not retrieved.by_words_alone
        else:
            assert confidence is not None  # noqa: S101 - it would be weak
            verdict, cache_as = verdict_of_llm(chosen, confidence), DecidedBy.LLM
        if cache_as is not None and may_be_cached:
            await self._learn(request, answer, Source.LLM, check)
        entry = answer.trace
        if check is not None:  # say why the local model did not answer
            entry = entry.with_evidence(check.evidence())
        result = self._result(request, verdict, (*cache_trace, entry))
        return Decided(result, cache_as if may_be_cached else None, for_similar=weak is None)

    def _by_name(
        self, request: Request, retrieved: RetrievalDecision, cache_trace: tuple[StageTrace, ...]
    ) -> Decided:
        """The answer to a request that addresses skills by their names."""
        not_asked = StageTrace(Stage.LLM, Outcome.SKIPPED, retrieved.reason)
        entry = not_asked if self._parts.llm.models else _NO_LLM
        verdict = verdict_of_retrieval(request.text, retrieved, self._settings.vector)
        cache_as = None if retrieved.by_words_alone else DecidedBy.ROUTER
        return Decided(self._result(request, verdict, (*cache_trace, entry)), cache_as)

    async def agrees(self, request: Request, check: EvidenceCheck) -> bool | None:
        """Whether the LLM gives the same answer as the local model did; None when it gives none."""
        answer, is_whole = await self._ask_llm(request, audit=True)
        if answer.selection is None or check.answer is None:
            return None
        if is_whole:
            await self._learn(request, answer, Source.AUDIT, check)
        return set(answer.selection.skills) == set(check.answer.skills)

    def corrected(
        self, text: str, skills: Sequence[str], cache_trace: tuple[StageTrace, ...] = ()
    ) -> RoutingResult:
        """The answer to a request whose right skills a person has named."""
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
            trace=(*cache_trace, skipped, given),
            catalog_version=self._index.catalog.version,
        )

    def _layers(self, text: str) -> tuple[LayerChoice, ...]:
        """The memory layers to read for a request."""
        return self._parts.classifier.layers(text.strip()[:MAX_QUERY_CHARACTERS])

    async def _ask_llm(self, request: Request, *, audit: bool = False) -> tuple[LLMAnswer, bool]:
        """Ask the LLM which skills fit.

        Returns:
            The answer, and whether it may be cached or learnt: not if the encoder was down and not
            all skills could be offered.
        """
        settings = self._settings
        offer = await offer_of(
            request,
            self._index,
            pinned=settings.pinned_skills,
            token_budget=settings.llm.offered_tokens,
        )
        answer = await self._parts.llm.choose(
            request,
            offer.skills,
            likeliest=offer.likeliest,
            purpose="audit" if audit else "route",
        )
        return answer, not offer.by_words_alone

    async def _learn(
        self, request: Request, answer: LLMAnswer, source: Source, check: EvidenceCheck | None
    ) -> None:
        """Make a confident answer of the LLM a label, unless it may depend on the history or the
        available skills: a label is for the text alone."""
        learner = self._parts.learner
        if (
            learner is not None
            and answer.selection is not None
            and answer.confidence is not None
            and answer.confidence >= self._settings.vector.confidence_threshold
            and request.available is None
            and not request.history
        ):
            skills = answer.selection.skills
            try:
                await learner.learn(request, skills, source=source, check=check)
            except StoreError as error:
                _log.error("an LLM's answer is not kept as evidence: %s", error)

    async def _while_llm_is_down(
        self, request: Request, check: EvidenceCheck | None
    ) -> RoutingResult:
        """The verdict when no LLM has answered: that of the local model or that of retrieval,
        whichever has the higher confidence."""
        settings = self._settings.vector
        retrieved = await self._retrieve(request)
        local = None if check is None else check.answer
        if local is not None and local.confidence >= max(retrieved.confidence, LIKELY):
            return verdict_of_local_model(request.text, local, settings)
        return verdict_of_retrieval(request.text, retrieved, settings)

    async def _without_llm(self, request: Request) -> tuple[RoutingResult, bool]:
        """The verdict where no LLM is configured, and whether it may be cached: not if the request
        could not be encoded. The local model answers for the skills that its labels cover,
        retrieval for the others."""
        settings, learner = self._settings.vector, self._parts.learner
        retrieved = await self._retrieve(request)
        if retrieved.by_words_alone:  # the local model needs the vector
            return verdict_of_retrieval(request.text, retrieved, settings), False
        local = None
        if (
            learner is not None
            and self._local_model_may_answer
            and not (retrieved.names_skills or retrieved.refused)
            and (fits := retrieved.fits) is not None
        ):
            scores = {match.name: match.score for match in retrieved.matches}
            local = await learner.answer_without_llm(request, self._index, scores, fits=fits)
        if learner is None or local is None:
            return verdict_of_retrieval(request.text, retrieved, settings), True
        uncovered = 1 - local.coverage
        if local.confidence < max(uncovered, LIKELY):
            uncovered_skills = tuple(learner.uncovered_skills())
            other = await self._retrieve(replace(request, available=uncovered_skills))
            other = replace(other, confidence=uncovered * other.confidence)
            if other.decision is Decision.ROUTE and other.selected == local.skills:
                # The request is either covered or not, and both cases lead to the same answer: the
                # two probabilities add up.
                local = replace(local, confidence=local.confidence + other.confidence)
            elif other.decision is Decision.ROUTE and other.confidence >= local.confidence:
                return verdict_of_retrieval(request.text, other, settings), True
            if local.confidence < LIKELY:
                return verdict_of_neither(local, other, settings), True
        spent = retrieved.microseconds
        return verdict_of_local_model(request.text, local, settings, spent), True

    async def _refuses(self, request: Request) -> bool:
        """Whether a request says that it does not want some skill."""
        if not refusals_in(request.text).refused:
            return False
        return bool((await self._retrieve(request)).refused)

    async def _retrieve(self, request: Request) -> RetrievalDecision:
        caution = self._settings.vector.least_right
        return await decide_by_retrieval(request, self._index, caution=caution)

    def _result(
        self, request: Request, verdict: RoutingResult, before: tuple[StageTrace, ...]
    ) -> RoutingResult:
        """The final result: the verdict with the trace of the earlier stages, the memory layers to
        read (unless an LLM has named some), and a calibrated confidence where there are enough
        outcomes to calibrate it."""
        result = verdict.copy_with(
            memory_layers=verdict.memory_layers or self._layers(request.text),
            catalog_version=self._index.catalog.version,
            trace=(*before, *verdict.trace),
        )
        learner = self._parts.learner
        return result if learner is None else learner.calibrations.calibrated(result)
