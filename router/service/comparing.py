"""Compares two ways to route the same requests: which answers differ, and how good each way is.

Both sides are routed by routers of their own, apart from the one that serves. No LLM is asked: the
two sides differ by their settings and their skills alone, and a comparison costs nothing but time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from router.bounded.toml import load_toml
from router.concurrency.tasks import in_thread
from router.errors import ConfigurationError, InvalidRequest
from router.evaluation import (
    Judgement,
    LabelledRequest,
    Report,
    apart,
    evaluate,
    read_rows,
    summarise,
)
from router.request import Request
from router.router import SemanticRouter
from router.settings.settings import Settings
from router.settings.trust import leading_elsewhere
from router.skills.discovery import existing_root

MAX_ROWS: Final = 500


@dataclass(frozen=True, slots=True)
class Side:
    """One way to route.

    Attributes:
        settings: nested tables on top of the served router's own settings.
        roots: folders of skills, strongest first; empty: the served ones.
    """

    settings: Mapping[str, Any]
    roots: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Moved:
    """A request that the two sides answer differently."""

    row: LabelledRequest
    first: Judgement
    second: Judgement


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome of a comparison.

    Attributes:
        labelled: whether the file says what is right.
        moved: the requests that are answered differently; those that became wrong before those
            that became right before the others.
        steps: how many went from which decision to which.
    """

    rows: int
    labelled: bool
    moved: tuple[Moved, ...]
    steps: Mapping[tuple[str, str], int]
    first: Report
    second: Report


def read_requests(text: str) -> tuple[list[LabelledRequest], bool]:
    """The requests of a file, and whether they are labelled.

    Args:
        text: JSON Lines ``{"request": …, "skills": […]}``, or one request a line.

    Raises:
        ConfigurationError: a line cannot be read, or there are too many or none.
        InvalidRequest: a request cannot be routed.
    """
    lines = text.split("\n")
    if (count := sum(not line.isspace() and line != "" for line in lines)) > MAX_ROWS:
        raise ConfigurationError(f"{count:,} requests; at most {MAX_ROWS} are compared")
    if text.lstrip().startswith("{"):
        return read_rows((line.encode() for line in lines), source="line"), True
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append(LabelledRequest(number, Request.parse(line.strip()).text, (), {}))
            except InvalidRequest as error:
                raise InvalidRequest(f"line {number}: {error}") from None
    if not rows:
        raise ConfigurationError("there is no request; give one a line")
    return rows, False


def read_settings(text: str) -> dict[str, Any]:
    """Settings as a ``router.toml`` has them, such as ``vector.caution = "careful"``.

    Raises:
        ConfigurationError: they cannot be read, or one decides where data goes or what code is
            loaded, which is not compared here.
    """
    try:
        values = load_toml(text)
    except ValueError as error:
        raise ConfigurationError(f"settings: {error}") from None
    except RecursionError:
        raise ConfigurationError("settings: nested too deeply") from None
    refused = leading_elsewhere(Settings, values, Path.cwd())
    if refused:
        names = ", ".join(".".join(path) for path in refused)
        raise ConfigurationError(f"settings: {names}: thresholds and sizes only are compared here")
    return values


async def compare(
    router: SemanticRouter,
    rows: Sequence[LabelledRequest],
    first: Side,
    second: Side,
    *,
    labelled: bool,
) -> Comparison:
    """Route the requests both ways, in a thread of its own.

    Raises:
        ConfigurationError: a setting or a folder cannot be used.
        RouterError: skills cannot be read or indexed.
    """
    # A folder that the settings name for when it is there may not be there.
    served = [root for root in (await router.open()).catalog.roots if root.is_dir()]

    def both() -> list[list[Judgement]]:
        with apart(router.settings) as own:
            return [
                asyncio.run(
                    _judge(
                        rows,
                        _settings(router.settings, side, own),
                        [existing_root(root) for root in side.roots] or served,
                    )
                )
                for side in (first, second)
            ]

    return compared(*await in_thread(both, leaves=True), labelled=labelled)


def compared(
    first: Sequence[Judgement], second: Sequence[Judgement], *, labelled: bool
) -> Comparison:
    """Compare two runs over the same rows."""
    pairs = [Moved(one.row, one, other) for one, other in zip(first, second, strict=True)]
    moved = [
        pair
        for pair in pairs
        if (pair.first.decision, pair.first.selected)
        != (pair.second.decision, pair.second.selected)
    ]
    if labelled:
        moved.sort(key=lambda pair: pair.second.right - pair.first.right or 2)
    return Comparison(
        rows=len(pairs),
        labelled=labelled,
        moved=tuple(moved),
        steps=Counter((p.first.decision.value, p.second.decision.value) for p in pairs),
        first=summarise(first),
        second=summarise(second),
    )


async def _judge(
    rows: Sequence[LabelledRequest], settings: Settings, roots: Sequence[Path]
) -> list[Judgement]:
    async with SemanticRouter(settings, roots=roots) as router:
        return [judgement async for judgement in evaluate(router, rows)]


def _settings(served: Settings, side: Side, own: Mapping[str, Any]) -> Settings:
    values = _merged(served.model_dump(), side.settings)
    quiet = {"llm": {"enabled": False}, "enrichment_on_save": False}
    return Settings(**_merged(values, {**own, **quiet}))


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        known = merged.get(name)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            value = _merged(known, value)
        merged[name] = value
    return merged
