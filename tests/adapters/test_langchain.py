from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from adapters.toolbox import DESCRIPTIONS, EXPECTED, TURNS
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from pydantic import Field

from router import SyncSemanticRouter
from router.adapters.langchain import ToolRouterMiddleware

called: list[str] = []


def make_tool(name: str, description: str) -> StructuredTool:
    def run(what: str) -> str:
        called.append(name)
        return f"{name} has run"

    return StructuredTool.from_function(run, name=name, description=description)


class FakeModel(BaseChatModel):
    """Calls the tool that the turn needs, if it is shown; then says that it is done."""

    shown: list[list[str]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        self.shown.append([tool.name for tool in tools])
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        answer = AIMessage("Done.")
        if not isinstance(messages[-1], ToolMessage):
            turn = sum(isinstance(message, HumanMessage) for message in messages)
            wanted = EXPECTED[turn - 1]
            assert wanted in self.shown[-1]
            call = {"name": wanted, "args": {"what": "x"}, "id": f"call_{turn}"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


@pytest.fixture
def middleware() -> Iterator[ToolRouterMiddleware]:
    called.clear()
    middleware = ToolRouterMiddleware(limit=3, timeout=60)
    yield middleware
    middleware.selector.close()


def test_an_agent_calls_the_tool_of_each_topic_and_its_tools_are_only_appended(
    middleware: ToolRouterMiddleware,
) -> None:
    model = FakeModel(shown=[])
    tools = [make_tool(name, text) for name, text in DESCRIPTIONS.items()]
    agent = create_agent(model, tools=tools, middleware=[middleware])
    messages: list[Any] = []
    for text in TURNS:
        messages = agent.invoke({"messages": [*messages, HumanMessage(text)]})["messages"]
    assert tuple(called) == EXPECTED
    sent = [json.dumps(names)[:-1] for names in model.shown]
    assert len(model.shown[-1]) < len(DESCRIPTIONS)
    for before, after in itertools.pairwise(sent):
        assert after.startswith(before)


async def test_an_asynchronous_agent_is_shown_the_same(middleware: ToolRouterMiddleware) -> None:
    model = FakeModel(shown=[])
    tools = [make_tool(name, text) for name, text in DESCRIPTIONS.items()]
    agent = create_agent(model, tools=tools, middleware=[middleware])
    await agent.ainvoke({"messages": [HumanMessage(TURNS[0])]})
    assert called == [EXPECTED[0]]
    assert len(model.shown[0]) == 3


def test_a_tool_of_the_provider_is_always_shown(middleware: ToolRouterMiddleware) -> None:
    from langchain.agents.middleware.types import ModelRequest, ModelResponse

    provider = {"type": "web_search"}
    tools = [make_tool(name, text) for name, text in DESCRIPTIONS.items()]
    request: Any = ModelRequest(
        model=FakeModel(shown=[]), messages=[HumanMessage(TURNS[0])], tools=[*tools, provider]
    )
    seen: list[Any] = []

    def handler(narrowed: Any) -> ModelResponse[Any]:
        seen.extend(narrowed.tools)
        return ModelResponse(result=[AIMessage("Done.")])

    middleware.wrap_model_call(request, handler)
    assert seen[0] is provider
    assert len(seen) == 4


def test_a_tool_is_routed_to_without_the_middleware_too() -> None:
    tools = [make_tool(name, description) for name, description in DESCRIPTIONS.items()]
    with SyncSemanticRouter.from_tools(tools) as router:
        best = router.rank(TURNS[0], limit=1).skills[0]
    assert best.name == EXPECTED[0]
    assert best.payload is tools[list(DESCRIPTIONS).index(best.name)]
