"""Compare: a file of requests, routed with two settings or over two catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from router.evaluation import Report
from router.http.keys import Right
from router.http.playground.charts import Chart, Line, nice, radii
from router.http.playground.screens import Action, Part, Screen, Visit
from router.http.problems import Refused
from router.service.comparing import Side, compare, read_requests, read_settings

MAX_MOVED: Final = 200
"""How many requests the page lists."""
SIDES: Final = (("A", "line-1"), ("B", "line-2"))


async def _page(visit: Visit) -> Mapping[str, Any]:
    catalog = visit.api.service.catalog
    return {
        "roots": [] if catalog is None else [str(root) for root in catalog.roots],
        "may_name": visit.caller.is_unbound,
    }


async def _compare(visit: Visit) -> Part:
    rows, labelled = read_requests(visit.text("file") or visit.given.get("requests", ""))
    first, second = (
        Side(
            read_settings(visit.given.get(f"settings_{name}", "")), _folders(visit, f"roots_{name}")
        )
        for name in "ab"
    )
    found = await compare(visit.api.service.router, rows, first, second, labelled=labelled)
    reports = (found.first, found.second)
    return Part(
        "compare/result.html",
        {
            "found": found,
            "moved": found.moved[:MAX_MOVED],
            "figures": _figures(*reports) if labelled else [],
            "charts": [_risk(reports), _reliability(reports)] if labelled else [],
        },
    )


def _folders(visit: Visit, field: str) -> tuple[Path, ...]:
    """The folders that a person names. Whoever has not all rights reads no folder of the server."""
    named = visit.lines(field)
    if named and not visit.caller.is_unbound:
        raise Refused(
            403, "this key may not name folders", "it needs a key with all rights and no scopes"
        )
    return tuple(Path(line).expanduser() for line in named)


def _figures(first: Report, second: Report) -> list[tuple[str, str, float | None, float | None]]:
    """Name, meaning and the two values of each figure."""
    rows = []
    for name, meaning, field in (
        ("hit@1", "the best skill is right", "hit_at_1"),
        ("recall@5", "right skills among the first five", "recall_at_5"),
        ("routed", "of the requests that a skill serves", "coverage"),
        ("accuracy", "of those that are routed", "accuracy"),
        ("false accepts", "routed although nothing fits", "false_accepts"),
    ):
        one, other = getattr(first, field), getattr(second, field)
        rows.append((name, meaning, one and one.value, other and other.value))
    rows.append(("calibration error", "of the confidences, lower is better", first.ece, second.ece))
    rows.append(("AURC", "area under the risk, lower is better", first.aurc, second.aurc))
    return rows


def _risk(reports: tuple[Report, Report]) -> Chart:
    curves = [report.risk_coverage for report in reports]
    most = nice(max((risk for curve in curves for _, risk in curve), default=0.0))
    return Chart(
        title="Risk and coverage",
        summary="The share of wrong answers among the routed requests, most confident first.",
        x_label="routed requests, most confident first",
        y_label="wrong",
        y_most=most,
        lines=tuple(
            Line(name, kind, tuple(curve))
            for (name, kind), curve in zip(SIDES, curves, strict=True)
        ),
    )


def _reliability(reports: tuple[Report, Report]) -> Chart:
    return Chart(
        title="Reliability",
        summary="The share of right answers by the confidence that was given; on the diagonal the "
        "confidence means what it says.",
        x_label="confidence",
        y_label="right",
        diagonal=True,
        lines=tuple(
            Line(
                name,
                kind,
                tuple((bin_.confidence, bin_.accuracy) for bin_ in report.reliability),
                radii([bin_.count for bin_ in report.reliability]),
            )
            for (name, kind), report in zip(SIDES, reports, strict=True)
        ),
    )


SCREEN: Final = Screen(
    "/compare",
    "Compare",
    "compare.html",
    Right.MANAGE,
    _page,
    (Action("POST", "/compare/run", Right.MANAGE, _compare),),
)
