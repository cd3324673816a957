"""Caches: what is kept, whether a request would be answered from it and why not, and forgetting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from router.http.keys import Right
from router.http.playground.screens import Action, Part, Screen, Visit
from router.router import SemanticRouter
from router.service.shapes import RouteArguments
from router.stages.answers import LocalAnswers
from router.stages.exact import ExactCache
from router.stages.fuzzy import FuzzyCache
from router.stages.validation import KeptAnswer

SHOWN: Final = 100
LOOKUPS: Final = 15


async def _page(visit: Visit) -> Mapping[str, Any]:
    return {
        "caches": await _kept(visit.api.service.router),
        "lookups": list(visit.journal.lookups)[:LOOKUPS],
    }


async def _kept(router: SemanticRouter) -> Mapping[str, Any] | None:
    """The answers of this machine, most recently used first, and the counts of each cache; None
    where they are kept elsewhere, such as in Redis."""
    await router.open()
    if not isinstance(router.cache, LocalAnswers):
        return None
    named: dict[str, ExactCache[KeptAnswer] | FuzzyCache]
    named = {"exact": router.exact, "fuzzy": router.fuzzy}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, cache in named.items():
        for text, context, kept, age in cache.latest(SHOWN):
            entry = {"text": text, "context": context, "kept": kept, "age": age}
            found.setdefault((text, context), {**entry, "caches": []})["caches"].append(name)
    return {
        "entries": list(found.values())[:SHOWN],
        "stats": {name: asdict(cache.stats) for name, cache in named.items()},
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
    router = visit.api.service.router
    await router.open()
    await router.cache.forget(visit.given.get("text", ""), visit.given.get("context", ""))
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
