"""The tables of intents and of tool selection, from made-up data to their rows."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import (
    baselines,
    bfcl,
    classifiers,
    intents,
    learnt_routes,
    retraining,
    tool_selection,
)
from benchmarks.classifiers import NONE, Examples
from benchmarks.inputs import read, write
from router.numeric import wilson
from router.retrieval.bundled_encoder import BundledEncoder

TOPICS = {
    "weather": "will it rain snow or shine in the forecast for {}",
    "transfer_money": "send money from my account to {}",
    "play_music": "play a song by the band {}",
}
NAMES = ("anna", "bert", "carla", "dora", "emil", "frida", "gustav", "hanna")
VALIDATION = [f"{first} {last}" for first in NAMES[3:5] for last in NAMES[:4]]
OUT_OF_SCOPE = "how many legs does a {} have"


def lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, rows)


def labelled(names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {"text": text.format(name), "intent": intent}
        for intent, text in TOPICS.items()
        for name in names
    ]


def stranger(name: str) -> dict[str, Any]:
    return {"text": OUT_OF_SCOPE.format(name), "intent": "oos"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All four sets in their layouts, a few rows each."""
    folder = tmp_path_factory.mktemp("data")
    for name in intents.SETS:
        few_shot = folder / name / "fewshot_split"
        lines(few_shot / "train_10.jsonl", labelled(NAMES[:3]))
        lines(few_shot / "valid.jsonl", labelled(VALIDATION))
        lines(few_shot / "test.jsonl", labelled(NAMES[5:]))
    lines(folder / "banking77" / "train.jsonl", labelled(NAMES[:5]))
    strange = folder / "clinc150" / "fewshot_split" / "oos"
    lines(strange / "valid.jsonl", [stranger(name) for name in NAMES[:4]])
    lines(strange / "test.jsonl", [stranger(name) for name in NAMES[4:]])
    full = [row | {"split": "train", "oos": False} for row in labelled(NAMES[:5])]
    full += [row | {"split": "test", "oos": False} for row in labelled(NAMES[5:])]
    full += [stranger("spider") | {"split": "train", "oos": True}]
    lines(folder / "clinc150" / "full.jsonl", full)

    tools = [{"name": name, "description": text.format("you")} for name, text in TOPICS.items()]
    queries = [{"query": row["text"], "tool": row["intent"]} for row in labelled(NAMES)]
    needed = [{"query": row["query"], "needs_tool": True, "tool": row["tool"]} for row in queries]
    needless = [
        {"query": stranger(name)["text"], "needs_tool": False, "tool": None} for name in NAMES
    ]
    lines(folder / "metatool" / "tools.jsonl", tools)
    lines(folder / "metatool" / "single_tool.jsonl", queries)
    lines(folder / "metatool" / "task1_awareness.jsonl", needed[:6] + needless)

    place = {"type": "object", "properties": {"home_town": {"description": "a city"}}}
    parameters = {"type": "object", "properties": {"where": place, "days": {"type": "integer"}}}
    functions = [
        {"id": f"{number:x}", "name": "get", "description": tool["description"]}
        | {"parameters": parameters}
        for number, tool in enumerate(tools)
    ]
    ours = (key for key in map(str, count()) if bfcl.measured(key))
    asked = [
        question(next(ours), row["query"], [str(number)], [str(number)])
        for number, row in enumerate([queries[0], queries[8], queries[16]])
    ]
    asked += [question(next(ours), stranger(name)["text"], ["0", "1"], []) for name in NAMES]
    asked += [question(next(ours), "?", ["0"], None), question(next(ours), "?", [], [])]
    theirs = next(key for key in map(str, count()) if not bfcl.measured(key))
    asked += [question(theirs, "?", ["0"], [])]
    lines(folder / "bfcl" / "tools.jsonl", functions)
    lines(folder / "bfcl" / "queries.jsonl", asked)
    return folder


def question(key: str, text: str, candidates: list[str], gold: list[str] | None) -> dict[str, Any]:
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": text}]
    return {"id": key, "messages": messages, "candidate_ids": candidates, "gold_ids": gold}


class Printed:
    """What a script printed with ``--json``, and the rows that it wrote."""

    def __init__(self, found: dict[str, Any], by_request: list[dict[str, Any]]) -> None:
        self.rows = found["rows"]
        self.series = found.get("series", {})
        self.by_request = by_request

    def row(self, **wanted: object) -> dict[str, Any]:
        (row,) = (row for row in self.rows if wanted.items() <= row.items())
        found: dict[str, Any] = row
        return found


@pytest.fixture
def printed(
    data: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Printed:
    """Of the script that the test names."""
    script = request.param
    out = tmp_path / "rows.jsonl"
    monkeypatch.setattr("sys.argv", ["x", "--data", str(data), "--json", "--rows", str(out)])
    script.main()
    return Printed(json.loads(capsys.readouterr().out), read(out))


of_intents = pytest.mark.parametrize("printed", [intents], indirect=True)
of_tools = pytest.mark.parametrize("printed", [tool_selection], indirect=True)


@of_intents
def test_every_method_of_intents_has_a_row_for_each_number_of_examples(printed: Printed) -> None:
    found = {(row["data"], row["examples"], row["method"]) for row in printed.rows}
    assert len(found) == len(printed.rows)
    for data in intents.SETS:
        for examples in ("10", "all"):
            assert {(data, examples, method) for method in intents.METHODS} <= found
    assert ("clinc150", "10", "head, none") in found
    assert ("banking77", "10", "head, none") not in found


@of_intents
def test_intents_that_differ_in_every_word_are_told_apart(printed: Printed) -> None:
    row = printed.row(data="clinc150", examples="10", method="head")
    assert (row["requests"], row["accuracy"], row["auroc"]) == (9, 1.0, 1.0)
    assert row["accuracy_95"] == list(wilson(9, 9))
    assert "auroc" not in printed.row(data="banking77", examples="10", method="head")


@of_intents
def test_the_curves_end_where_every_request_is_answered(printed: Printed) -> None:
    curve = printed.series["risk_coverage_clinc150"]["head"]
    assert curve[-1][0] == 1.0
    assert curve[-1][1] == pytest.approx(4 / 13)  # those out of scope


@of_intents
def test_a_calibrated_confidence_is_measured_on_requests_that_it_was_not_fitted_on(
    printed: Printed,
) -> None:
    row = printed.row(data="clinc150", examples="10", method="nearest example")
    # All of the validation requests are answered rightly, and so are those of the test.
    assert row["ece_fitted"] < row["ece"]
    curve = printed.series["reliability_clinc150"]["nearest example"]
    assert [right for _, right in curve] == [1.0] * len(curve)


@of_intents
def test_rows_of_intents_hold_labels_and_no_texts(printed: Printed) -> None:
    clinc = [row for row in printed.by_request if row["id"].startswith("clinc150/test/")]
    assert [row["label"] for row in clinc].count(None) == 4
    assert len(clinc) == 13
    assert clinc[0]["answers"]["10, head"][0] == clinc[0]["label"]
    assert "forecast" not in json.dumps(printed.by_request)


@of_tools
def test_tools_are_ranked_and_refused_by_every_method(printed: Printed) -> None:
    ranking = [row["method"] for row in printed.rows if "ndcg@5" in row]
    assert ranking.count("head") == ranking.count("head and retrieval") == 4
    assert {"BM25", "encoder", "retrieval", "nearest query", "class mean"} <= set(ranking)
    learnt = printed.row(method="head", learnt="all", data="metatool", queries=8)
    assert (learnt["hit@1"], learnt["ndcg@5"]) == (1.0, 1.0)
    half = printed.row(data="metatool", learnt="all, and half of the needless")
    assert (half["needed"], half["needless"], half["refused"]) == (6, 8, 1.0)


@of_tools
def test_questions_of_the_other_half_or_without_label_or_function_are_left_out(
    printed: Printed,
) -> None:
    row = printed.row(data="bfcl", method="BM25, parameters")
    assert (row["needed"], row["needless"]) == (3, 8)
    asked = [row for row in printed.by_request if row["id"].startswith("bfcl/")]
    assert [row["needs_tool"] for row in asked] == [True] * 3 + [False] * 8
    assert "money" not in json.dumps(printed.by_request).replace("transfer_money", "")


def test_parameters_are_read_at_every_depth() -> None:
    town = {"properties": {"home_town": {"description": "a city"}}}
    function = {"parameters": {"properties": {"places": {"items": town}, "days": {}}}}
    assert bfcl.words_of(function).split() == "places days home town a city".split()


# --- answers from examples


def examples(labels: Sequence[str], vectors: Sequence[Sequence[float]]) -> Examples:
    table = np.array(vectors, dtype=np.float32)
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    return Examples([f"text {label}" for label in labels], labels, table)


def test_the_nearest_example_of_each_class_gives_its_score() -> None:
    known = examples(["b", "a", "b"], [[1, 0], [0, 1], [1, 1]])
    found = classifiers.nearest_example(known)
    assert found.classes == ("a", "b")
    asked = examples(["", ""], [[0, 1], [1, 0]])
    table = found.table(asked.texts, asked.vectors)
    assert table == pytest.approx(np.array([[1, 0.5**0.5], [0, 1]]))


def test_a_class_mean_has_unit_length() -> None:
    found = classifiers.class_mean(examples(["a", "b", "b"], [[1, 0], [1, 1], [-1, 1]]))
    assert found.table([""], np.array([[0, 1]], np.float32)) == pytest.approx(np.array([[0, 1]]))


def test_being_like_examples_of_none_counts_against_a_request() -> None:
    known = examples(["a", NONE], [[1, 0], [0, 1]])
    answers = classifiers.nearest_example(known).answers(["", ""], known.vectors)
    assert answers.labels == ["a", "a"]
    assert answers.scores == pytest.approx(np.array([1, -1]))


def test_a_request_expresses_the_words_that_it_is_near_to_by_their_rarity() -> None:
    encoder = BundledEncoder()
    texts = ["play a song", "play a game"]
    found = baselines.expressed(
        encoder, texts, ["song", "play", "song game play"], [[0], [0], [0, 1]]
    )
    assert found[2] == pytest.approx(1)
    play, song = encoder.encode(["play", "song"])
    common, rare = math.log1p(0.5 / 2.5), math.log1p(1.5 / 1.5)
    near = max(float(play @ song), 0)
    assert found[0] == pytest.approx((rare + common * near) / (rare + common), abs=1e-6)
    assert found[1] == pytest.approx((common + rare * near) / (rare + common), abs=1e-6)


def test_a_request_of_function_words_is_taken_by_those() -> None:
    found = baselines.expressed(
        BundledEncoder(), ["to be or not"], ["not to be or", "..."], [[0], [0]]
    )
    assert found == pytest.approx(np.array([1, 0]))


async def test_routes_before_and_after_learning_have_a_row_each(data: Path) -> None:
    rows, series, found = await learnt_routes.measure(data, BundledEncoder())
    assert [(row["data"], row["learnt"]) for row in rows] == [
        ("clinc150", "nothing"),
        ("clinc150", learnt_routes.FROM_MANIFESTS),
        ("banking77", "nothing"),
        ("banking77", learnt_routes.FROM_MANIFESTS),
        ("metatool", "nothing"),
        ("metatool", "all"),
        ("metatool", "nothing"),
        ("metatool", "every second tool"),
    ]
    assert "accepted" in rows[0] and "accepted" not in rows[2]
    assert set(series) == {"risk_coverage", "reliability"}
    assert len(found) == sum(row["requests"] for row in rows) + 2 * len(NAMES[4:])
    assert "text" not in found[0]


async def test_the_stream_with_feedback_is_measured_against_the_one_without(data: Path) -> None:
    alone, beside = await retraining.measure(data, BundledEncoder())
    assert alone["p99_times"] == 1.0
    assert beside["routes"] == alone["routes"]
