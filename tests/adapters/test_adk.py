from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from adapters.toolbox import DESCRIPTIONS, EXPECTED, TURNS
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from pydantic import Field

from router import SyncSemanticRouter
from router.adapters.adk import RoutedSkillRegistry, RoutedToolset
from router.errors import UnknownSkill

called: list[str] = []


class FakeModel(BaseLlm):
    """Calls the tool that the turn needs, if it is shown; then says that it is done."""

    shown: list[list[str]] = Field(default_factory=list)

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        tools = llm_request.config.tools[0].function_declarations
        self.shown.append([tool.name for tool in tools])
        last = llm_request.contents[-1].parts[0]
        part = types.Part(text="Done.")
        if last.function_response is None:
            asked = [
                part.text
                for content in llm_request.contents
                if content.role == "user"
                for part in content.parts
                if part.text
            ]
            wanted = EXPECTED[TURNS.index(asked[-1])]
            assert wanted in self.shown[-1]
            call = types.FunctionCall(name=wanted, args={"what": "x"})
            part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def _function(name: str, description: str) -> Any:
    def run(what: str) -> str:
        called.append(name)
        return f"{name} has run"

    run.__name__, run.__doc__ = name, description
    return run


async def test_an_agent_calls_the_tool_of_each_topic_and_its_tools_are_only_appended() -> None:
    called.clear()
    model = FakeModel(model="fake", shown=[])
    functions = [_function(name, text) for name, text in DESCRIPTIONS.items()]
    toolset = RoutedToolset(functions, limit=3, timeout=60)
    agent = LlmAgent(name="agent", model=model, tools=[toolset])
    runner = InMemoryRunner(agent=agent, app_name="test")
    session = await runner.session_service.create_session(app_name="test", user_id="ada")
    for text in TURNS:
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id="ada", session_id=session.id, new_message=message):
            pass
    assert tuple(called) == EXPECTED
    assert len(model.shown[-1]) < len(DESCRIPTIONS)
    for before, after in zip(model.shown, model.shown[1:], strict=False):
        assert after[: len(before)] == before
    await runner.close()


async def test_a_registry_finds_and_gives_the_shipped_skills() -> None:
    with SyncSemanticRouter() as router:
        registry = RoutedSkillRegistry(router, limit=3)
        found = await registry.search_skills(query="squash the last commits on this branch")
        assert found[0].name == "git"
        assert len(found) == 3
        skill = await registry.get_skill(name="git")
        assert skill.instructions
        with pytest.raises(UnknownSkill):
            await registry.get_skill(name="no-such-skill")
