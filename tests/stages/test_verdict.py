"""Weighing an LLM answer against retrieval."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.learning.learner import CalibratedAnswer
from router.llm.prompt import Selection
from router.result import Decision, LayerChoice, Outcome, RoutingResult, Stage, StageTrace
from router.retrieval.matches import Match
from router.settings.settings import VectorSettings
from router.skills.manifest import SkillManifest
from router.stages.from_ranking import RetrievalDecision
from router.stages.llm import LLMAnswer
from router.stages.verdict import (
    MAX_BRIEF_CHARACTERS,
    verdict_of_llm,
    verdict_of_local_model,
    verdict_of_retrieval,
    verdict_of_weak_llm,
    weakness,
)

SETTINGS = VectorSettings()


def skill(name: str, *, generic: bool = False) -> SkillManifest:
    return SkillManifest(
        name=name,
        description="d",
        body="",
        path=Path(f"/skills/{name}/SKILL.md"),
        digest="0",
        generic=generic,
    )


SKILLS = {
    manifest.name: manifest
    for manifest in (skill("git"), skill("testing"), skill("writer"), skill("helper", generic=True))
}


def choice(*names: str, confidence: float | None = 0.9, **fields: Any) -> LLMAnswer:
    chosen = Selection(names, mission_brief="brief", reasoning="because", **fields)
    return LLMAnswer(chosen, confidence, StageTrace(Stage.LLM, Outcome.ANSWERED, "it chose"))


def weighed(
    answer: LLMAnswer, why_weak: str, found: RetrievalDecision, settings: VectorSettings
) -> tuple[RoutingResult, StageTrace]:
    """The verdict on a weak answer, and stage 4's entry."""
    assert answer.selection is not None
    verdict = verdict_of_weak_llm(answer.selection, answer.confidence, why_weak, found, settings)
    return verdict, verdict.trace[0]


def taken(answer: LLMAnswer) -> RoutingResult:
    """The verdict on a strong answer."""
    assert answer.selection is not None
    assert answer.confidence is not None
    return verdict_of_llm(answer.selection, answer.confidence)


def retrieved(
    text: str, found: RetrievalDecision, settings: VectorSettings = SETTINGS
) -> RoutingResult:
    """The verdict without an LLM."""
    return verdict_of_retrieval(text, found, settings)


def local(
    decision: Decision,
    *selected: str,
    ranked: tuple[str, ...] = ("git", "testing", "writer", "helper"),
    confidence: float = 0.8,
) -> RetrievalDecision:
    matches = tuple(Match(name, 0.5, 0.5, 0.5, 0.0, False, ()) for name in ranked)
    return RetrievalDecision(decision, selected, confidence, "found so", {}, matches, 5.0)


ROUTED_TO_GIT = local(Decision.ROUTE, "git")
REFUSED = local(Decision.ABSTAIN)
UNSURE = local(Decision.CLARIFY)


# --- what is weak


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (choice(), "the LLM chose no skill"),
        (choice(confidence=0.05), "the LLM chose no skill, with a confidence of 0.05"),
        (choice("git", confidence=0.49), "the LLM's confidence is 0.49"),
        (choice("writer"), "writer alone is a generic choice"),
        (choice("helper"), "helper alone is a generic choice"),
        (choice("knowledge"), "knowledge alone is a generic choice"),
        (choice("git"), None),
        (choice("git", confidence=0.5), None),
        (choice("writer", "git"), None),
        (choice("writer", "helper"), None),
        (choice("git", confidence=None), "the LLM stated no confidence"),
        (choice(confidence=None), "the LLM stated no confidence, and chose no skill"),
    ],
)
def test_weakness_names_its_reason(answer: LLMAnswer, why: str | None) -> None:
    assert answer.selection is not None
    assert weakness(answer.selection.skills, answer.confidence, SKILLS, SETTINGS) == why


def test_the_generic_skills_are_a_setting() -> None:
    settings = VectorSettings(generic_skills=("git",))
    assert weakness(["git"], 0.9, SKILLS, settings) == "git alone is a generic choice"
    assert weakness(["helper"], 0.9, SKILLS, settings) == "helper alone is a generic choice"
    assert weakness(["writer"], 0.9, SKILLS, settings) is None


# --- strong answers


def test_a_strong_answer_is_taken_as_it_is() -> None:
    verdict = taken(choice("git", "testing", confidence=0.8))
    assert verdict.decision is Decision.ROUTE
    assert verdict.selected_skills == ("git", "testing")
    assert verdict.suggested_skills == ()
    assert (verdict.mission_brief, verdict.reasoning) == ("brief", "because")
    assert (verdict.confidence, verdict.stage) == (0.8, Stage.LLM)


def test_memory_layers_keep_their_order_and_have_falling_weights() -> None:
    layers = ("project", "session", "graph")
    expected = tuple(
        LayerChoice(name, weight) for name, weight in zip(layers, (1, 1 / 2, 1 / 3), strict=True)
    )
    answer = choice("git", confidence=0.4, memory_layers=layers)
    assert taken(answer).memory_layers == expected
    for found in (ROUTED_TO_GIT, REFUSED, UNSURE):
        assert weighed(answer, "weak", found, SETTINGS)[0].memory_layers == expected


# --- weak answers


def test_support_lifts_a_weak_answer_into_a_route() -> None:
    verdict, entry = weighed(choice("git", confidence=0.4), "weak", ROUTED_TO_GIT, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.ROUTE, ("git",))
    assert verdict.suggested_skills == ("testing", "writer", "helper")
    assert verdict.confidence == pytest.approx(0.55)
    assert verdict.stage is Stage.LLM
    assert (entry.outcome, entry.reason) == (Outcome.SUPPORTED, "weak; retrieval supports git")


def test_support_that_does_not_reach_the_threshold_leaves_a_question() -> None:
    verdict, entry = weighed(choice("git", confidence=0.2), "weak", ROUTED_TO_GIT, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.CLARIFY, ())
    assert verdict.suggested_skills[0] == "git"
    assert verdict.confidence == pytest.approx(0.65)
    assert entry.outcome is Outcome.SUPPORTED


@pytest.mark.parametrize("found", [REFUSED, UNSURE, local(Decision.ROUTE, "testing")])
def test_an_unsure_answer_without_support_becomes_a_question(found: RetrievalDecision) -> None:
    verdict, entry = weighed(choice("git", confidence=0.4), "weak", found, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.CLARIFY, ())
    assert verdict.suggested_skills[0] == "git"
    assert verdict.confidence == pytest.approx(0.6)
    assert entry.outcome is Outcome.DECLINED
    assert entry.reason == "weak; retrieval does not support it"


def test_a_generic_answer_with_support_is_lifted() -> None:
    found = local(Decision.ROUTE, "writer")
    verdict, entry = weighed(choice("writer", confidence=0.7), "generic", found, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.ROUTE, ("writer",))
    assert verdict.confidence == pytest.approx(0.85)
    assert entry.outcome is Outcome.SUPPORTED


@pytest.mark.parametrize("found", [REFUSED, UNSURE, ROUTED_TO_GIT])
def test_a_generic_answer_without_support_stays_as_it_is(found: RetrievalDecision) -> None:
    verdict, entry = weighed(choice("writer", confidence=0.7), "generic", found, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.ROUTE, ("writer",))
    assert verdict.confidence == 0.7
    assert entry.outcome is Outcome.DECLINED


def test_support_counts_for_the_best_local_skill_only() -> None:
    found = local(Decision.ROUTE, "testing", "git")
    assert weighed(choice("git", confidence=0.4), "weak", found, SETTINGS)[0].confidence == (
        pytest.approx(0.6)
    )


def test_what_the_llm_declined_is_offered_and_not_loaded() -> None:
    verdict, entry = weighed(choice(confidence=0.8), "none", ROUTED_TO_GIT, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.ABSTAIN, ())
    assert verdict.suggested_skills == ("git", "testing", "writer")
    assert verdict.confidence == 0.8
    assert (entry.outcome, entry.reason) == (
        Outcome.DECLINED,
        "none; offered: git, testing, writer",
    )


def test_an_unsure_none_becomes_a_question_where_retrieval_would_load_a_skill() -> None:
    found = local(Decision.ROUTE, "testing", confidence=0.9)
    verdict, entry = weighed(choice(confidence=0.05), "unsure", found, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.CLARIFY, ())
    assert verdict.suggested_skills == ("testing", "git", "writer")
    assert verdict.confidence == pytest.approx((0.05 + 0.1) / 2)
    assert entry.outcome is Outcome.DECLINED
    assert entry.reason == "unsure; retrieval would load testing"


@pytest.mark.parametrize("found", [REFUSED, UNSURE])
def test_an_unsure_none_stays_one_where_retrieval_would_load_none(
    found: RetrievalDecision,
) -> None:
    verdict, _ = weighed(choice(confidence=0.05), "unsure", found, SETTINGS)
    assert (verdict.decision, verdict.confidence) == (Decision.ABSTAIN, 0.05)


# --- answers without a confidence

UNSTATED = "the LLM stated no confidence"


@pytest.mark.parametrize("confidence", [0.31, 0.99])
def test_an_answer_without_a_confidence_has_that_of_retrieval_where_both_agree(
    confidence: float,
) -> None:
    found = local(Decision.ROUTE, "git", confidence=confidence)
    verdict, entry = weighed(choice("git", confidence=None), UNSTATED, found, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.ROUTE, ("git",))
    assert verdict.confidence == confidence
    assert verdict.suggested_skills == ("testing", "writer", "helper")
    assert verdict.stage is Stage.LLM
    assert verdict.reasoning == "because (the LLM stated no confidence)"
    assert entry.outcome is Outcome.SUPPORTED
    assert entry.reason == "the LLM stated no confidence; retrieval supports git"


def test_without_a_confidence_only_what_both_chose_is_loaded() -> None:
    found = local(Decision.ROUTE, "git", "testing")
    verdict, _ = weighed(choice("writer", "git", confidence=None), UNSTATED, found, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.ROUTE, ("git",))
    assert verdict.suggested_skills == ("writer", "testing", "helper")


@pytest.mark.parametrize("names", [("testing",), ("writer",), ()])
def test_an_answer_without_a_confidence_that_retrieval_contradicts_becomes_a_question(
    names: tuple[str, ...],
) -> None:
    verdict, entry = weighed(choice(*names, confidence=None), UNSTATED, ROUTED_TO_GIT, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (Decision.CLARIFY, ())
    assert verdict.suggested_skills[: len(names) + 1] == (*names, "git")
    assert verdict.confidence == pytest.approx(1 - 0.8 / 2)
    assert entry.outcome is Outcome.DECLINED
    assert entry.reason == "the LLM stated no confidence; retrieval would load git"


@pytest.mark.parametrize("found", [REFUSED, UNSURE])
@pytest.mark.parametrize(
    ("names", "decision", "reason"),
    [
        (("git",), Decision.CLARIFY, "retrieval does not support it"),
        ((), Decision.ABSTAIN, "retrieval loads none either"),
    ],
)
def test_without_any_confidence_in_a_skill_none_is_loaded(
    names: tuple[str, ...], decision: Decision, reason: str, found: RetrievalDecision
) -> None:
    verdict, entry = weighed(choice(*names, confidence=None), UNSTATED, found, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (decision, ())
    assert verdict.suggested_skills[0] == "git"
    assert verdict.confidence == found.confidence
    assert (entry.outcome, entry.reason) == (Outcome.DECLINED, f"{UNSTATED}; {reason}")


CONFIDENCES = st.floats(0, 1)
LOCAL = st.sampled_from([ROUTED_TO_GIT, REFUSED, UNSURE, local(Decision.ROUTE, "testing")])


@given(CONFIDENCES, CONFIDENCES, CONFIDENCES, CONFIDENCES, LOCAL)
def test_a_lift_never_lowers_never_passes_the_cap_and_needs_support(
    stated: float, boost: float, cap: float, threshold: float, found: RetrievalDecision
) -> None:
    settings = VectorSettings(
        confidence_boost=boost, confidence_cap=cap, confidence_threshold=threshold
    )
    verdict, _ = weighed(choice("git", confidence=stated), "weak", found, settings)
    routed = verdict.decision is Decision.ROUTE
    confidence = verdict.confidence if routed else 1 - verdict.confidence
    assert confidence >= stated - 1e-9
    assert confidence <= max(stated, min(cap, stated + boost)) + 1e-9
    if found is not ROUTED_TO_GIT:
        assert confidence == pytest.approx(stated)


@given(CONFIDENCES, st.sampled_from([(), ("git",), ("writer",), ("git", "testing")]))
def test_a_request_that_retrieval_refuses_is_never_lifted(
    stated: float, names: tuple[str, ...]
) -> None:
    verdict, entry = weighed(choice(*names, confidence=stated), "weak", REFUSED, SETTINGS)
    assert entry.outcome is Outcome.DECLINED
    assert verdict.confidence in (stated, 1 - stated)
    assert verdict.selected_skills == (names if verdict.decision is Decision.ROUTE else ())


@given(
    st.integers(0, 20),
    LOCAL,
    st.sampled_from([(), ("git",), ("helper", "git")]),
    CONFIDENCES | st.none(),
)
def test_suggestions_are_few_and_none_is_selected_too(
    limit: int, found: RetrievalDecision, names: tuple[str, ...], stated: float | None
) -> None:
    settings = VectorSettings(max_suggestions=limit)
    verdict, _ = weighed(choice(*names, confidence=stated), "weak", found, settings)
    assert len(verdict.suggested_skills) <= limit
    assert not set(verdict.suggested_skills) & set(verdict.selected_skills)
    assert len(set(verdict.suggested_skills)) == len(verdict.suggested_skills)


@pytest.mark.parametrize("stated", [0.3, 0.9, None])
@pytest.mark.parametrize(
    ("found", "decision", "confidence"),
    [(ROUTED_TO_GIT, Decision.CLARIFY, 0.6), (REFUSED, Decision.ABSTAIN, 0.8)],
)
def test_the_confidence_in_what_the_request_refuses_is_none_in_loading_nothing(
    stated: float | None, found: RetrievalDecision, decision: Decision, confidence: float
) -> None:
    """An LLM that was sure of a generic skill made it as sure that no skill fits."""
    found = replace(found, evidence={"refused": ("writer",)})
    verdict, entry = weighed(choice("writer", confidence=stated), "weak", found, SETTINGS)
    assert (verdict.decision, verdict.selected_skills) == (decision, ())
    assert verdict.confidence == pytest.approx(confidence)
    assert "writer" not in verdict.suggested_skills[:1]
    assert entry.reason.startswith("weak; the request does not want writer; retrieval")
    assert ("stated no confidence" in verdict.reasoning) == (stated is None)


# --- no LLM


def test_without_an_llm_retrieval_decides() -> None:
    verdict = retrieved("commit\n  it", ROUTED_TO_GIT)
    assert (verdict.decision, verdict.selected_skills) == (Decision.ROUTE, ("git",))
    assert verdict.suggested_skills == ("testing", "writer", "helper")
    assert verdict.mission_brief == "Use git: commit it"
    assert (verdict.reasoning, verdict.confidence) == ("found so", 0.8)
    assert (verdict.memory_layers, verdict.stage) == ((), Stage.VECTOR)


@pytest.mark.parametrize(
    ("found", "strong"),
    [
        (ROUTED_TO_GIT, True),
        (local(Decision.ROUTE, "git", confidence=0.49), False),
        (local(Decision.ROUTE, "helper"), False),
        (UNSURE, False),
        (REFUSED, False),
    ],
)
def test_only_a_sure_route_to_more_than_a_generic_skill_is_strong(
    found: RetrievalDecision, strong: bool
) -> None:
    verdict = retrieved("commit it", found)
    weak = weakness(verdict.selected_skills, verdict.confidence, SKILLS, SETTINGS)
    assert (weak is None) is strong


def test_two_skills_share_a_brief() -> None:
    found = local(Decision.ROUTE, "git", "testing")
    verdict = retrieved("commit the tests", found)
    assert verdict.mission_brief == "Use git and testing: commit the tests"
    assert verdict.suggested_skills == ("writer", "helper")


def test_a_long_request_is_cut_in_the_brief() -> None:
    verdict = retrieved("commit it " * 100, ROUTED_TO_GIT)
    text = verdict.mission_brief.removeprefix("Use git: ")
    assert len(text) <= MAX_BRIEF_CHARACTERS
    assert text.endswith("…")


def test_a_question_and_a_refusal_offer_the_best() -> None:
    settings = VectorSettings(max_suggestions=2)
    unsure, refused = (retrieved("commit it", found, settings) for found in (UNSURE, REFUSED))
    assert (unsure.selected_skills, unsure.suggested_skills) == ((), ("git", "testing"))
    assert (refused.selected_skills, refused.suggested_skills) == ((), ("git", "testing"))
    assert (unsure.mission_brief, refused.mission_brief) == ("", "")


def test_the_reason_of_the_examples_does_not_claim_that_all_are_of_the_answer() -> None:
    answer = CalibratedAnswer(
        skills=("git",),
        confidence=0.991,
        coverage=1.0,
        nothing=0.0,
        ranked=((("git",), 0.991),),
        examples=1_199,
        examples_of_answer=16,
        outcomes=1_094,
    )
    verdict = verdict_of_local_model("push it", answer, SETTINGS)
    assert verdict.reasoning == "learnt from 1,199 examples: git, with a probability of 0.991"
