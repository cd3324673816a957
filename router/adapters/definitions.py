"""What the adapters for SDKs share: the definitions of tools that a program sends to a model, and
what the user has said and the model has called in the messages of a chat."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


def listed(
    tools: Iterable[Mapping[str, Any]], is_own: Callable[[Mapping[str, Any]], bool], form: str
) -> list[Mapping[str, Any]]:
    """Definitions as they were given.

    Args:
        is_own: whether one is of the API that they are for, which refuses those of others.
        form: what such a definition is, for the error.

    Raises:
        SourceError: one of them is something else, such as a function, or is of another API.
    """
    given = list(tools)
    objects: list[object] = [*given]
    for position, tool in enumerate(objects, start=1):
        if not isinstance(tool, Mapping):
            reason = f"expected a definition as the API takes it, a dict, not {type(tool).__name__}"
            raise SourceError("tools", f"tool {position}", reason)
    for position, tool in enumerate(given, start=1):
        if not is_own(tool):
            name = str(tool.get("name", f"tool {position}"))
            raise SourceError("tools", name, f"expected a definition of {form}")
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


def user_turns(messages: Iterable[object]) -> list[str]:
    """The texts of the user's messages, oldest first.

    A message is ``{"role", "content"}``, its content a text or a list of parts; parts that are no
    text, such as images and results of tools, are left out, and so are messages without any text.
    """
    turns = []
    for message in messages:
        if isinstance(message, Mapping) and message.get("role") == "user":
            text = _text(message.get("content"))
            if text.strip():
                turns.append(text)
    return turns


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Iterable):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(part for part in parts if isinstance(part, str))


def called_tools(messages: Iterable[object]) -> list[str]:
    """The names of the tools that the model has called: ``tool_calls`` of a message of the chat
    API, ``function_call`` items of the Responses API, ``tool_use`` blocks of Anthropic."""
    names: list[object] = []
    for message in messages:
        calls = _listed(field_of(message, "tool_calls"))
        items = (message, *_listed(field_of(message, "content")))
        names += (field_of(field_of(call, "function"), "name") for call in calls)
        names += (
            field_of(item, "name")
            for item in items
            if field_of(item, "type") in ("function_call", "tool_use")
        )
    return [name for name in names if isinstance(name, str)]


def _listed(value: object) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, list | tuple) else ()


def field_of(item: object, name: str) -> Any:
    """A field of a message or a part of one, which is a dict or an object of an SDK."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
