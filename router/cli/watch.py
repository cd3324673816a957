"""``router skills watch``: what saving a skill does, as it happens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli import output
from router.cli.options import AsJson, NoLLM, SkillFolders, read_settings
from router.cli.process import ready_to_serve

if TYPE_CHECKING:
    from router.result import RoutingResult
    from router.router import SemanticRouter
    from router.skills.changes import CatalogChange
    from router.skills.manager import SkillManager


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
        str | None,
        typer.Option("--request", metavar="TEXT", help="Route this again after every change."),
    ] = None,
    no_llm: NoLLM = False,
    as_json: AsJson = False,
) -> None:
    """Follow the skills on disk: what changed, what it did to the index and the caches, and how a
    standing request would be routed now. Ends with Ctrl-C. With --json, one object a line."""
    asyncio.run(_watch(folders, request, no_llm=no_llm, as_json=as_json))


async def _watch(
    folders: list[Path] | None, request: str | None, *, no_llm: bool, as_json: bool
) -> None:
    from router.router import SemanticRouter

    changes = _Changes()
    with output.progress("indexing skills") as show:
        router = SemanticRouter(
            read_settings(no_llm=no_llm), roots=folders, observers=[changes], progress=show
        )
        await router.open()
    async with router, router.manager.watch() as manager:
        _tell(_start(router, manager), as_json=as_json)
        if request is not None:
            _tell(await _standing(router, request), as_json=as_json)
        ready_to_serve()
        while True:
            cached = len(router.fuzzy) + len(router.exact)
            change = await changes.arrived.get()
            dropped = cached - len(router.fuzzy) - len(router.exact)
            index = (await router.open()).index
            encoded = index.encoded if change.added or change.changed else 0
            _tell(_row(change, encoded=encoded, dropped=dropped), as_json=as_json)
            if request is not None:
                _tell(await _standing(router, request), as_json=as_json)


def _start(router: SemanticRouter, manager: SkillManager) -> dict[str, Any]:
    return {
        "event": "watching",
        "skills": len(router.catalog.skills),
        "roots": [str(root) for root in manager.registry.roots],
        "how": manager.report().watch.mode.value,
    }


def _row(change: CatalogChange, *, encoded: int, dropped: int) -> dict[str, Any]:
    return {
        "event": "changed",
        "added": list(change.added),
        "changed": list(change.changed),
        "removed": list(change.removed),
        "shadowed": list(change.shadowed),
        "failed": [str(fault) for fault in change.failed],
        "mended": [str(path) for path in change.mended],
        "skills": len(change.after.skills),
        "encoded": encoded,
        "cached answers dropped": dropped,
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


def _tell(row: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        output.print_json_line(row)
        return
    facts = {name: value for name, value in row.items() if name != "event" and value not in ([], 0)}
    text = "; ".join(
        f"{name}: {', '.join(value) if isinstance(value, list) else value}"
        for name, value in facts.items()
    )
    typer.echo(output.plain(f"{row['event']}  {text}"))
