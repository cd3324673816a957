"""The last step of a decision: turns the answers of LLM, local model and retrieval into a verdict.

A verdict is a ``RoutingResult`` whose trace holds the entry of stage 4 only. ``Decider`` then adds
the entries of the earlier stages and calibrates the confidence.

An LLM answer is *weak* when it names no skill, when its confidence is below
``confidence_threshold`` or not known, or when it names one generic skill only. Retrieval then
confirms it, which raises its confidence, or does not. A skill that the LLM did not choose is never
loaded, only suggested: where the LLM is unsure that none fits, and retrieval would load one, the
user is asked.

A model that states no confidence may be as right as any other. What it says is then worth what
retrieval says of it: where both agree, the confidence is that of retrieval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final

from router.learning.stage_calibrations import COVERAGE
from router.llm.prompt import Selection
from router.result import (
    Candidate,
    Decision,
    EvidenceValue,
    LayerChoice,
    Outcome,
    RoutingResult,
    Stage,
    StageTrace,
)
from router.retrieval.matches import Match
from router.settings.settings import VectorSettings
from router.skills.manifest import SkillManifest
from router.stages.from_ranking import MAX_SHOWN_TERMS, RetrievalDecision

if TYPE_CHECKING:
    from router.learning.learner import CalibratedAnswer

MAX_BRIEF_CHARACTERS: Final = 200
LIKELY: Final = 0.5
"""The local model's answer is given from this probability on: it is then more likely right than
wrong."""

_UNSTATED: Final = "the LLM stated no confidence"
_NOT_NEEDED: Final = StageTrace(Stage.VECTOR, Outcome.SKIPPED, "the LLM's route is strong")


def weakness(
    chosen: Sequence[str],
    confidence: float | None,
    skills: Mapping[str, SkillManifest],
    settings: VectorSettings,
) -> str | None:
    """Why an answer is too weak for similar requests to be given it, and, from an LLM, needs
    confirmation by retrieval; None when it is strong."""
    if confidence is None:
        return f"{_UNSTATED}, and chose no skill" if not chosen else _UNSTATED
    is_sure = confidence >= settings.confidence_threshold
    if not chosen:
        doubt = "" if is_sure else f", with a confidence of {confidence:.2f}"
        return f"the LLM chose no skill{doubt}"
    if not is_sure:
        return f"the LLM's confidence is {confidence:.2f}"
    first = chosen[0]
    generic = first in settings.generic_skills or (first in skills and skills[first].generic)
    if generic and len(chosen) == 1:
        return f"{first} alone is a generic choice"
    return None


def verdict_of_llm(selection: Selection, confidence: float) -> RoutingResult:
    """The verdict when the LLM's answer is strong."""
    return _of_selection(selection, Decision.ROUTE, selection.skills, (), confidence, _NOT_NEEDED)


def verdict_of_weak_llm(
    selection: Selection,
    confidence: float | None,
    why_weak: str,
    retrieved: RetrievalDecision,
    settings: VectorSettings,
) -> RoutingResult:
    """The verdict when the LLM's answer is weak, and retrieval confirms it or not."""
    chosen = tuple(name for name in selection.skills if name not in retrieved.refused)
    note = _UNSTATED if confidence is None else ""
    if chosen != selection.skills:
        unwanted = f"the request does not want {' or '.join(retrieved.refused)}"
        why_weak = f"{why_weak}; {unwanted}"
        if not chosen:  # the confidence is in what is not wanted, and says nothing of the others
            confidence, note = None, note or unwanted
    if confidence is None:
        reasoning = f"{selection.reasoning} ({note})".strip()
        selection = replace(selection, skills=chosen, reasoning=reasoning)
        return _verdict_of_unstated(selection, why_weak, retrieved, settings)
    suggested = _others(chosen, (*retrieved.selected, *retrieved.ranked), settings)
    if not chosen and retrieved.selected and confidence < settings.confidence_threshold:
        reason = f"{why_weak}; {_would_load(retrieved)}"
        entry = _trace_of_retrieval(retrieved, Outcome.DECLINED, reason)
        # The mean of what both say of loading none.
        confidence = (confidence + 1 - retrieved.confidence) / 2
        return _of_selection(selection, Decision.CLARIFY, (), suggested, confidence, entry)
    if not chosen:
        # Retrieval may suggest skills, but not overrule the LLM's answer that none fits.
        reason = f"{why_weak}; offered: {', '.join(suggested) or 'nothing'}"
        entry = _trace_of_retrieval(retrieved, Outcome.DECLINED, reason)
        return _of_selection(selection, Decision.ABSTAIN, (), suggested, confidence, entry)
    supported = retrieved.decision is Decision.ROUTE and retrieved.selected[0] in chosen
    if supported:
        lifted = min(confidence + settings.confidence_boost, settings.confidence_cap)
        confidence = max(confidence, lifted)
        reason = f"{why_weak}; retrieval supports {retrieved.selected[0]}"
        entry = _trace_of_retrieval(retrieved, Outcome.SUPPORTED, reason)
    else:
        reason = f"{why_weak}; retrieval does not support it"
        entry = _trace_of_retrieval(retrieved, Outcome.DECLINED, reason)
    if confidence >= settings.confidence_threshold:
        return _of_selection(selection, Decision.ROUTE, chosen, suggested, confidence, entry)
    offered = _others((), (*chosen, *suggested), settings)
    return _of_selection(selection, Decision.CLARIFY, (), offered, 1 - confidence, entry)


def _verdict_of_unstated(
    selection: Selection, why_weak: str, retrieved: RetrievalDecision, settings: VectorSettings
) -> RoutingResult:
    """The verdict when the LLM's answer has no confidence. Where both load something, the skills
    that both chose are loaded, with the confidence of retrieval: nothing says how sure the others
    are. Where one loads what the other does not, either may be right, so retrieval's choice counts
    for half."""
    chosen, confidence = selection.skills, retrieved.confidence
    agreed = tuple(name for name in chosen if name in retrieved.selected)
    named = (*chosen, *retrieved.selected, *retrieved.ranked)
    if agreed and retrieved.selected[0] in agreed:
        reason = f"{why_weak}; retrieval supports {' and '.join(agreed)}"
        entry = _trace_of_retrieval(retrieved, Outcome.SUPPORTED, reason)
        others = _others(agreed, named, settings)
        return _of_selection(selection, Decision.ROUTE, agreed, others, confidence, entry)
    if retrieved.selected:
        decision, confidence = Decision.CLARIFY, 1 - confidence / 2
        reason = f"{why_weak}; {_would_load(retrieved)}"
    elif chosen:
        decision, reason = Decision.CLARIFY, f"{why_weak}; retrieval does not support it"
    else:
        decision, reason = Decision.ABSTAIN, f"{why_weak}; retrieval loads none either"
    entry = _trace_of_retrieval(retrieved, Outcome.DECLINED, reason)
    offered = _others((), named, settings)
    return _of_selection(selection, decision, (), offered, confidence, entry)


def _would_load(retrieved: RetrievalDecision) -> str:
    return f"retrieval would load {' and '.join(retrieved.selected)}"


def _of_selection(
    selection: Selection,
    decision: Decision,
    selected: tuple[str, ...],
    suggested: tuple[str, ...],
    confidence: float,
    vector: StageTrace,
) -> RoutingResult:
    layers = selection.memory_layers
    return RoutingResult(
        decision=decision,
        selected_skills=selected,
        suggested_skills=suggested,
        mission_brief=selection.mission_brief,
        reasoning=selection.reasoning,
        confidence=confidence,
        stage=Stage.LLM,
        trace=(vector,),
        # The LLM gives an order and no weights; 1, 1/2, 1/3, ... keeps the order.
        memory_layers=tuple(LayerChoice(name, 1 / (i + 1)) for i, name in enumerate(layers)),
    )


def verdict_of_retrieval(
    text: str, retrieved: RetrievalDecision, settings: VectorSettings
) -> RoutingResult:
    """The verdict of retrieval alone."""
    outcome = Outcome.ANSWERED if retrieved.decision is Decision.ROUTE else Outcome.DECLINED
    return RoutingResult(
        decision=retrieved.decision,
        selected_skills=retrieved.selected,
        suggested_skills=_others(retrieved.selected, retrieved.ranked, settings),
        mission_brief=brief(text, retrieved.selected),
        reasoning=retrieved.reason,
        confidence=retrieved.confidence,
        stage=Stage.VECTOR,
        trace=(_trace_of_retrieval(retrieved, outcome, retrieved.reason),),
    )


def verdict_of_local_model(
    text: str, answer: CalibratedAnswer, settings: VectorSettings, microseconds: float = 0.0
) -> RoutingResult:
    """The verdict when the local model answers."""
    vector = _trace_of_local_model(answer, Outcome.ANSWERED, microseconds)
    ranked = [name for skills, _ in answer.ranked for name in skills] if answer.skills else []
    return RoutingResult(
        decision=Decision.ROUTE if answer.skills else Decision.ABSTAIN,
        selected_skills=answer.skills,
        suggested_skills=_others(answer.skills, ranked, settings),
        mission_brief=brief(text, answer.skills),
        reasoning=vector.reason,
        confidence=answer.confidence,
        stage=Stage.VECTOR,
        trace=(vector,),
        calibrated=True,
        evidence_count=answer.outcomes,
    )


def verdict_of_neither(
    answer: CalibratedAnswer, other: RetrievalDecision, settings: VectorSettings
) -> RoutingResult:
    """The verdict when neither the local model nor retrieval over the other skills is likely to be
    right: suggest the best of both, or abstain when it is likely that no skill fits."""
    nothing = answer.nothing + (1 - answer.coverage) * (1 - (other.fits or 0.0))
    known = [name for skills, _ in answer.ranked for name in skills]
    if other.confidence > answer.confidence:
        offered = [*other.ranked[:1], *known[:1], *other.ranked, *known]
    else:
        offered = [*known[:1], *other.ranked[:1], *known, *other.ranked]
    vector = _trace_of_local_model(answer, Outcome.DECLINED, other.microseconds)
    return RoutingResult(
        decision=Decision.ABSTAIN if nothing >= LIKELY else Decision.CLARIFY,
        selected_skills=(),
        suggested_skills=_others((), offered, settings),
        reasoning=vector.reason + (f"; of the others, {other.reason}" if other.ranked else ""),
        confidence=nothing,
        stage=Stage.VECTOR,
        trace=(vector,),
        calibrated=True,
        evidence_count=answer.outcomes,
    )


def _trace_of_retrieval(retrieved: RetrievalDecision, outcome: Outcome, reason: str) -> StageTrace:
    seen = tuple(map(_candidate, retrieved.matches))
    return StageTrace(
        Stage.VECTOR, outcome, reason, retrieved.microseconds, retrieved.evidence, seen
    )


def _candidate(match: Match) -> Candidate:
    evidence: dict[str, EvidenceValue] = {
        "lexical": match.lexical,
        "cosine": match.cosine,
        "terms": match.terms[:MAX_SHOWN_TERMS],
    }
    if match.examples_weight:
        evidence["examples"] = match.examples
    return Candidate(match.name, match.score, evidence)


def _trace_of_local_model(
    answer: CalibratedAnswer, outcome: Outcome, microseconds: float
) -> StageTrace:
    named = " and ".join(answer.skills) or "no skill"
    return StageTrace(
        Stage.VECTOR,
        outcome,
        f"learnt from {answer.examples:,} examples: {named}, "
        f"with a probability of {answer.confidence:.3f}",
        microseconds,
        {
            "examples": answer.examples,
            "examples_of_answer": answer.examples_of_answer,
            COVERAGE: answer.coverage,
        },
        tuple(Candidate(" + ".join(skills) or "none", share) for skills, share in answer.ranked),
    )


def _others(
    selected: Sequence[str], names: Iterable[str], settings: VectorSettings
) -> tuple[str, ...]:
    """The skills to suggest: the first of ``names`` that are not selected."""
    others = (name for name in dict.fromkeys(names) if name not in selected)
    return tuple(islice(others, settings.max_suggestions))


def brief(request: str, selected: tuple[str, ...]) -> str:
    """The mission brief for the selected skills, on one line, in the words of the request."""
    if not selected:
        return ""
    text = " ".join(request.split())
    if len(text) > MAX_BRIEF_CHARACTERS:
        text = text[: MAX_BRIEF_CHARACTERS - 1].rstrip() + "…"
    return f"Use {' and '.join(selected)}: {text}"
