from __future__ import annotations

import itertools
import json
from typing import Any

from adapters.toolbox import DESCRIPTIONS, EXPECTED, TURNS
from pydantic_ai import Agent, Tool
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from router.adapters.pydantic_ai import RoutedSearch, RoutedTools

called: list[str] = []


def make_tool(name: str, description: str, **options: Any) -> Tool[None]:
    def run(what: str) -> str:
        called.append(name)
        return f"{name} has run"

    return Tool(run, name=name, description=description, **options)


async def test_an_agent_calls_the_tool_of_each_topic_and_its_tools_are_only_appended() -> None:
    called.clear()
    shown: list[list[str]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        shown.append([tool.name for tool in info.function_tools])
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        if any(isinstance(part, ToolReturnPart) for part in last.parts):
            return ModelResponse(parts=[TextPart("Done.")])
        asked = [
            part
            for message in messages
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, UserPromptPart)
        ]
        return ModelResponse(parts=[ToolCallPart(EXPECTED[len(asked) - 1], {"what": "x"})])

    tools = [make_tool(name, text) for name, text in DESCRIPTIONS.items()]
    routed = RoutedTools(limit=3, timeout=60)
    agent = Agent(FunctionModel(model), tools=tools, capabilities=[routed])
    history: list[ModelMessage] = []
    for text in TURNS:
        history = (await agent.run(text, message_history=history)).all_messages()
    assert tuple(called) == EXPECTED
    sent = [json.dumps(names)[:-1] for names in shown]
    assert len(shown[-1]) < len(DESCRIPTIONS)
    for before, after in itertools.pairwise(sent):
        assert after.startswith(before)
    routed.selector.close()


async def test_a_model_that_searches_finds_the_deferred_tool_and_calls_it() -> None:
    called.clear()

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        shown = [tool.name for tool in info.function_tools]
        if called:
            return ModelResponse(parts=[TextPart("Done.")])
        if "translate_text" in shown:
            return ModelResponse(parts=[ToolCallPart("translate_text", {"what": "x"})])
        [search] = [name for name in shown if "search" in name]
        queries = {"queries": ["translate a menu into German"]}
        return ModelResponse(parts=[ToolCallPart(search, queries)])

    tools = [make_tool(name, text, defer_loading=True) for name, text in DESCRIPTIONS.items()]
    routed = RoutedSearch(limit=3, timeout=60)
    agent = Agent(FunctionModel(model), tools=tools, capabilities=[routed])
    await agent.run(TURNS[2])
    assert called == ["translate_text"]
    routed.selector.close()
