"""Compare: a file of requests, routed with two settings or over two catalogs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from router.evaluation import Report
from router.http.keys import Right
from router.http.playground.screens import Action, Part, Screen, Visit
from router.http.problems import Refused
from router.service.comparing import Side, compare, read_requests, read_settings

MAX_MOVED: Final = 200
"""How many requests the page lists."""
SIDES: Final = (("A", "line-1"), ("B", "line-2"))
"""The names of the two ways, and the classes of their lines in the style sheet."""
WIDTH, HEIGHT = 340, 220
"""Of a chart, in pixels, with room for what is written at its edges."""
LEFT, RIGHT, TOP, BOTTOM = 40, 22, 10, 34
TICKS: Final = 4
"""How many ticks each axis has, beside the one at 0."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart.

    Attributes:
        name: in the legend.
        kind: its colour, as a class of the style sheet.
        points: (x, y) as shares.
        marks: the radius of a mark at each point, in pixels; empty: no marks.
    """

    name: str
    kind: str
    points: tuple[tuple[float, float], ...]
    marks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of shares, as numbers that a template writes into SVG. Both axes begin at 0.

    Attributes:
        title: above it, and its name for those who do not see it.
        summary: what it shows, in a sentence, for those who do not see it.
        lines: drawn in this order.
        y_most: where the vertical axis ends; the horizontal one ends at 1.
        diagonal: whether the line of equal values is drawn.
    """

    title: str
    summary: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    y_most: float = 1.0
    diagonal: bool = False

    def x(self, value: float) -> float:
        """Where a value of the horizontal axis is drawn."""
        return round(LEFT + value * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Where a value of the vertical axis is drawn."""
        return round(HEIGHT - BOTTOM - value / self.y_most * (HEIGHT - TOP - BOTTOM), 1)

    def path(self, line: Line) -> str:
        """The points of a line as SVG wants them."""
        return " ".join(f"{self.x(x)},{self.y(y)}" for x, y in line.points)

    def ticks(self, most: float) -> tuple[float, ...]:
        """The values that an axis names."""
        return tuple(most * number / TICKS for number in range(TICKS + 1))


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
    """The folders that a person names. Without all rights nobody may name any."""
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
    greatest = max((risk for curve in curves for _, risk in curve), default=0.0)
    ends = (0.04, 0.1, 0.2, 0.4, 0.6, 0.8)  # of an axis that is easy to read
    return Chart(
        title="Risk and coverage",
        summary="The share of wrong answers among the routed requests, most confident first.",
        x_label="routed requests, most confident first",
        y_label="wrong",
        y_most=next((end for end in ends if end >= greatest), 1.0),
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
                _radii([bin_.count for bin_ in report.reliability]),
            )
            for (name, kind), report in zip(SIDES, reports, strict=True)
        ),
    )


def _radii(counts: Sequence[int]) -> tuple[float, ...]:
    """Marks whose areas stand for counts."""
    most = max(counts, default=1)
    return tuple(round(2 + 4 * (count / most) ** 0.5, 1) for count in counts)


SCREEN: Final = Screen(
    "/compare",
    "Compare",
    "compare.html",
    Right.MANAGE,
    _page,
    (Action("POST", "/compare/run", Right.MANAGE, _compare),),
)
