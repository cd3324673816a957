"""The runner of the benchmark tables: what it keeps, what it renders, what it notices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import plots, report, run, tables
from benchmarks.tables import TABLES, Table

SCRIPT = """
import argparse, json
from pathlib import Path
parser = argparse.ArgumentParser()
parser.add_argument("--data")
parser.add_argument("--rows")
parser.add_argument("--json", action="store_true")
options = parser.parse_args()
SEED = 5
calls = Path(__file__).with_name("calls")
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
if options.rows:
    Path(options.rows).write_text('{"request": "secret text", "decision": "route"}\\n')
print(json.dumps([{"method": "ours", "accuracy": 0.5, "accuracy_95": [0.4, 0.6]}]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of benchmarks with one table, ``one``, that counts its runs in ``calls``."""
    one = Table("one", "One", "one.py", ("set",), rows=True)
    (tmp_path / "one.py").write_text(SCRIPT, encoding="utf-8")
    for name in ("public", "data"):
        (tmp_path / name / "set").mkdir(parents=True)
        (tmp_path / name / "set" / "rows.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "router").mkdir()
    (tmp_path / "router" / "weights.npz").write_bytes(b"weights")
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills" / "enrichment.jsonl").write_text("{}\n", encoding="utf-8")
    for module in (run, report):
        monkeypatch.setattr(module, "TABLES", (one,))
        monkeypatch.setattr(module, "RESULTS_FOLDER", tmp_path / "results")
        monkeypatch.setattr(module, "REPORT", tmp_path / "RESULTS.md")
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "ROOT", tmp_path)
    monkeypatch.setattr(run, "RUNS_FOLDER", tmp_path / "runs")
    monkeypatch.setenv("ROUTER_BENCH_DATA", str(tmp_path / "public"))
    return tmp_path


def command(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int | str | None:
    """The runner's exit code or message; 0 when it returns."""
    monkeypatch.setattr("sys.argv", ["run.py", *arguments])
    try:
        run.main()
    except SystemExit as stopped:
        return stopped.code
    return 0


def runs(folder: Path) -> int:
    return len((folder / "calls").read_text(encoding="utf-8"))


# --- this repository


def test_the_report_and_the_plots_are_what_the_kept_results_say() -> None:
    assert list(report.faults()) == []


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_script_of_a_table_exists(table: Table) -> None:
    assert (tables.FOLDER / table.script).is_file()


def test_tables_have_names_of_their_own() -> None:
    names = [table.name for table in TABLES]
    assert len(set(names)) == len(names)


# --- running


def test_a_result_is_kept_with_what_it_was_measured_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(monkeypatch) == 0
    kept = json.loads((folder / "results" / "one.json").read_text(encoding="utf-8"))
    assert kept["rows"] == [{"method": "ours", "accuracy": 0.5, "accuracy_95": [0.4, 0.6]}]
    assert kept["manifest"]["command"] == "python benchmarks/one.py --data DATA"
    assert kept["manifest"]["seeds"] == {"SEED": "5"}
    assert kept["manifest"]["data"].keys() == {"set"}
    assert str(folder) not in json.dumps(kept)


def test_a_table_whose_code_and_data_are_the_same_is_not_run_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command(monkeypatch)
    command(monkeypatch)
    assert runs(folder) == 1
    command(monkeypatch, "--fresh")
    assert runs(folder) == 2


@pytest.mark.parametrize(
    "changed",
    [
        "one.py",
        "data/set/rows.jsonl",
        "public/set/rows.jsonl",
        "router/weights.npz",
        "skills/enrichment.jsonl",
    ],
)
def test_a_change_of_code_weights_skills_or_data_runs_a_table_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    command(monkeypatch)
    with (folder / changed).open("a", encoding="utf-8") as file:
        file.write("\n")
    command(monkeypatch)
    assert runs(folder) == 2


def test_the_code_of_a_script_includes_the_scripts_that_it_imports() -> None:
    found = [path.name for path in run.code_of(tables.FOLDER / "run.py")]
    assert found == ["plots.py", "report.py", "run.py", "tables.py"]


def test_rows_are_kept_without_the_texts_of_the_data_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command(monkeypatch)
    lines = (folder / "runs" / "one.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"row": 1, "decision": "route"}]


def test_a_table_without_its_data_is_left_out_and_it_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ROUTER_BENCH_DATA")
    assert command(monkeypatch) == 0
    assert "left out: it needs --data" in capsys.readouterr().err
    assert "failed: one" in str(command(monkeypatch, "one"))  # it was asked for
    assert not (folder / "calls").exists()


@pytest.mark.parametrize("script", ["raise SystemExit(3)", "print('not JSON')"])
def test_a_script_that_fails_is_named_and_loses_no_other_result(
    folder: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    command(monkeypatch)
    (folder / "one.py").write_text(script, encoding="utf-8")
    assert str(command(monkeypatch)).startswith("failed: one")
    assert (folder / "results" / "one.json").exists()


def test_a_run_that_is_stopped_says_that_the_next_one_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopping = "import os, signal; os.kill(os.getppid(), signal.SIGINT); signal.pause()"
    (folder / "one.py").write_text(stopping, encoding="utf-8")
    assert command(monkeypatch) == 130
    assert "the next run goes on from there" in capsys.readouterr().err


def test_an_unknown_name_is_a_usage_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(monkeypatch, "two") == 2
    assert not (folder / "calls").exists()


@pytest.mark.parametrize(
    ("found", "rows"),
    [
        ([{"a": 1}], [{"a": 1}]),
        ({"rows": [{"a": 1}], "more": 2}, [{"a": 1}]),
        (
            {"first": {"a": 1}, "second": {"a": 2}},
            [{"what": "first", "a": 1}, {"what": "second", "a": 2}],
        ),
        ({"lines": [{"a": 1}], "total": 3}, [{"a": 1}, {"total": 3}]),
    ],
)
def test_the_shapes_that_scripts_print_become_rows(found: object, rows: object) -> None:
    assert run.shaped(found)["rows"] == rows


# --- checking


def test_a_fresh_report_agrees_with_its_results_and_it_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command(monkeypatch)
    capsys.readouterr()
    assert command(monkeypatch, "--check") == 0
    assert capsys.readouterr().err == "RESULTS.md and the plots are what results/ says\n"


def test_an_edited_report_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(monkeypatch)
    path = folder / "RESULTS.md"
    path.write_text(path.read_text(encoding="utf-8").replace("0.500", "0.900"), encoding="utf-8")
    assert "RESULTS.md is not what results/ says" in str(command(monkeypatch, "--check"))
    assert command(monkeypatch, "--render") == 0
    assert command(monkeypatch, "--check") == 0


def test_a_plot_of_other_figures_is_noticed_and_told_after_a_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command(monkeypatch)
    path = folder / "results" / "one.json"
    series = {"latency": {"x": [1, 10], "p50_ms": [0.1, 0.2]}}
    kept = json.loads(path.read_text(encoding="utf-8")) | {"series": series}
    path.write_text(json.dumps(kept), encoding="utf-8")
    command(monkeypatch, "--render")
    assert "one-latency.svg is not what results/ says: run" in capsys.readouterr().err
    assert "one-latency.svg is not what" in str(command(monkeypatch, "--check"))
    plot = folder / "results" / "one-latency.svg"
    plot.write_text(f"<svg>{plots.digest(series['latency'])}</svg>", encoding="utf-8")
    assert command(monkeypatch, "--check") == 0


# --- rendering


def test_intervals_and_missing_figures_read_well_in_a_table() -> None:
    rows = [
        {"what": "a|b", "share_95": [0.25, 0.5], "count": 12_000},
        {"what": "c", "time": 1234.5},
    ]
    assert report.markdown(rows).splitlines() == [
        "| what | share 95 | count | time |",
        "|---|---|---:|---:|",
        "| a\\|b | 0.250 to 0.500 | 12,000 |  |",
        "| c |  |  | 1,230 |",
    ]


def test_rows_of_another_kind_become_a_table_of_their_own() -> None:
    rows = [{"a": 1, "b": 2}, {"a": 2, "b": 3, "c": 4}, {"d": 1, "e": 2}]
    assert [len(some) for some in report.alike(rows)] == [2, 1]


@pytest.mark.parametrize(
    ("series", "lines"),
    [
        ([1, 2], [("", [0, 1], [1, 2])]),
        ([[0.5, 1], [0.6, 2]], [("", [0.5, 0.6], [1, 2])]),
        ({"x": [1, 2], "p50_ms": [3, 4]}, [("p50 ms", [1, 2], [3, 4])]),
        ({"set": {"ours": {"x": [1], "y": [2]}}}, [("set, ours", [1], [2])]),
    ],
)
def test_the_shapes_of_series_become_lines(series: object, lines: object) -> None:
    assert list(plots.lines(series)) == lines


def test_a_table_whose_part_of_the_data_is_not_there_is_left_out_as_well(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "nothing").mkdir()
    monkeypatch.setenv("ROUTER_BENCH_DATA", str(tmp_path / "nothing"))
    assert command(monkeypatch) == 0
    assert f"left out: {tmp_path / 'nothing'} holds no " in capsys.readouterr().err
