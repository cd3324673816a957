"""Caches: what is kept, whether a request would be answered from it and why not, and forgetting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from router.http.keys import Right
from router.http.playground.screens import Action, Part, Screen, Visit
from router.service.caches import forget_entry, list_caches
from router.service.shapes import RouteArguments

SHOWN: Final = 100
LOOKUPS: Final = 15


async def _page(visit: Visit) -> Mapping[str, Any]:
    return {
        "caches": await list_caches(visit.api.service.router, SHOWN),
        "lookups": list(visit.journal.lookups)[:LOOKUPS],
    }


def _asked(visit: Visit) -> RouteArguments:
    return RouteArguments(
        request=visit.given.get("request", ""),
        scope=visit.caller.scope_for(visit.text("scope") or None),
    )


async def _test(visit: Visit) -> Part:
    asked = _asked(visit)
    found = await visit.api.service.test_cache(asked)
    return Part("caches/tested.html", {"asked": asked, "found": found})


async def _forget_request(visit: Visit) -> Part:
    await visit.api.service.forget(_asked(visit))
    return Part("caches/forgotten.html")


async def _forget(visit: Visit) -> Part:
    await forget_entry(
        visit.api.service.router, visit.given.get("text", ""), visit.given.get("context", "")
    )
    return Part("caches/forgotten.html")


SCREEN: Final = Screen(
    "/caches",
    "Caches",
    "caches.html",
    Right.MANAGE,
    _page,
    (
        Action("POST", "/caches/test", Right.ROUTE, _test),
        Action("POST", "/caches/forget-request", Right.FEEDBACK, _forget_request),
        Action("POST", "/caches/forget", Right.MANAGE, _forget),
    ),
)
