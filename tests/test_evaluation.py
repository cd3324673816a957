"""The figures of an evaluation: rows, judgements and reports. The metrics themselves are compared
with those of other libraries in ``tests/benchmarks/test_metric_oracles.py``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.errors import ConfigurationError
from router.evaluation import (
    Judgement,
    LabelledRequest,
    hit_at_1,
    judge,
    ranking,
    read_rows,
    share,
    summarise,
    summarise_by_kind,
    unknown_labels,
)
from router.result import Candidate, Decision, Outcome, RoutingResult, Stage, StageTrace

unit = st.floats(0, 1)


def result(
    decision: Decision = Decision.ROUTE,
    selected: Sequence[str] = (),
    suggested: Sequence[str] = (),
    trace: Sequence[StageTrace] = (),
    confidence: float = 0.9,
) -> RoutingResult:
    return RoutingResult(
        decision=decision,
        selected_skills=tuple(selected),
        suggested_skills=tuple(suggested),
        confidence=confidence,
        stage=Stage.VECTOR,
        catalog_version="v",
        trace=tuple(trace),
        id="1",
    )


def entry(stage: Stage, *candidates: str) -> StageTrace:
    ranked = tuple(Candidate(name, 1.0) for name in candidates)
    return StageTrace(stage, Outcome.DECLINED, "", candidates=ranked)


def judged(
    labels: Sequence[str],
    decision: Decision,
    *selected: str,
    confidence: float = 0.9,
    milliseconds: float = 1.0,
    kind: str | None = None,
) -> Judgement:
    extra = {} if kind is None else {"kind": kind}
    row = LabelledRequest(1, "a request", tuple(labels), extra)
    answer = result(decision, selected, confidence=confidence)
    return judge(row, answer, milliseconds=milliseconds)


# ---------------------------------------------------------------- ranking


def test_the_ranking_is_selected_then_suggested_then_the_last_candidates_without_repeats() -> None:
    answer = result(
        selected=["b"],
        suggested=["a", "b"],
        trace=[entry(Stage.LLM, "x"), entry(Stage.VECTOR, "a", "c", "b", "d")],
    )
    assert ranking(answer) == ("b", "a", "c", "d")


def test_a_last_stage_without_candidates_leaves_the_word_to_the_one_before() -> None:
    answer = result(selected=["a"], trace=[entry(Stage.LLM, "a", "y"), entry(Stage.VECTOR)])
    assert ranking(answer) == ("a", "y")


def test_a_result_without_candidates_ranks_what_it_names() -> None:
    assert ranking(result(Decision.ABSTAIN)) == ()


def test_an_empty_ranking_hits_nothing() -> None:
    assert not hit_at_1([], ["a"])


# ---------------------------------------------------------------- intervals and percentiles


@given(st.lists(unit, min_size=1, max_size=60))
def test_the_interval_holds_the_mean_and_stays_between_0_and_1(values: list[float]) -> None:
    estimate = share(values)
    assert estimate is not None
    assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert estimate.rows == len(values)


def test_no_rows_have_no_share() -> None:
    assert share([]) is None


# ---------------------------------------------------------------- rows


def test_rows_keep_their_line_labels_and_other_keys() -> None:
    lines = [
        b'\xef\xbb\xbf{"request": "fix it", "skills": ["a", "a", "b"], "kind": "x", "n": 1}\r\n',
        b"\n",
        b'{"request": "tell me a joke", "skills": []}\n',
    ]
    assert read_rows(lines, source="f") == [
        LabelledRequest(1, "fix it", ("a", "b"), {"kind": "x", "n": 1}),
        LabelledRequest(3, "tell me a joke", (), {}),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON: "),
        (b"[1]", "expected an object, not list"),
        (b'{"skills": []}', "'request' must be a string"),
        (b'{"request": "x"}', "'skills' must be a list of names"),
        (b'{"request": "x", "skills": "git"}', "'skills' must be a list of names"),
        (b'{"request": "x", "skills": [1]}', "'skills' must be a list of names"),
        (b'{"request": "x", "skills": [], "history": "y"}', "'history' must be a list"),
        (b'{"request": "x", "skills": [], "history": [1]}', "history.0: a turn is"),
        (b'{"request": "x", "skills": [], "available": "git"}', "'available' must be a list"),
        (b'{"request": "  ", "skills": []}', "request: empty"),
        (b'{"request": "\\u0000", "skills": []}', "request: empty"),
        (b'{"request": "\xff"}', "not UTF-8 at byte 14"),
        (b"[" * 100_000, ""),
    ],
)
def test_a_malformed_row_is_named_by_file_and_line(line: bytes, reason: str) -> None:
    lines = [b'{"request": "x", "skills": []}\n', line]
    with pytest.raises(ConfigurationError) as caught:
        read_rows(lines, source="rows.jsonl")
    assert str(caught.value).startswith("rows.jsonl:2: ")
    assert reason in str(caught.value)


def test_a_row_with_other_earlier_turns_is_another_row() -> None:
    lines = [
        b'{"request": "and for 60?", "skills": ["a"]}',
        b'{"request": "and for 60?", "skills": ["a"], "history": ["scale the dough"]}',
        b'{"request": "and for 60?", "skills": ["a"], "available": ["a", "b"]}',
    ]
    assert len({row.digest("v") for row in read_rows(lines, source="f")}) == 3


def test_a_file_without_rows_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="no rows"):
        read_rows([b"\n"], source="empty.jsonl")


def test_labels_that_name_no_skill_are_reported_with_their_lines() -> None:
    rows = [
        LabelledRequest(1, "x", ("git", "gti"), {}),
        LabelledRequest(4, "y", ("gti",), {}),
    ]
    assert unknown_labels(rows, ["git"]) == {"gti": (1, 4)}


# ---------------------------------------------------------------- judgements and reports


@pytest.mark.parametrize(
    ("labels", "decision", "selected", "right"),
    [
        (["a"], Decision.ROUTE, ["a"], True),
        (["a", "b"], Decision.ROUTE, ["b"], True),
        (["a"], Decision.ROUTE, ["a", "b"], False),
        (["a"], Decision.CLARIFY, [], False),
        (["a"], Decision.ABSTAIN, [], False),
        ([], Decision.ROUTE, ["a"], False),
        ([], Decision.CLARIFY, [], True),
        ([], Decision.ABSTAIN, [], True),
    ],
)
def test_a_decision_is_right_when_it_selects_labels_only_or_nothing_fits(
    labels: list[str], decision: Decision, selected: list[str], right: bool
) -> None:
    assert judged(labels, decision, *selected).right is right


def test_a_report_counts_each_row_where_it_belongs() -> None:
    report = summarise(
        [
            judged(["a"], Decision.ROUTE, "a", confidence=0.9, milliseconds=1),
            judged(["a", "b"], Decision.ROUTE, "a", confidence=0.8, milliseconds=2),
            judged(["a"], Decision.ROUTE, "c", confidence=0.7, milliseconds=3),
            judged(["a"], Decision.CLARIFY, milliseconds=4),
            judged([], Decision.ROUTE, "a", confidence=0.6, milliseconds=5),
            judged([], Decision.ABSTAIN, milliseconds=6),
        ]
    )
    shares = {
        "hit": report.hit_at_1,
        "recall": report.recall_at_5,
        "right": report.right,
        "coverage": report.coverage,
        "accuracy": report.accuracy,
        "exact": report.exact,
        "false": report.false_accepts,
    }
    assert {key: (s.value, s.rows) for key, s in shares.items() if s} == {
        "hit": (2 / 4, 4),
        "recall": (1.5 / 4, 4),
        "right": (3 / 6, 6),
        "coverage": (3 / 4, 4),
        "accuracy": (2 / 3, 3),
        "exact": (1 / 3, 3),
        "false": (1 / 2, 2),
    }
    assert report.decisions == {"route": 4, "clarify": 1, "abstain": 1}
    assert report.risk_at == {"25%": 0, "50%": 0, "75%": 1 / 3, "100%": 1 / 2}
    assert report.aurc == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)
    assert report.latency_ms == {"p50": 3, "p90": 6, "p99": 6}


def test_a_report_without_routed_or_labelled_rows_leaves_out_what_nobody_can_say() -> None:
    report = summarise([judged([], Decision.ABSTAIN)])
    assert (report.hit_at_1, report.coverage, report.accuracy, report.aurc, report.ece) == (
        (None,) * 5
    )
    assert report.risk_at == {}


@given(st.permutations(range(6)))
def test_a_report_does_not_depend_on_the_order_of_the_rows(order: list[int]) -> None:
    rows = [
        judged(["a"], Decision.ROUTE, "a", confidence=0.9, milliseconds=1),
        judged(["a", "b"], Decision.ROUTE, "b", "a", confidence=0.9, milliseconds=2),
        judged(["a"], Decision.ROUTE, "c", confidence=0.9, milliseconds=3),
        judged(["a"], Decision.CLARIFY, milliseconds=4),
        judged([], Decision.ROUTE, "a", confidence=0.6, milliseconds=5),
        judged([], Decision.ABSTAIN, milliseconds=6),
    ]
    assert summarise([rows[i] for i in order]) == summarise(rows)


def test_kinds_are_reported_in_the_order_of_their_first_rows() -> None:
    rows = [
        judged(["a"], Decision.ROUTE, "a", kind="terse"),
        judged(["a"], Decision.ROUTE, "a", kind="direct"),
        judged(["a"], Decision.ABSTAIN, kind="terse"),
    ]
    reports = summarise_by_kind(rows)
    assert [(kind, report.rows) for kind, report in reports.items()] == [
        ("terse", 2),
        ("direct", 1),
    ]


def test_one_row_without_a_kind_means_no_kinds() -> None:
    rows = [judged(["a"], Decision.ROUTE, "a", kind="x"), judged(["a"], Decision.ROUTE, "a")]
    assert summarise_by_kind(rows) == {}


def test_a_row_that_nothing_fits_has_no_ranking_scores() -> None:
    assert "hit@1" not in judged([], Decision.ABSTAIN).to_dict()


def test_a_rows_own_keys_never_hide_what_was_measured() -> None:
    judgement = judged(["a"], Decision.ROUTE, "a")
    row = replace(judgement.row, extra={"decision": "mine", "note": "kept"})
    written = replace(judgement, row=row).to_dict()
    assert (written["decision"], written["note"]) == ("route", "kept")
