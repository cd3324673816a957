"""From what stages 3 and 4 found to a verdict: what to load, how sure, and why.

An LLM answer is weak when it names no skill, is less sure than ``confidence_threshold``, or names
one generic skill alone. A weak answer is weighed against retrieval: support lifts its confidence,
the lack of it never does, and what the LLM rejected is offered but not loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from router.request import Request
from router.result import Decision, LayerChoice, Outcome, RoutingResult, Stage, StageTrace
from router.settings import VectorSettings
from router.skills.manifest import SkillManifest
from router.stages.llm import LLMChoice
from router.stages.vector import LocalDecision

MAX_BRIEF_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Verdict:
    """The part of a ``RoutingResult`` that the deciding stages determine; same meanings."""

    decision: Decision
    selected_skills: tuple[str, ...]
    suggested_skills: tuple[str, ...]
    memory_layers: tuple[LayerChoice, ...]
    mission_brief: str
    reasoning: str
    confidence: float
    stage: Stage

    def as_result(
        self,
        catalog_version: str,
        trace: tuple[StageTrace, ...],
        *,
        id: str,  # noqa: A002 - named like the result's attribute
    ) -> RoutingResult:
        """The verdict with what only the router knows."""
        return RoutingResult(
            decision=self.decision,
            selected_skills=self.selected_skills,
            suggested_skills=self.suggested_skills,
            memory_layers=self.memory_layers,
            mission_brief=self.mission_brief,
            reasoning=self.reasoning,
            confidence=self.confidence,
            calibrated=False,
            evidence_count=0,
            stage=self.stage,
            from_cache=False,
            catalog_version=catalog_version,
            trace=trace,
            id=id,
        )


def is_generic(
    names: Iterable[str], skills: Mapping[str, SkillManifest], settings: VectorSettings
) -> bool:
    """Whether a choice is one generic skill alone."""
    only = tuple(names)
    return len(only) == 1 and (
        only[0] in settings.generic_skills or (only[0] in skills and skills[only[0]].generic)
    )


def weakness(
    choice: LLMChoice, skills: Mapping[str, SkillManifest], settings: VectorSettings
) -> str | None:
    """Why an LLM answer needs the vector fallback; None when it is strong."""
    chosen = choice.selection.skills
    if not chosen:
        return "the LLM chose no skill"
    if choice.confidence < settings.confidence_threshold:
        return f"the LLM's confidence is {choice.confidence:.2f}"
    if is_generic(chosen, skills, settings):
        return f"{chosen[0]} alone is a generic choice"
    return None


def of_llm(choice: LLMChoice) -> Verdict:
    """The verdict of a strong LLM answer."""
    return _llm_verdict(choice, Decision.ROUTE, choice.selection.skills, (), choice.confidence)


def of_retrieval(asked: Request, local: LocalDecision, settings: VectorSettings) -> Verdict:
    """The verdict when there is no LLM answer."""
    others = _others(local, local.selected)
    return Verdict(
        decision=local.decision,
        selected_skills=local.selected,
        suggested_skills=others[: settings.max_suggestions],
        memory_layers=(),
        mission_brief=brief(asked.text, local.selected),
        reasoning=local.reason,
        confidence=local.confidence,
        stage=Stage.VECTOR,
    )


def weigh(
    choice: LLMChoice, why_weak: str, local: LocalDecision, settings: VectorSettings
) -> tuple[Verdict, StageTrace]:
    """The verdict on a weak LLM answer in the light of retrieval, and stage 4's trace entry."""
    chosen = choice.selection.skills
    suggested = _others(local, chosen)[: settings.max_suggestions]
    if not chosen:
        # The model read the request and declined: retrieval may offer, but not overrule it.
        verdict = _llm_verdict(choice, Decision.ABSTAIN, (), suggested, choice.confidence)
        return verdict, local.trace(Outcome.DECLINED, f"{why_weak}; offered: {_list(suggested)}")
    supported = local.decision is Decision.ROUTE and local.selected[0] in chosen
    confidence = choice.confidence
    if supported:
        lifted = min(confidence + settings.confidence_boost, settings.confidence_cap)
        confidence = max(confidence, lifted)
    if confidence >= settings.confidence_threshold:
        verdict = _llm_verdict(choice, Decision.ROUTE, chosen, suggested, confidence)
    else:
        offered = (*chosen, *suggested)
        verdict = _llm_verdict(choice, Decision.CLARIFY, (), offered, 1 - confidence)
    if supported:
        reason = f"{why_weak}; retrieval supports {local.selected[0]}"
        return verdict, local.trace(Outcome.SUPPORTED, reason)
    return verdict, local.trace(Outcome.DECLINED, f"{why_weak}; retrieval does not support it")


def _llm_verdict(
    choice: LLMChoice,
    decision: Decision,
    selected: tuple[str, ...],
    suggested: tuple[str, ...],
    confidence: float,
) -> Verdict:
    selection = choice.selection
    layers = selection.memory_layers
    return Verdict(
        decision=decision,
        selected_skills=selected,
        suggested_skills=suggested,
        # The model ranks the layers and gives no weights; the harmonic series keeps the order.
        memory_layers=tuple(LayerChoice(name, 1 / (i + 1)) for i, name in enumerate(layers)),
        mission_brief=selection.mission_brief,
        reasoning=selection.reasoning,
        confidence=confidence,
        stage=Stage.LLM,
    )


def _others(local: LocalDecision, chosen: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in local.ranked if name not in chosen)


def brief(request: str, selected: tuple[str, ...]) -> str:
    """What the skills are to do, in the requester's own words, on one line."""
    if not selected:
        return ""
    text = " ".join(request.split())
    if len(text) > MAX_BRIEF_CHARACTERS:
        text = text[: MAX_BRIEF_CHARACTERS - 1].rstrip() + "…"
    return f"Use {' and '.join(selected)}: {text}"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "nothing"
