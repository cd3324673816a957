"""Tools for the OpenAI SDK: the chat API, and the Responses API with tool search by the client.

Chat completions are given the tools that the conversation needs:

    tools = OpenAITools(definitions)
    client.chat.completions.create(model=…, messages=messages, tools=tools.select(messages))

Models of the Responses API can search by themselves. They are shown one search tool, ask it, and
are answered with the definitions that fit:

    response = client.responses.create(model=…, input=items, tools=[tools.search_tool])
    items += [*response.output, *(await tools.answer(response.output))]
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from router.adapters.definitions import (
    SEARCH_PARAMETERS,
    ToolDefinitions,
    called_tools,
    field_of,
    listed,
    user_turns,
)


class OpenAITools(ToolDefinitions):
    """Definitions of tools, and the choice among them. Takes the options of ``ToolSelector``.

    Definitions without a function, such as ``{"type": "web_search"}``, are the provider's own: they
    are always shown.
    """

    def __init__(self, tools: Iterable[Mapping[str, Any]], **options: Any) -> None:
        """The tools are indexed at the first use, or by ``prepare``.

        Raises:
            SourceError: a tool cannot be used, or two have one name.
        """
        given = listed(tools, lambda tool: "type" in tool, "OpenAI's API, which has a type")
        self._providers = [tool for tool in given if tool.get("type") != "function"]
        functions = [tool for tool in given if tool.get("type") == "function"]
        super().__init__(functions, **options)

    def select(self, messages: Iterable[object]) -> list[Mapping[str, Any]]:
        """The tools to send with these messages: the same objects, those of earlier turns first.
        A text alone, which the Responses API takes as its input, is one message of the user."""
        return self._given(self.selector.select(**self._asked(messages)))

    async def aselect(self, messages: Iterable[object]) -> list[Mapping[str, Any]]:
        """``select`` for asynchronous code."""
        return self._given(await self.selector.aselect(**self._asked(messages)))

    @property
    def search_tool(self) -> dict[str, Any]:
        """What to give the Responses API in place of the tools themselves."""
        return {
            "type": "tool_search",
            "execution": "client",
            "description": "Finds tools by what they do. Search before you say that you cannot do "
            "something.",
            "parameters": SEARCH_PARAMETERS,
        }

    async def answer(self, output: Iterable[object]) -> list[dict[str, Any]]:
        """An input item for each search in a response's output: the tools that fit, best first.

        A search whose query cannot be read is answered with no tools.
        """
        return [
            {
                "type": "tool_search_output",
                "call_id": field_of(call, "call_id"),
                "execution": "client",
                "status": "completed",
                "tools": await self._search(field_of(call, "arguments")),
            }
            for call in output
            if field_of(call, "type") == "tool_search_call"
            and field_of(call, "execution") == "client"
        ]

    async def _search(self, arguments: object) -> list[Mapping[str, Any]]:
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return []
        return [self._tools[name] for name in await self._found(arguments) or ()]

    def _asked(self, messages: Iterable[object]) -> dict[str, Any]:
        """What the selector is asked for these messages."""
        text_alone = isinstance(messages, str)
        given = [{"role": "user", "content": messages}] if text_alone else list(messages)
        return {"turns": user_turns(given), "offered": self._tools, "called": called_tools(given)}

    def _given(self, names: Sequence[str]) -> list[Mapping[str, Any]]:
        return [*self._providers, *(self._tools[name] for name in names)]
