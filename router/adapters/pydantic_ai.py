"""Tools for Pydantic AI agents, in two ways.

The model is shown the tools that the conversation needs, and no search:

    agent = Agent(model, tools=tools, capabilities=[RoutedTools(limit=8)])

Or the model searches by itself. Deferred tools are found by the router instead of by keywords:

    agent = Agent(model, tools=deferred_tools, capabilities=[RoutedSearch()])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import PrepareTools, ToolSearch
from pydantic_ai.messages import ModelRequest, ToolCallPart, UserPromptPart
from pydantic_ai.tools import ToolDefinition

from router.adapters.selection import ToolSelector
from router.tools.tool import Tool


class RoutedTools(PrepareTools[Any]):
    """A capability that narrows the function tools of each request to the model.

    Takes the options of ``ToolSelector``; close ``selector`` when the agent is not used any more.
    """

    def __init__(self, **options: Any) -> None:
        """The tools are those of the agent, taken up at the first request."""
        self.selector = ToolSelector(read=_read, **options)
        super().__init__(self._prepare)

    async def _prepare(
        self, context: RunContext[Any], definitions: list[ToolDefinition]
    ) -> list[ToolDefinition]:
        offered = {definition.name: definition for definition in definitions}
        called = [
            part.tool_name
            for message in context.messages
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        names = await self.selector.aselect(_user_turns(context), offered, called=called)
        return [offered[name] for name in names]


class RoutedSearch(ToolSearch[Any]):
    """A capability with which the model searches its deferred tools.

    Takes the options of ``ToolSelector``, of which ``limit`` is how many tools a search gives.
    Close ``selector`` when the agent is not used any more.
    """

    def __init__(self, **options: Any) -> None:
        """The tools are those of the agent, taken up at the first search."""
        self.selector = ToolSelector(read=_read, **options)
        super().__init__(strategy=self._find)

    async def _find(
        self,
        context: RunContext[Any],  # noqa: ARG002 - the framework passes it
        queries: Sequence[str],
        definitions: Sequence[ToolDefinition],
    ) -> list[str]:
        offered = {definition.name: definition for definition in definitions}
        return await self.selector.asearch("\n".join(queries), offered)


def _user_turns(context: RunContext[Any]) -> list[str]:
    """What the user said, oldest first, the prompt of this run included."""
    parts = [
        part
        for message in context.messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, UserPromptPart)
    ]
    turns = [_text(part.content) for part in parts]
    prompt = _text(context.prompt)
    if not turns or (prompt and turns[-1] != prompt):  # not yet among the messages
        turns.append(prompt)
    return [turn for turn in turns if turn.strip()]


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return ""
    texts = (part if isinstance(part, str) else getattr(part, "content", "") for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def _read(tool: Any) -> Tool:
    return Tool(tool.name, tool.description or "", tool.parameters_json_schema)
