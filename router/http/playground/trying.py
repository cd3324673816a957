"""Try: route a request, see why the answer is what it is, and say what it should have been."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from router.events import Routed
from router.http.keys import Right
from router.http.playground.screens import Action, Part, Screen, Visit
from router.result import RoutingResult
from router.service.explaining import PARTS
from router.service.shapes import FeedbackArguments, RouteArguments

LATEST: Final = 12
"""Earlier answers that the page lists."""


async def _page(visit: Visit) -> Mapping[str, Any]:
    catalog = visit.api.service.catalog
    return {
        "latest": visit.api.decisions.latest(visit.caller, LATEST),
        "names": [] if catalog is None else [skill.name for skill in catalog.routable],
    }


async def _route(visit: Visit) -> Part:
    names = [name.strip() for name in visit.text("available").replace("\n", ",").split(",")]
    available = [name for name in names if name]
    asked = RouteArguments(
        request=visit.given.get("request", ""),
        history=[_turn(line) for line in visit.lines("history")],
        available_skills=available or None,
        scope=visit.caller.scope_for(visit.text("scope") or None),
        use_semantic_cache="fresh" not in visit.given,
    )
    result = await visit.api.service.route(asked)
    return await _explained(visit, asked, result)


async def _look_at(visit: Visit) -> Part:
    """An earlier answer. Its explanation is of its text alone: the history is not kept."""
    found = visit.api.decisions.find(visit.given["id"], visit.caller)
    asked = RouteArguments(request=found.request, scope=found.scope)
    return await _explained(visit, asked, found.result, found)


async def _feedback(visit: Visit) -> Part:
    """Take in what an answer should have been."""
    found = visit.api.decisions.find(visit.given["id"], visit.caller)
    said = visit.text("said")
    skills = {"right": None, "wrong": None, "none": []}.get(said, [visit.text("skill")])
    await visit.api.service.feedback(
        FeedbackArguments(
            id=found.result.id,
            skills=skills,
            right=said == "right" if skills is None else None,
            scope=found.scope,
        )
    )
    visit.journal.judged.appendleft(found.result.id)
    return Part("try/thanks.html", {"said": said, "skills": skills})


async def _explained(
    visit: Visit, asked: RouteArguments, result: RoutingResult, earlier: Routed | None = None
) -> Part:
    why = await visit.api.service.explain(asked, result)
    most = max((sum(max(p, 0.0) for p in one.parts) for one in why.candidates), default=1.0)
    return Part(
        "try/answer.html",
        {
            "asked": asked,
            "result": result,
            "earlier": earlier,
            "why": why,
            "parts": PARTS,
            "most": max(most, 0.01),
            "microseconds": sum(entry.microseconds for entry in result.trace),
            "may_say": Right.FEEDBACK in visit.caller.rights,
            "latest": visit.api.decisions.latest(visit.caller, LATEST),
        },
    )


def _turn(line: str) -> Any:
    """A line of the history: ``assistant: …``, ``user: …``, or the user's words alone."""
    role, colon, text = line.partition(":")
    if colon and role.strip().lower() in ("user", "assistant"):
        return {"role": role.strip().lower(), "text": text.strip()}
    return line


SCREEN: Final = Screen(
    "/",
    "Try",
    "try.html",
    Right.ROUTE,
    _page,
    (
        Action("POST", "/try", Right.ROUTE, _route),
        Action("GET", "/decisions/{id}", Right.ROUTE, _look_at),
        Action("POST", "/decisions/{id}/feedback", Right.FEEDBACK, _feedback),
    ),
)
