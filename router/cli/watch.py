"""``router skills watch``: what saving a skill does, as it happens."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from router.cli import output
from router.cli.options import AsJson, NoLLM, SkillFolders, open_router, read_settings
from router.cli.process import ready_to_serve

if TYPE_CHECKING:
    from router.result import RoutingResult
    from router.router import SemanticRouter
    from router.skills.changes import CatalogChange
    from router.skills.diagnostics import Diagnostic
    from router.skills.manager import SkillManager


NAMED: Final = ("added", "changed", "removed", "moved", "shadowed")
"""What a change may do to a name."""
MAX_SHOWN_NAMES: Final = 5
MAX_SHOWN_FAULTS: Final = 10
"""A person is shown this many faults of one event; JSON has all of them."""


class _Changes:
    """Hands every change to the command, in order."""

    name = "router skills watch"

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[CatalogChange] = asyncio.Queue()

    async def on_catalog_change(self, change: CatalogChange) -> None:
        self.arrived.put_nowait(change)


def watch_skills(
    folders: SkillFolders = None,
    request: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Route this again after every change.")
    ] = None,
    no_llm: NoLLM = False,
    as_json: AsJson = False,
) -> None:
    """Follow the skills on disk: what changed, what it did to the index, and how a
    standing request would be routed now. Ends with Ctrl-C. With --json, one object a line."""
    asyncio.run(_watch(folders, request, no_llm=no_llm, as_json=as_json))


async def _watch(
    folders: list[Path] | None, request: str | None, *, no_llm: bool, as_json: bool
) -> None:
    changes = _Changes()
    settings = read_settings(no_llm=no_llm)
    async with (
        open_router(folders, settings, observers=[changes]) as router,
        router.manager.watch() as manager,
    ):
        _tell(_start(router, manager), as_json=as_json)
        if request is not None:
            _tell(await _standing(router, request), as_json=as_json)
        ready_to_serve()
        while True:
            change = await changes.arrived.get()
            index = (await router.open()).index
            encoded = index.encoded if change.added or change.changed else 0
            _tell(_row(change, encoded=encoded), as_json=as_json)
            if request is not None:
                _tell(await _standing(router, request), as_json=as_json)


def _start(router: SemanticRouter, manager: SkillManager) -> dict[str, Any]:
    return {
        "event": "watching",
        "skills": len(router.catalog.skills),
        "roots": [str(root) for root in manager.registry.roots],
        "how": manager.report().watch.mode.value,
    }


def _row(change: CatalogChange, *, encoded: int) -> dict[str, Any]:
    return {
        "event": "changed",
        **{what: list(getattr(change, what)) for what in NAMED},
        "failed": [str(fault) for fault in change.failed],
        "mended": [str(path) for path in change.mended],
        "warnings": [str(found) for found in _warnings(change)],
        "skills": len(change.after.skills),
        "encoded": encoded,
    }


async def _standing(router: SemanticRouter, request: str) -> dict[str, Any]:
    # A scope of its own: what watching asks must neither teach nor be answered by other requests.
    result: RoutingResult = await router.route(request, scope="router skills watch")
    return {
        "event": "routed",
        "request": request,
        "decision": result.decision.value,
        "skills": list(result.selected_skills or result.suggested_skills),
        "confidence": round(result.confidence, 3),
        "reasoning": result.reasoning,
    }


def _warnings(change: CatalogChange) -> list[Diagnostic]:
    """Warnings about the skills that were added, changed or moved (the name may differ from the new
    folder), new warnings of the search for skills, and which skill took the name of which."""
    from router.skills.diagnostics import Severity

    skills, known = change.after.skills, frozenset(change.before.notices)
    of_skills = [
        found
        for name in (*change.added, *change.changed, *change.moved)
        for found in skills[name].diagnostics
        if found.severity is not Severity.INFO
    ]
    of_search = [found for found in change.after.notices if found not in known]
    lost_before = {lost.manifest.path for lost in change.before.shadowed}
    shadowed = [
        lost.diagnostic for lost in change.after.shadowed if lost.manifest.path not in lost_before
    ]
    return [*of_skills, *of_search, *shadowed]


def _tell(row: dict[str, Any], *, as_json: bool) -> None:
    now = datetime.now().astimezone()
    if as_json:
        output.print_json_line({**row, "time": now.isoformat(timespec="milliseconds")})
        return
    for number, line in enumerate(_lines(row)):
        margin = " " * 8 if number else f"{now:%H:%M:%S}"
        typer.echo(f"{margin}  {output.plain(line)}")


def _lines(row: dict[str, Any]) -> list[str]:
    """An event for a person: what happened in one line, then a line for each fault."""
    if row["event"] == "watching":
        roots = ", ".join(row["roots"])
        return [
            f"watching {output.counted(row['skills'], 'skill')} in {roots} ({row['how']} events)"
        ]
    if row["event"] == "routed":
        skills = ", ".join(row["skills"]) or "no skill"
        return [
            f"{row['decision']}: {skills} ({row['confidence']:.2f}) for {row['request']!r}: "
            f"{row['reasoning']}"
        ]
    parts = [
        f"{len(row[what]):,} {what} ({_first_of(row[what])})"
        for what in (*NAMED, "mended")
        if row[what]
    ]
    parts.append(f"{output.counted(row['skills'], 'skill')} now")
    if row["encoded"]:
        parts.append(f"{row['encoded']:,} encoded")
    faults = [f"not loaded: {fault}" for fault in row["failed"]]
    faults += row["warnings"]  # each says that it is one
    more = len(faults) - MAX_SHOWN_FAULTS
    last = [f"and {more:,} more: router skills check"] if more > 0 else []
    return ["; ".join(parts), *faults[:MAX_SHOWN_FAULTS], *last]


def _first_of(names: list[str]) -> str:
    shown = ", ".join(names[:MAX_SHOWN_NAMES])
    more = len(names) - MAX_SHOWN_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
