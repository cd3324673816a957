"""Skills: the list, one of them whole, what is odd about them, and what changes while one looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from itertools import islice
from typing import Any, Final

from starlette.responses import Response

from router.concurrency.tasks import in_thread
from router.http.keys import Right
from router.http.playground.screens import Action, Part, Screen, Visit
from router.http.stream import streamed, while_known
from router.lint.manifest import lint_catalog, lint_file_of
from router.lint.routing import lint_routing
from router.request import MAX_REQUEST_CHARACTERS
from router.retrieval.configured_encoder import build_encoder
from router.skills.catalog import Catalog
from router.skills.diagnostics import Diagnostic, in_order
from router.skills.discovery import shipped_skills_root
from router.skills.manifest import SkillManifest

MAX_LISTED: Final = 100
"""How many skills the list shows; a search finds the others."""
MAX_SEARCHED: Final = 20
MAX_FINDINGS: Final = 200
"""Findings that the page shows; ``router skills lint`` gives all."""


async def _page(visit: Visit) -> Mapping[str, Any]:
    return {**(await _list(visit)).values, **(await _changes(visit)).values}


async def _list(visit: Visit) -> Part:
    """The skills that a query finds, best first; without one all of them, by name."""
    router, query = visit.api.service.router, visit.text("query")[:MAX_REQUEST_CHARACTERS]
    skills = (await router.open()).catalog.skills
    if query:
        found = await router.discover(query, limit=MAX_SEARCHED)
        shown = [(skills[one.name], one.reason) for one in found if one.name in skills]
    else:
        shown = [(skill, "") for skill in islice(skills.values(), MAX_LISTED)]
    return Part("skills/list.html", {"shown": shown, "total": len(skills), "query": query})


async def _show(visit: Visit) -> Part:
    """One skill, what is odd about its file, and the skills that its own description finds."""
    snapshot = await visit.api.service.router.open()
    skill = snapshot.catalog.get(visit.given.get("name", ""))
    ranking = await snapshot.index.rank(skill.description, limit=6)
    broken = await in_thread(partial(lint_file_of, skill), leaves=True)
    return Part(
        "skills/one.html",
        {
            "skill": skill,
            "source": _source(skill, snapshot.catalog),
            "findings": in_order([*skill.diagnostics, *broken]),
            "near": [match.name for match in ranking.matches if match.name != skill.name][:5],
        },
    )


def _source(skill: SkillManifest, catalog: Catalog) -> str:
    """The folder or the source that a skill comes from."""
    if not skill.has_file:
        return skill.origin
    if skill.path.is_relative_to(shipped_skills_root()):
        return "shipped"
    return str(catalog.root_of(skill) or skill.path.parent)


async def _lint(visit: Visit) -> Part:
    """What is odd about each skill or, of all of them together, which take each other's requests.
    The second takes seconds where there are many skills."""
    together = visit.text("what") == "together"
    router = visit.api.service.router
    catalog = (await router.open()).catalog

    def lint() -> Sequence[Diagnostic]:
        if not together:
            return lint_catalog(catalog)
        of_files = {skill.name: skill for skill in catalog.routable if skill.has_file}
        encoder = build_encoder(router.settings)
        return asyncio.run(lint_routing(Catalog(of_files, roots=catalog.roots), encoder=encoder))

    found = in_order(await in_thread(lint, leaves=True))
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


async def _live(visit: Visit) -> Response:
    """Tells the page that the skills have changed; it then asks for what it shows."""
    reloads = _of_skills(visit.api.events.listen())
    return await streamed(while_known(reloads, visit.identify), "text/event-stream")


async def _of_skills(listening: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(listening):
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
