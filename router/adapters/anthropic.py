"""Tools for the Anthropic SDK, whose models load deferred tools when a search names them.

All tools are sent with every request, most of them deferred: the model does not see them before
they are referred to, and the prompt stays the same for the provider's cache. There are two ways to
refer to them. The model searches:

    tools = AnthropicTools(definitions)
    message = client.messages.create(model=…, messages=messages, tools=tools.definitions)
    results = await tools.answer(message.content)  # tool_result blocks for the next user message

Or, with the beta of tool changes within a conversation, the router adds what a request needs:

    messages += await tools.additions(messages)
    client.beta.messages.create(…, tools=tools.deferred, betas=[MID_CONVERSATION_TOOLS])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from router.adapters.definitions import (
    SEARCH_PARAMETERS,
    ToolDefinitions,
    field_of,
    listed,
    user_turns,
)

MID_CONVERSATION_TOOLS: Final = "mid-conversation-tool-changes-2026-07-01"
SEARCH: Final = "search_tools"
"""Name of the search tool. A tool of the caller's must not have it."""


class AnthropicTools(ToolDefinitions):
    """Definitions of tools, and the choice among them. Takes the options of ``ToolSelector``.

    Definitions with a type other than ``custom`` are the provider's own: they are never deferred.
    """

    def __init__(self, tools: Iterable[Mapping[str, Any]], **options: Any) -> None:
        """The tools are indexed at the first use, or by ``prepare``.

        Raises:
            SourceError: a tool cannot be used, or two have one name.
            ValueError: a tool has the name of the search tool.
        """
        given = listed(
            tools, _is_own, "Anthropic's API, which has an input_schema or a type of its own"
        )
        self._providers = [tool for tool in given if tool.get("type", "custom") != "custom"]
        custom = [tool for tool in given if tool.get("type", "custom") == "custom"]
        if any(tool.get("name") == SEARCH for tool in custom):
            raise ValueError(f"tools: the name {SEARCH!r} is taken by the search tool")
        super().__init__(custom, **options)
        self._deferred = [{**tool, "defer_loading": True} for tool in custom]

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """The search tool and all others: what to send where the model searches."""
        search = {
            "name": SEARCH,
            "description": "Finds tools by what they do and makes them available. Search before "
            "you say that you cannot do something.",
            "input_schema": SEARCH_PARAMETERS,
        }
        return [search, *self.deferred]

    @property
    def deferred(self) -> list[dict[str, Any]]:
        """All tools without the search tool: what to send together with ``additions``."""
        return [*(dict(tool) for tool in self._providers), *self._deferred]

    async def answer(self, content: Iterable[object]) -> list[dict[str, Any]]:
        """A ``tool_result`` block for each search in a message's content, naming what fits."""
        return [
            {
                "type": "tool_result",
                "tool_use_id": field_of(block, "id"),
                "content": await self._references(field_of(block, "input")),
            }
            for block in content
            if field_of(block, "type") == "tool_use" and field_of(block, "name") == SEARCH
        ]

    async def additions(self, messages: Iterable[object]) -> list[dict[str, Any]]:
        """A system message that adds the tools which the latest user message needs and no earlier
        one did; nothing where there is none to add."""
        turns = user_turns(messages)
        before = await self.selector.aselect(turns[:-1], self._tools) if len(turns) > 1 else []
        now = await self.selector.aselect(turns, self._tools)
        new = [name for name in now if name not in before]
        if not turns or not new:
            return []
        references = [{"type": "tool_reference", "name": name} for name in new]
        content = [{"type": "tool_addition", "tool": reference} for reference in references]
        return [{"role": "system", "content": content}]

    async def _references(self, arguments: object) -> list[dict[str, Any]]:
        names = await self._found(arguments)
        if names is None:
            return [{"type": "text", "text": "query: expected a text that says what to find"}]
        return [{"type": "tool_reference", "tool_name": name} for name in names]


def _is_own(tool: Mapping[str, Any]) -> bool:
    """Whether it is a definition of Anthropic's API, and not of OpenAI's or MCP."""
    return "input_schema" in tool or tool.get("type", "custom") not in ("custom", "function")
