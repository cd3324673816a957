"""``router eval``: the figures of ``router.evaluation`` for a file of labelled requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import typer

from router.cli import output
from router.cli.options import AsJson, LabelledFile, NoLLM, SkillFolders, open_router, read_settings
from router.errors import ConfigurationError

if TYPE_CHECKING:
    from router.evaluation import Judgement, LabelledRequest, Report, Share

SHOWN_LABELS: Final = 10
SHOWN_LINES: Final = 5
"""How many labels that are not installed a warning names, and how many lines of each."""


def evaluate_file(
    file: LabelledFile,
    folders: SkillFolders = None,
    as_json: AsJson = False,
    rows_file: Annotated[
        Path | None,
        typer.Option("--rows", metavar="FILE", help="Write one JSON line a row to this file."),
    ] = None,
    min_right: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            min=0,
            max=100,
            help="Exit with 1 when a smaller share of all rows is right: routed to labels only or, "
            "where nothing fits, not routed.",
        ),
    ] = None,
    no_llm: NoLLM = False,
) -> None:
    """Measure routing on labelled requests: ranking, decisions, calibration and latency.

    A row may have a "history", the earlier turns of the user, and "available", names of skills.

    Shares come with their 95% Wilson interval. Rows with a "kind" are also reported by kind.
    What this router has learnt counts, and is left as it is: everything is done on a copy of the
    evidence in a temporary folder. No cached answer is used.

    Exits with 1 when no label at all names an installed skill: the figures say nothing then.
    """
    from router.evaluation import read_rows, summarise, summarise_by_kind

    with file.open("rb") as lines:
        rows = read_rows(lines, source=str(file))
    with _open_rows_file(rows_file, file) as sink:
        judgements, unknown = asyncio.run(_judge(rows, folders, no_llm, sink))
    report, by_kind = summarise(judgements), summarise_by_kind(judgements)
    if as_json:
        kinds = {kind: part.to_dict() for kind, part in by_kind.items()}
        output.print_json({**report.to_dict(), "by_kind": kinds})
    else:
        _print_tables(report, by_kind)
    labels = {name for row in rows for name in row.skills}
    if labels and labels == unknown:
        output.error("no label names an installed skill: are these the right folders of skills?")
        raise typer.Exit(1)
    right = sum(judgement.right for judgement in judgements)
    if 100 * right < (min_right or 0) * report.rows:
        output.error(f"{right} of {report.rows} rows are right, fewer than {min_right:g}%")
        raise typer.Exit(1)


def _open_rows_file(path: Path | None, labels: Path) -> AbstractContextManager[TextIO | None]:
    """Opens the file before the work starts, so that a wrong name is reported at once."""
    if path is None:
        return nullcontext()
    if path.exists() and path.samefile(labels):
        raise ConfigurationError(f"--rows {path}: that is the file of labels; name another one")
    with output.writing("--rows", path):
        return path.open("w", encoding="utf-8", errors="backslashreplace")


async def _judge(
    rows: Sequence[LabelledRequest],
    folders: Sequence[Path] | None,
    no_llm: bool,
    sink: TextIO | None,
) -> tuple[list[Judgement], set[str]]:
    """The judgements, and the labels that name no installed skill."""
    from router.evaluation import apart, evaluate, unknown_labels

    judgements: list[Judgement] = []
    with apart(read_settings()) as own:
        async with open_router(folders, read_settings(no_llm=no_llm, **own)) as router:
            installed = await router.open()
            unknown = unknown_labels(rows, installed.catalog.skills)
            _warn_of_unknown(unknown)
            with output.progress("routing") as show:
                async for judgement in evaluate(router, rows):
                    judgements.append(judgement)
                    if sink is not None:
                        sink.write(
                            json.dumps(judgement.to_dict(), ensure_ascii=False, allow_nan=False)
                            + "\n"
                        )
                    show(len(judgements), len(rows))
    return judgements, set(unknown)


def _warn_of_unknown(labels: Mapping[str, Sequence[int]]) -> None:
    for name, lines in list(labels.items())[:SHOWN_LABELS]:
        shown = ", ".join(map(str, lines[:SHOWN_LINES]))
        more = f" and {len(lines) - SHOWN_LINES} more" if len(lines) > SHOWN_LINES else ""
        output.warn(f"label {name!r} names no installed skill: a miss on line {shown}{more}")
    if len(labels) > SHOWN_LABELS:
        output.warn(f"{len(labels) - SHOWN_LABELS} more labels name no installed skill")


def _print_tables(report: Report, by_kind: Mapping[str, Report]) -> None:
    """One row a figure and one column a kind; then the figures of all rows together."""
    headers = ["all", *map(output.plain, by_kind)]
    table = output.table("figure", *headers, right=tuple(headers))
    for label, cell in _FIGURES.items():
        table.add_row(label, *(cell(part) for part in (report, *by_kind.values())))
    screen = output.screen()
    screen.print(table)
    screen.print(
        "Shares in %, with 95% intervals. Right: of all rows; routed to labels only or, where\n"
        "nothing fits, not routed. Coverage: rows that have labels and are routed; false accepts:\n"
        "rows that have none and are. Accuracy and exact: of the routed rows that have labels.\n"
        "AURC and ECE: all routed rows. Latency: milliseconds a request, one at a time."
    )
    if report.reliability:
        bars = output.table("confidence", "rows", "right", right=("rows", "right"))
        for bar in report.reliability:
            bars.add_row(f"{bar.low:.2f}-{bar.high:.2f}", str(bar.count), f"{bar.accuracy:.2f}")
        screen.print(bars)
    if report.risk_at:
        points = ", ".join(f"{at} {100 * risk:.1f}%" for at, risk in report.risk_at.items())
        screen.print(f"Wrong among the most confident of the routed rows: {points}")


def _share(share: Share | None) -> str:
    if share is None:
        return "-"
    return f"{100 * share.value:.1f} [{100 * share.low:.0f}-{100 * share.high:.0f}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


_FIGURES: Final[Mapping[str, Callable[[Report], str]]] = {
    "rows": lambda r: str(r.rows),
    "hit@1": lambda r: _share(r.hit_at_1),
    "recall@5": lambda r: _share(r.recall_at_5),
    "nDCG@10": lambda r: _share(r.ndcg_at_10),
    "route": lambda r: str(r.decisions["route"]),
    "clarify": lambda r: str(r.decisions["clarify"]),
    "abstain": lambda r: str(r.decisions["abstain"]),
    "right": lambda r: _share(r.right),
    "coverage": lambda r: _share(r.coverage),
    "accuracy": lambda r: _share(r.accuracy),
    "exact": lambda r: _share(r.exact),
    "false accepts": lambda r: _share(r.false_accepts),
    "AURC": lambda r: _number(r.aurc),
    "ECE": lambda r: _number(r.ece),
    "p50 ms": lambda r: f"{r.latency_ms['p50']:.2f}",
    "p90 ms": lambda r: f"{r.latency_ms['p90']:.2f}",
    "p99 ms": lambda r: f"{r.latency_ms['p99']:.2f}",
}
