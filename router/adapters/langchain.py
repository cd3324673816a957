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
        return handler(_narrowed(request, self.selector.select(**_asked(request))))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """``wrap_model_call`` for asynchronous agents."""
        return await handler(_narrowed(request, await self.selector.aselect(**_asked(request))))


def _asked(request: ModelRequest[Any]) -> dict[str, Any]:
    """What the selector is asked for a call of the model."""
    messages = request.messages
    return {
        "turns": _user_turns(messages),
        "offered": _named(request),
        "called": _called(messages),
    }


def _named(request: ModelRequest[Any]) -> dict[str, Any]:
    return {tool.name: tool for tool in request.tools if not isinstance(tool, dict)}


def _narrowed(request: ModelRequest[Any], names: list[str]) -> ModelRequest[Any]:
    named = _named(request)
    providers = [tool for tool in request.tools if isinstance(tool, dict)]
    return request.override(tools=[*providers, *(named[name] for name in names)])


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
