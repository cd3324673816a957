"""RESULTS.md, rendered from the kept results alone, and the check that both agree.

Nothing in it depends on the machine that renders: the same results give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.plots import digest, plot_name, title_of
from benchmarks.tables import RESULTS_FOLDER, TABLES, Table

REPORT: Final = Path(__file__).with_name("RESULTS.md")

INTRODUCTION: Final = """# Results

Written by `python benchmarks/run.py` from `benchmarks/results/`; do not edit. Below each table
stand its command and what it was measured on. A pair of figures after "95" is a 95% confidence
interval. Times are of the machine that is named, with numeric libraries on one thread; the ratios
between rows say more.
"""


def read(name: str) -> dict[str, Any] | None:
    """The kept result of a table."""
    path = RESULTS_FOLDER / f"{name}.json"
    if not path.exists():
        return None
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def rendered() -> str:
    """The text of RESULTS.md; tables without a result are named at its end."""
    parts, missing = [INTRODUCTION], []
    for table in TABLES:
        result = read(table.name)
        if result is None:
            missing.append(f"`{table.name}`")
        else:
            parts.append(section(table, result))
    if missing:
        parts.append(f"## Not measured yet\n\n{', '.join(missing)}\n")
    return "\n".join(parts)


def faults() -> Iterator[str]:
    """What does not agree with the kept results: RESULTS.md, or a plot."""
    if not REPORT.exists() or REPORT.read_text(encoding="utf-8") != rendered():
        yield "RESULTS.md is not what results/ says: run `python benchmarks/run.py --render`"
    for table in TABLES:
        for kind, series in (read(table.name) or {}).get("series", {}).items():
            plot = RESULTS_FOLDER / plot_name(table.name, kind)
            if not plot.exists() or digest(series) not in plot.read_text(encoding="utf-8"):
                yield f"{plot.name} is not what results/ says: run `python benchmarks/plots.py`"


def section(table: Table, result: Mapping[str, Any]) -> str:
    parts = [f"## {table.title}"]
    parts += [markdown(rows) for rows in alike(result["rows"])]
    for kind in result.get("series", {}):
        parts.append(f"![{title_of(kind)}](results/{plot_name(table.name, kind)})")
    made = result["manifest"]
    measured_on = [
        f"{made['date']}, commit {made['commit']}, Python {made['python']}, {made['machine']}",
        ", ".join(f"{name} {number}" for name, number in made["versions"].items()),
    ]
    if made["data"]:
        measured_on.append(
            "data " + ", ".join(f"{part} {digest}" for part, digest in made["data"].items())
        )
    if made["seeds"]:
        measured_on.append(", ".join(f"{name} = {value}" for name, value in made["seeds"].items()))
    parts += [f"`{made['command']}`", "; ".join(measured_on) + "."]
    return "\n\n".join(parts) + "\n"


def alike(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Runs of rows that share most of their keys; each run is a table of its own."""
    run: list[Mapping[str, Any]] = []
    for row in rows:
        if run and len(row.keys() & run[0].keys()) * 2 <= len(row.keys() | run[0].keys()):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a table; the columns are all their keys, in order of appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    numeric = {
        column: all(isinstance(row.get(column), int | float | None) for row in rows)
        for column in columns
    }
    lines = [
        "| " + " | ".join(column.replace("_", " ") for column in columns) + " |",
        "|" + "".join("---:|" if numeric[column] else "---|" for column in columns),
    ]
    lines += ["| " + " | ".join(cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def cell(value: Any) -> str:
    """A value as a person reads it: three significant digits, pairs as "low to high", a rate with
    its interval."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}" if 0.01 <= abs(value) <= 1 else f"{float(f'{value:.3g}'):,g}"
    if isinstance(value, list):
        return (" to " if len(value) == 2 else ", ").join(cell(item) for item in value)
    if isinstance(value, dict) and value.keys() == {"rate", "low", "high"}:
        return f"{cell(value['rate'])} ({cell(value['low'])} to {cell(value['high'])})"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {cell(item)}" for name, item in value.items())
    return str(value).replace("|", "\\|").replace("\n", " ")
