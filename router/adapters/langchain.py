"""Tools for LangChain agents: middleware that narrows the tools of each call of the model.

    agent = create_agent(model, tools=tools, middleware=[ToolRouterMiddleware(limit=8)])

The agent can still run every tool; only what the model is shown is less.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from router.adapters.selection import ToolSelector
from router.errors import SourceError
from router.tools.tool import Tool, read_tool


class ToolRouterMiddleware(AgentMiddleware[Any, Any, Any]):
    """Shows the model the tools that the conversation needs. Takes the options of ``ToolSelector``.

    Tools that are dicts are the provider's own: they are always shown.
    """

    def __init__(self, **options: Any) -> None:
        """The tools are those of the agent, taken up at the first call of its model."""
        super().__init__()
        self.selector = ToolSelector(read=_read, **options)

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Call the model with the tools that the conversation needs."""
        named = _named(request)
        turns, called = _user_turns(request.messages), _called(request.messages)
        names = self.selector.select(turns, named, called=called)
        return handler(_narrowed(request, named, names))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """``wrap_model_call`` for asynchronous agents."""
        named = _named(request)
        turns, called = _user_turns(request.messages), _called(request.messages)
        names = await self.selector.aselect(turns, named, called=called)
        return await handler(_narrowed(request, named, names))


def _named(request: ModelRequest[Any]) -> dict[str, object]:
    return {tool.name: tool for tool in request.tools if not isinstance(tool, dict)}


def _narrowed(
    request: ModelRequest[Any], named: dict[str, object], names: list[str]
) -> ModelRequest[Any]:
    providers = [tool for tool in request.tools if isinstance(tool, dict)]
    tools: list[Any] = [*providers, *(named[name] for name in names)]
    return request.override(tools=tools)


def _user_turns(messages: list[Any]) -> list[str]:
    """What the user said, oldest first."""
    said = (_text(message) for message in messages if isinstance(message, HumanMessage))
    return [text for text in said if text.strip()]


def _called(messages: list[Any]) -> list[str]:
    answers = (message for message in messages if isinstance(message, AIMessage))
    return [call["name"] for answer in answers for call in answer.tool_calls]


def _text(message: BaseMessage) -> str:
    return str(message.text)


def _read(tool: Any) -> Tool:
    try:
        definition = convert_to_openai_tool(tool)
    except (TypeError, ValueError) as error:
        raise SourceError("langchain", tool.name, f"it has no definition: {error}") from error
    return read_tool(definition, source="langchain", position=1)
