"""Memory: what a query finds in which layer and why, and the context made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from router.http.keys import Right
from router.http.playground.screens import Action, Part, Screen, Visit
from router.service.memory import AssembleArguments, RecallArguments
from router.service.shapes import NoArguments

STRATEGIES: Final = ("hybrid", "lexical", "episodic", "rag")


async def _page(visit: Visit) -> Mapping[str, Any]:
    return {"status": await visit.api.memory.status(NoArguments()), "strategies": STRATEGIES}


def _asked(visit: Visit, *names: str) -> dict[str, Any]:
    """The fields that hold anything; they are checked where they are used."""
    fields = ("query", "user", "project", "session", *names)
    return {name: visit.text(name) for name in fields if visit.text(name)}


async def _ask(visit: Visit) -> Part:
    if visit.text("what") == "context":
        asked = AssembleArguments.model_validate(_asked(visit, "strategy", "token_budget"))
        return Part("memory/context.html", {"found": await visit.api.memory.assemble(asked)})
    found = await visit.api.memory.recall(RecallArguments.model_validate(_asked(visit, "k")))
    slowest = max((layer.milliseconds for layer in found.layers), default=0.0)
    return Part("memory/recalled.html", {"found": found, "slowest": slowest or 1.0})


SCREEN: Final = Screen(
    "/memory",
    "Memory",
    "memory.html",
    Right.MEMORY,
    _page,
    (Action("POST", "/memory/ask", Right.MEMORY, _ask),),
)
