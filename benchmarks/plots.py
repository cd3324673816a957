"""Draw the series of the kept results as SVG files beside them.

matplotlib is needed here only (``benchmarks/peers.txt``); rendering and checking RESULTS.md needs
none. A plot depends on its series alone: no date, a fixed salt for its ids. It carries the digest
of its series, by which the check tells whether it is the plot of what is kept.

    python benchmarks/plots.py [NAME ...]
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.tables import RESULTS_FOLDER, TABLES


class Style(NamedTuple):
    """How one kind of series is drawn."""

    title: str
    x: str
    y: str
    scale: str = "linear"
    diagonal: bool = False


STYLES: Final = {
    "risk_coverage": Style("Risk and coverage", "share answered", "share of those that is wrong"),
    "reliability": Style("Reliability", "stated confidence", "share right", diagonal=True),
    "llm_calls": Style("LLM calls over time", "requests", "share that asked the LLM"),
    "latency": Style("Latency and catalog size", "skills", "milliseconds", "log"),
}
MAX_POINTS: Final = 200
"""Of a line; more are not seen, and make the file large."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="tables; all when none is named")
    names = parser.parse_args().names or [table.name for table in TABLES]
    for name in names:
        path = RESULTS_FOLDER / f"{name}.json"
        result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        for kind, series in result.get("series", {}).items():
            draw(kind, series, RESULTS_FOLDER / plot_name(name, kind))


def plot_name(table: str, kind: str) -> str:
    return f"{table}-{kind}.svg"


def style_of(kind: str) -> Style:
    """The style that the kind's name begins with, or a plain one."""
    fitting = (style for name, style in STYLES.items() if kind.startswith(name))
    return next(fitting, Style(kind.replace("_", " ").capitalize(), "", ""))


def title_of(kind: str) -> str:
    return style_of(kind).title


def digest(series: Any) -> str:
    return hashlib.sha256(json.dumps(series, sort_keys=True).encode()).hexdigest()[:16]


def lines(series: Any, label: str = "") -> Iterator[tuple[str, list[float], list[float]]]:
    """The lines of a series as (label, xs, ys).

    An object with a list "x" holds lines beside it by name. Any other object holds series by name.
    A list is of (x, y) pairs, or of y values.
    """
    if isinstance(series, list):
        pairs = [
            point if isinstance(point, list) else (at, point) for at, point in enumerate(series)
        ]
        yield label, [float(x) for x, *_ in pairs], [float(y) for _, y, *_ in pairs]
    elif "x" in series:
        for name, ys in series.items():
            if name != "x":
                yield joined(label, "" if name == "y" else name), series["x"], ys
    else:
        for name, inner in series.items():
            yield from lines(inner, joined(label, name))


def joined(*labels: str) -> str:
    return ", ".join(label.replace("_", " ") for label in labels if label)


def draw(kind: str, series: Any, path: Path) -> None:
    import matplotlib  # type: ignore[import-not-found,unused-ignore]  # peers' environment only

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "cascade-router", "svg.fonttype": "none"})
    from matplotlib import pyplot  # type: ignore[import-not-found,unused-ignore]

    style = style_of(kind)
    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for label, xs, ys in lines(series):
        step = max(1, -(-len(xs) // MAX_POINTS))
        marker = "o" if len(xs) <= 20 else ""
        axes.plot(xs[::step], ys[::step], label=label, marker=marker, markersize=3)
    if style.diagonal:
        axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="as stated")
    axes.set(
        title=style.title, xlabel=style.x, ylabel=style.y, xscale=style.scale, yscale=style.scale
    )
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None, "Description": f"series {digest(series)}"})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
