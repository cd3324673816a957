"""The end of the path: from what the stages found to a verdict, which says what to load, how sure
the router is, and why.

A verdict is a ``RoutingResult`` whose trace holds the entry of stage 4 alone. ``Decider`` puts the
earlier stages before it, and calibrates its confidence.

An LLM answer is weak when it names no skill, is less sure than ``confidence_threshold``, or names
one generic skill alone. A weak answer is weighed against retrieval: when retrieval supports it, its
confidence rises; when not, it stays. Skills that the LLM rejected are suggested at most.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from router.stages.retrieval import MAX_SHOWN_TERMS, RetrievalDecision

if TYPE_CHECKING:
    from router.learning.learner import ExampleAnswer

MAX_BRIEF_CHARACTERS: Final = 200
LIKELY: Final = 0.5
"""The answer of the examples is given from this probability on: it is then more likely right than
wrong."""


_NOT_NEEDED: Final = StageTrace(Stage.VECTOR, Outcome.SKIPPED, "the LLM's route is strong")


def weakness(
    chosen: Sequence[str],
    confidence: float,
    skills: Mapping[str, SkillManifest],
    settings: VectorSettings,
) -> str | None:
    """Why stage 4 is needed after an LLM chose these skills; None when they are a strong answer,
    which the caches may keep, whoever chose them."""
    if not chosen:
        return "the LLM chose no skill"
    if confidence < settings.confidence_threshold:
        return f"the LLM's confidence is {confidence:.2f}"
    first = chosen[0]
    generic = first in settings.generic_skills or (first in skills and skills[first].generic)
    if generic and len(chosen) == 1:
        return f"{first} alone is a generic choice"
    return None


def of_llm(selection: Selection, confidence: float) -> RoutingResult:
    """The verdict of a strong LLM answer."""
    return _of_selection(selection, Decision.ROUTE, selection.skills, (), confidence, _NOT_NEEDED)


def weigh(
    selection: Selection,
    confidence: float,
    why_weak: str,
    local: RetrievalDecision,
    settings: VectorSettings,
) -> RoutingResult:
    """The verdict on a weak LLM answer in the light of retrieval."""
    chosen = selection.skills
    suggested = _others(chosen, local.ranked, settings)
    if not chosen:
        # The model read the request and declined: retrieval may offer, but not overrule it.
        reason = f"{why_weak}; offered: {', '.join(suggested) or 'nothing'}"
        entry = _trace_of_retrieval(local, Outcome.DECLINED, reason)
        return _of_selection(selection, Decision.ABSTAIN, (), suggested, confidence, entry)
    supported = local.decision is Decision.ROUTE and local.selected[0] in chosen
    if supported:
        lifted = min(confidence + settings.confidence_boost, settings.confidence_cap)
        confidence = max(confidence, lifted)
        reason = f"{why_weak}; retrieval supports {local.selected[0]}"
        entry = _trace_of_retrieval(local, Outcome.SUPPORTED, reason)
    else:
        reason = f"{why_weak}; retrieval does not support it"
        entry = _trace_of_retrieval(local, Outcome.DECLINED, reason)
    if confidence >= settings.confidence_threshold:
        return _of_selection(selection, Decision.ROUTE, chosen, suggested, confidence, entry)
    offered = (*chosen, *suggested)
    return _of_selection(selection, Decision.CLARIFY, (), offered, 1 - confidence, entry)


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
        # The model ranks the layers and gives no weights; the harmonic series keeps the order.
        memory_layers=tuple(LayerChoice(name, 1 / (i + 1)) for i, name in enumerate(layers)),
    )


def of_retrieval(text: str, local: RetrievalDecision, settings: VectorSettings) -> RoutingResult:
    """The verdict of retrieval alone."""
    outcome = Outcome.ANSWERED if local.decision is Decision.ROUTE else Outcome.DECLINED
    return RoutingResult(
        decision=local.decision,
        selected_skills=local.selected,
        suggested_skills=_others(local.selected, local.ranked, settings),
        mission_brief=brief(text, local.selected),
        reasoning=local.reason,
        confidence=local.confidence,
        stage=Stage.VECTOR,
        trace=(_trace_of_retrieval(local, outcome, local.reason),),
    )


def of_examples(
    text: str, answer: ExampleAnswer, settings: VectorSettings, microseconds: float = 0.0
) -> RoutingResult:
    """The verdict of the examples."""
    vector = _trace_of_examples(answer, Outcome.ANSWERED, microseconds)
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


def of_neither(
    answer: ExampleAnswer, other: RetrievalDecision, settings: VectorSettings
) -> RoutingResult:
    """The verdict when neither the examples nor retrieval over the other skills are likely to be
    right: suggest the best of both, or refuse when it is likely that nothing fits."""
    nothing = answer.nothing + (1 - answer.coverage) * (1 - (other.fits or 0.0))
    known = [name for skills, _ in answer.ranked for name in skills]
    if other.confidence > answer.confidence:
        offered = [*other.ranked[:1], *known[:1], *other.ranked, *known]
    else:
        offered = [*known[:1], *other.ranked[:1], *known, *other.ranked]
    vector = _trace_of_examples(answer, Outcome.DECLINED, other.microseconds)
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


def _trace_of_retrieval(local: RetrievalDecision, outcome: Outcome, reason: str) -> StageTrace:
    seen = tuple(map(_candidate, local.matches))
    return StageTrace(Stage.VECTOR, outcome, reason, local.microseconds, local.evidence, seen)


def _candidate(match: Match) -> Candidate:
    evidence: dict[str, EvidenceValue] = {
        "lexical": match.lexical,
        "cosine": match.cosine,
        "terms": match.terms[:MAX_SHOWN_TERMS],
    }
    if match.known:
        evidence["examples"] = match.examples
    return Candidate(match.name, match.score, evidence)


def _trace_of_examples(answer: ExampleAnswer, outcome: Outcome, microseconds: float) -> StageTrace:
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
    """What is suggested beside the selected skills: the first of ``names``, each once."""
    others = (name for name in dict.fromkeys(names) if name not in selected)
    return tuple(islice(others, settings.max_suggestions))


def brief(request: str, selected: tuple[str, ...]) -> str:
    """What the skills are to do, in the requester's own words, on one line."""
    if not selected:
        return ""
    text = " ".join(request.split())
    if len(text) > MAX_BRIEF_CHARACTERS:
        text = text[: MAX_BRIEF_CHARACTERS - 1].rstrip() + "…"
    return f"Use {' and '.join(selected)}: {text}"
