"""Skills: the list, one of them whole, what is odd about them, and what changes while one looks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final

from starlette.responses import StreamingResponse

from router.http.keys import Right
from router.http.playground.screens import Action, Part, Screen, Visit
from router.request import MAX_REQUEST_CHARACTERS
from router.service.skills import find_oddities, list_skills, show_skill

MAX_FINDINGS: Final = 200
"""Findings that the page shows; ``router skills lint`` gives all."""


async def _page(visit: Visit) -> Mapping[str, Any]:
    return {**(await _list(visit)).values, **(await _changes(visit)).values}


async def _list(visit: Visit) -> Part:
    query = visit.text("query")[:MAX_REQUEST_CHARACTERS]
    found = await list_skills(visit.api.service.router, query)
    return Part("skills/list.html", {"found": found, "query": query})


async def _show(visit: Visit) -> Part:
    whole = await show_skill(visit.api.service.router, visit.given.get("name", ""))
    return Part("skills/one.html", {"whole": whole, "skill": whole.listed.skill})


async def _lint(visit: Visit) -> Part:
    together = visit.text("what") == "together"
    found = await find_oddities(visit.api.service.router, together=together)
    counts = {
        severity: sum(finding.severity.value == severity for finding in found)
        for severity in ("error", "warning", "info")
    }
    shown = sorted(found, key=lambda finding: list(counts).index(finding.severity.value))
    values = {"findings": shown[:MAX_FINDINGS], "counts": counts, "together": together}
    return Part("skills/findings.html", values)


async def _changes(visit: Visit) -> Part:
    catalog = visit.api.service.catalog
    return Part(
        "skills/changes.html",
        {
            "changes": list(visit.journal.changes),
            "faults": [] if catalog is None else catalog.left_out[:MAX_FINDINGS],
        },
    )


async def _live(visit: Visit) -> StreamingResponse:
    """Tells the page that the skills have changed; it then asks for what it shows."""
    listening = visit.api.events.listen()
    first = await anext(listening)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(
        _of_skills(first, listening), headers=headers, media_type="text/event-stream"
    )


async def _of_skills(first: bytes, listening: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    async with aclosing(listening):
        yield first
        async for text in listening:
            if text.startswith(b"event: reloaded"):
                yield b"event: reloaded\ndata: \n\n"
            elif text.startswith(b":"):
                yield text


SCREEN: Final = Screen(
    "/skills",
    "Skills",
    "skills.html",
    Right.ROUTE,
    _page,
    (
        Action("GET", "/skills/list", Right.ROUTE, _list),
        Action("GET", "/skills/show", Right.ROUTE, _show),
        Action("GET", "/skills/changes", Right.ROUTE, _changes),
        Action("GET", "/skills/live", Right.ROUTE, _live),
        Action("POST", "/skills/lint", Right.MANAGE, _lint),
    ),
)
