"""Definitions of tools that a program sends to a model: what the adapters for SDKs share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from router.adapters.selection import ToolSelector
from router.concurrency.loop_thread import ClosedByBlock
from router.errors import SourceError
from router.tools.tool import read_tool

SEARCH_PARAMETERS: Final = {
    "type": "object",
    "properties": {"query": {"type": "string", "description": "What the tool should do."}},
    "required": ["query"],
    "additionalProperties": False,
}
"""Of the tool by which a model searches the others."""


class ToolDefinitions(ClosedByBlock):
    """Definitions by their names, and the choice among them. Used in a ``with`` block, or closed by
    ``close``.

    Attributes:
        selector: what chooses.
    """

    def __init__(self, tools: Iterable[Mapping[str, Any]], **options: Any) -> None:
        """The tools, in the order of the catalog, are indexed at the first use, or by ``prepare``.
        Raises what ``by_name`` does; the options are those of ``ToolSelector``."""
        self._tools = by_name(tools)
        self.selector = ToolSelector(**options)

    def prepare(self) -> None:
        """Index the tools now, so that the first turn need not wait for it.

        Raises:
            RouterError: they cannot be indexed.
        """
        self.selector.prepare(self._tools)

    def close(self) -> None:
        """End what the selector holds. Closing twice is fine."""
        self.selector.close()

    async def _found(self, arguments: object) -> list[str] | None:
        """The names of the tools that a model's search is for, best first; None where its arguments
        hold no query."""
        query = arguments.get("query") if isinstance(arguments, Mapping) else None
        if not isinstance(query, str) or not query.strip():
            return None
        return await self.selector.asearch(query, self._tools)


def listed(tools: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Definitions as they were given.

    Raises:
        SourceError: one is none, such as a function.
    """
    given = list(tools)
    objects: list[object] = [*given]
    for position, tool in enumerate(objects, start=1):
        if not isinstance(tool, Mapping):
            reason = f"expected a definition as the API takes it, a dict, not {type(tool).__name__}"
            raise SourceError("tools", f"tool {position}", reason)
    return given


def by_name(tools: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Definitions by the names in them.

    Raises:
        SourceError: one cannot be read, or two have one name.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for position, tool in enumerate(tools, start=1):
        name = read_tool(tool, source="tools", position=position).name
        if name in found:
            raise SourceError("tools", name, "two tools have this name")
        found[name] = tool
    return found
