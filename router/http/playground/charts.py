"""Charts, as numbers that a template writes into SVG. No script draws anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 340
HEIGHT: Final = 220
LEFT: Final = 40
BOTTOM: Final = 34
TOP: Final = 10
RIGHT: Final = 22
TICKS: Final = 4
"""How many ticks each axis has, beside the one at 0."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a chart.

    Attributes:
        name: in the legend.
        kind: its colour, as a class of the style sheet.
        points: (x, y) in the units of the axes.
        marks: the radius of a mark at each point, in pixels; empty: no marks.
    """

    name: str
    kind: str
    points: tuple[tuple[float, float], ...]
    marks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of lines over two axes that begin at 0.

    Attributes:
        title: above it, and its name for those who do not see it.
        summary: what it shows, in a sentence, for those who do not see it.
        lines: drawn in this order.
        x_most, y_most: where the axes end.
        diagonal: whether the line of equal values is drawn.
    """

    title: str
    summary: str
    x_label: str
    y_label: str
    lines: tuple[Line, ...]
    x_most: float = 1.0
    y_most: float = 1.0
    diagonal: bool = False

    def x(self, value: float) -> float:
        """Where a value of the horizontal axis is drawn."""
        return round(LEFT + value / self.x_most * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Where a value of the vertical axis is drawn."""
        return round(HEIGHT - BOTTOM - value / self.y_most * (HEIGHT - TOP - BOTTOM), 1)

    def path(self, line: Line) -> str:
        """The points of a line as SVG wants them."""
        return " ".join(f"{self.x(x)},{self.y(y)}" for x, y in line.points)

    def ticks(self, most: float) -> tuple[float, ...]:
        """The values that an axis names."""
        return tuple(most * number / TICKS for number in range(TICKS + 1))


def nice(most: float) -> float:
    """An end for an axis that is easy to read, at or above the greatest value of shares."""
    return next((end for end in (0.04, 0.1, 0.2, 0.4, 0.6, 0.8) if end >= most), 1.0)


def radii(counts: Sequence[int]) -> tuple[float, ...]:
    """Marks whose areas stand for counts."""
    most = max(counts, default=1)
    return tuple(round(2 + 4 * (count / most) ** 0.5, 1) for count in counts)
