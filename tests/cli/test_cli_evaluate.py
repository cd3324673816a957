"""``router eval`` and ``router demo``: real routes over small and over the shipped skills."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli.results import Run

ROWS: tuple[dict[str, Any], ...] = (
    {"request": "commit my changes and push them", "skills": ["git"], "kind": "direct"},
    {"request": "commit my changes and push them", "skills": ["git"], "kind": "direct"},
    {"request": "plot a chart of this csv file", "skills": ["data-analysis"], "kind": "direct"},
    {"request": "zxcv qwer", "skills": [], "kind": "none", "note": "noise"},
)


@pytest.fixture
def labelled(tmp_path: Path) -> Callable[[Sequence[dict[str, Any]]], Path]:
    def write(rows: Sequence[dict[str, Any]]) -> Path:
        file = tmp_path / "labelled.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return file

    return write


Labelled = Callable[[Sequence[dict[str, Any]]], Path]


def test_the_report_as_json_covers_all_rows_and_each_kind(
    run: Run, skills: Path, labelled: Labelled
) -> None:
    result = run("eval", labelled(ROWS), "--skills", skills, "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 0
    assert report["rows"] == 4
    assert report["hit_at_1"]["value"] == 1
    assert report["coverage"]["rows"] == 3
    assert report["false_accepts"]["value"] == 0
    assert {kind: part["rows"] for kind, part in report["by_kind"].items()} == {
        "direct": 3,
        "none": 1,
    }
    assert set(report["latency_ms"]) == {"p50", "p90", "p99"}


def test_the_table_has_a_column_a_kind_and_fits_the_width(
    run: Run, skills: Path, labelled: Labelled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = run("eval", labelled(ROWS), "--skills", skills).stdout.splitlines()
    assert lines[0].split() == ["figure", "all", "direct", "none"]
    assert max(map(len, lines)) <= 100


def test_a_row_is_routed_with_its_earlier_turns_among_its_available_skills(
    run: Run, skills: Path, labelled: Labelled
) -> None:
    asked, before = "and now those too", ["commit my changes and push them"]
    rows: list[dict[str, Any]] = [
        {"request": asked, "skills": []},
        {"request": asked, "skills": ["git"], "history": before},
        {"request": before[0], "skills": [], "available": ["data-analysis"]},
    ]
    result = run("eval", labelled(rows), "--skills", skills, "--json")
    report = json.loads(result.stdout)
    assert report["decisions"]["route"] == 1
    assert report["accuracy"]["value"] == 1


def test_no_row_is_answered_by_another_rows_answer(
    run: Run, skills: Path, labelled: Labelled, tmp_path: Path
) -> None:
    rows_file = tmp_path / "rows.jsonl"
    assert run("eval", labelled(ROWS), "--skills", skills, "--rows", rows_file).exit_code == 0
    written = [json.loads(line) for line in rows_file.read_text(encoding="utf-8").splitlines()]
    assert [row["stage"] for row in written] == ["vector"] * 4
    assert [(row["line"], row["right"]) for row in written] == [(n, True) for n in (1, 2, 3, 4)]
    assert written[3]["note"] == "noise"


def test_an_evaluation_leaves_the_users_cache_alone(
    run: Run, skills: Path, labelled: Labelled, tmp_path: Path
) -> None:
    assert run("eval", labelled(ROWS), "--skills", skills).exit_code == 0
    assert not (tmp_path / "state").exists()


def test_an_evaluation_asks_no_cluster_for_its_answers(
    run: Run, skills: Path, labelled: Labelled, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as redis:
        redis.setblocking(False)
        url = f"redis://127.0.0.1:{redis.getsockname()[1]}"
        monkeypatch.setenv("ROUTER_CLUSTER__URL", url)
        assert run("eval", labelled(ROWS), "--skills", skills).exit_code == 0
        with pytest.raises(BlockingIOError):
            redis.accept()


def test_a_label_that_names_no_skill_is_reported_and_counts_as_a_miss(
    run: Run, skills: Path, labelled: Labelled
) -> None:
    rows = [
        {"request": "commit my changes", "skills": ["gti"]},
        {"request": "plot a chart of this csv file", "skills": ["data-analysis"]},
    ]
    result = run("eval", labelled(rows), "--skills", skills, "--json")
    assert result.exit_code == 0
    assert result.stderr == "warning: label 'gti' names no installed skill: a miss on line 1\n"
    assert json.loads(result.stdout)["hit_at_1"]["value"] == 0.5


def test_labels_of_which_none_is_installed_are_an_error(
    run: Run, skills: Path, labelled: Labelled
) -> None:
    rows = [{"request": "commit my changes", "skills": ["gti"]}, {"request": "hm", "skills": []}]
    result = run("eval", labelled(rows), "--skills", skills, "--json")
    assert result.exit_code == 1
    assert "error: no label names an installed skill" in result.stderr
    assert json.loads(result.stdout)["rows"] == 2


@pytest.mark.parametrize(("least", "code"), [("75", 0), ("75.1", 1)])
def test_a_smaller_share_of_right_rows_than_is_asked_for_fails(
    run: Run, skills: Path, labelled: Labelled, least: str, code: int
) -> None:
    rows = [*ROWS[1:], {"request": ROWS[0]["request"], "skills": []}]
    rows = [{key: row[key] for key in ("request", "skills")} for row in rows]
    result = run("eval", labelled(rows), "--skills", skills, "--min-right", least)
    assert result.exit_code == code
    assert ("3 of 4 rows are right, fewer than 75.1%" in result.stderr) == bool(code)


def test_exactly_the_share_that_is_asked_for_is_enough(
    run: Run, skills: Path, labelled: Labelled
) -> None:
    rows = [{"request": ROWS[3]["request"], "skills": ["git"] * (n >= 29)} for n in range(50)]
    result = run("eval", labelled(rows), "--skills", skills, "--min-right", "58", "--json")
    assert json.loads(result.stdout)["right"]["value"] == 29 / 50  # times 100 that is below 58
    assert result.exit_code == 0


def test_what_was_learnt_is_measured_and_left_as_it_is(
    run: Run, skills: Path, labelled: Labelled, tmp_path: Path
) -> None:
    asked = "put my last three commits together"
    rows = [
        {"request": f"{text} {number}", "skills": [skill]}
        for number in range(7)
        for text, skill in (
            (asked, "git"),
            ("fixtures for the parser", "testing"),
            ("show the csv as bars", "data-analysis"),
        )
    ]
    file = labelled(rows)
    before = json.loads(run("eval", file, "--skills", skills, "--json").stdout)
    assert run("calibrate", file, "--skills", skills).exit_code == 0
    known = run("learn", "status", "--skills", skills, "--json").stdout
    after = json.loads(run("eval", file, "--skills", skills, "--json").stdout)
    assert after["ece"] < before["ece"]
    assert run("learn", "status", "--skills", skills, "--json").stdout == known


def test_a_malformed_row_is_named_before_anything_is_routed(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text('{"request": "x", "skills": []}\n{"request": "x"}\n', encoding="utf-8")
    result = run("eval", file)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {file}:2: 'skills' must be a list")


def test_the_labels_are_never_overwritten_by_the_rows(
    run: Run, skills: Path, labelled: Labelled
) -> None:
    file = labelled(ROWS)
    before = file.read_bytes()
    result = run("eval", file, "--skills", skills, "--rows", file)
    assert (result.exit_code, file.read_bytes()) == (2, before)


def test_a_rows_file_that_cannot_be_written_is_refused_first(
    run: Run, skills: Path, labelled: Labelled, tmp_path: Path
) -> None:
    result = run("eval", labelled(ROWS), "--skills", skills, "--rows", tmp_path / "no" / "rows")
    assert result.exit_code == 2
    assert "--rows: cannot write" in result.stderr
