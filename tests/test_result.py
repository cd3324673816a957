"""Routing results: frozen, and the same after a trip through JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle

import pytest
from cached import answer
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from router.result import (
    Candidate,
    Decision,
    LayerChoice,
    Outcome,
    RoutingResult,
    Stage,
    StageTrace,
)

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
_NUMBER = st.floats(allow_nan=False, allow_infinity=False)
_EVIDENCE = st.dictionaries(
    _TEXT,
    st.one_of(
        _TEXT,
        st.integers(-(2**53), 2**53),
        _NUMBER,
        st.booleans(),
        st.lists(_TEXT, max_size=3).map(tuple),
    ),
    max_size=4,
)
_CANDIDATES = st.builds(Candidate, _TEXT, _NUMBER, _EVIDENCE)
_TRACES = st.builds(
    StageTrace,
    st.sampled_from(Stage),
    st.sampled_from(Outcome),
    _TEXT,
    _NUMBER,
    _EVIDENCE,
    st.lists(_CANDIDATES, max_size=3).map(tuple),
)
_NAMES = st.lists(_TEXT, max_size=3).map(tuple)
RESULTS = st.builds(
    RoutingResult,
    decision=st.sampled_from(Decision),
    selected_skills=_NAMES,
    suggested_skills=_NAMES,
    memory_layers=st.lists(
        st.builds(LayerChoice, _TEXT, st.floats(0, 1, exclude_min=True)), max_size=3
    ).map(tuple),
    mission_brief=_TEXT,
    reasoning=_TEXT,
    confidence=st.floats(0, 1),
    calibrated=st.booleans(),
    evidence_count=st.integers(0, 10_000),
    stage=st.sampled_from(Stage),
    from_cache=st.booleans(),
    catalog_version=_TEXT,
    trace=st.lists(_TRACES, max_size=4).map(tuple),
    id=_TEXT,
)


@given(RESULTS)
def test_a_result_survives_json(result: RoutingResult) -> None:
    assert RoutingResult.from_json(result.to_json()) == result


@given(RESULTS)
def test_a_result_cannot_be_changed(result: RoutingResult) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.confidence = 1.0  # type: ignore[misc]  # the point of the test


@given(RESULTS, st.data())
def test_a_missing_field_is_named(result: RoutingResult, data: st.DataObject) -> None:
    raw = result.to_dict()
    field = data.draw(st.sampled_from(["decision", "selected_skills", "confidence", "stage"]))
    del raw[field]
    with pytest.raises(ValueError, match=field):
        RoutingResult.from_dict(raw)


@given(RESULTS, st.data())
def test_a_field_of_the_wrong_type_is_named(result: RoutingResult, data: st.DataObject) -> None:
    raw = result.to_dict()
    field = data.draw(st.sampled_from(sorted(set(raw) - {"question"})))
    raw[field] = None
    with pytest.raises(ValueError, match=field):
        RoutingResult.from_dict(raw)


@given(RESULTS)
def test_what_a_later_version_adds_is_ignored(result: RoutingResult) -> None:
    assert RoutingResult.from_dict(result.to_dict() | {"extra": 1}) == result


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '"x"', "[" * 100_000])
def test_text_that_is_no_result_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        RoutingResult.from_json(text)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -0.001, 1.001, 10**400, True])
@given(RESULTS)
def test_a_number_that_is_no_probability_is_refused(number: float, result: RoutingResult) -> None:
    text = json.dumps(result.to_dict() | {"confidence": number})
    with pytest.raises(ValueError, match="confidence: "):
        RoutingResult.from_json(text)
    text = json.dumps(result.to_dict() | {"memory_layers": [{"name": "user", "weight": number}]})
    with pytest.raises(ValueError, match="weight: "):
        RoutingResult.from_json(text)


@given(RESULTS)
def test_a_result_can_be_pickled_and_copied(result: RoutingResult) -> None:
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own bytes
    assert copy.deepcopy(result) == result


def test_a_result_is_written_by_who_writes_dataclasses() -> None:
    seen = Candidate("git", 1.5, {"terms": ("squash",)})
    trace = StageTrace(Stage.VECTOR, Outcome.ANSWERED, "because", 12.0, {"words": 1}, (seen,))
    assert dataclasses.asdict(trace)["candidates"] == (
        {"name": "git", "score": 1.5, "evidence": seen.evidence},
    )
    assert json.loads(TypeAdapter(StageTrace).dump_json(trace))["evidence"] == {"words": 1}


@pytest.mark.parametrize(
    ("decision", "suggested", "question"),
    [
        (
            Decision.CLARIFY,
            ("git", "testing", "writer"),
            "Is it about git, testing or writer?",
        ),
        (Decision.CLARIFY, ("git",), "Is it about git?"),
        (Decision.CLARIFY, (), ""),
        (Decision.ROUTE, ("git",), ""),
        (Decision.ABSTAIN, ("git",), ""),
    ],
)
def test_only_what_is_unclear_asks_and_names_what_it_may_be(
    decision: Decision, suggested: tuple[str, ...], question: str
) -> None:
    result = answer("git").copy_with(decision=decision, suggested_skills=suggested)
    assert result.question == question
