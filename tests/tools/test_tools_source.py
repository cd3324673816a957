"""Routing and ranking over tools that a program gives."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from cascade import settings_for

from router import Decision, SemanticRouter, SyncSemanticRouter
from router.errors import InvalidRequest, SourceError, UnknownSkill
from router.skills.source_conformance import SourceConformance
from router.skills.sources import SkillSource
from router.tools.source import ToolSource


def tool(name: str, description: str, **parameters: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties},
        },
    }


TOOLS = [
    tool("get_weather", "Tells the weather forecast.", city="Name of the city"),
    tool("send_email", "Sends an email message.", recipient="Address of the person"),
    tool("play_music", "Plays a song or a playlist.", artist="Name of the band"),
    tool("book_flight", "Books a flight between two airports.", date="Day of departure"),
]


class TestToolSource(SourceConformance):
    def make_source(self) -> SkillSource:
        return ToolSource()

    def add(self, source: SkillSource, name: str) -> None:
        assert isinstance(source, ToolSource)
        source.add(tool(name, f"Does {name}."))

    def remove(self, source: SkillSource, name: str) -> None:
        assert isinstance(source, ToolSource)
        source.remove(name)


@pytest_asyncio.fixture
async def router(tmp_path: Path) -> AsyncIterator[SemanticRouter]:
    settings = settings_for(tmp_path / "state")
    async with SemanticRouter.from_tools(TOOLS, settings) as made:
        yield made


async def test_the_same_objects_come_back_untouched(router: SemanticRouter) -> None:
    before = json.dumps(TOOLS)
    found = await router.rank("what will the weather be like tomorrow?")
    assert found.skills[0].payload is TOOLS[0]
    assert router.payload("send_email") is TOOLS[1]
    result = await router.route("what is the weather forecast for the city?")
    assert [router.payload(name) for name in result.selected_skills] == [TOOLS[0]]
    assert json.dumps(TOOLS) == before


async def test_parameters_are_searched(router: SemanticRouter) -> None:
    found = await router.rank("the departure is on friday")
    assert found.names[0] == "book_flight"
    assert "departure" in found.skills[0].reason


async def test_a_ranking_never_refuses_and_says_what_would_be_decided(
    router: SemanticRouter,
) -> None:
    found = await router.rank("colourless green ideas sleep furiously qwzx", limit=3)
    assert len(found.skills) == 3
    assert found.decision is not Decision.ROUTE
    assert found.selected == ()
    scores = [skill.score for skill in found.skills if skill.score is not None]
    assert scores == sorted(scores, reverse=True)


async def test_what_is_not_available_is_neither_ranked_nor_suggested(
    router: SemanticRouter,
) -> None:
    allowed = ["play_music", "send_email", "no_such_tool"]
    found = await router.rank("tell me the weather forecast", available=allowed)
    assert set(found.names) == {"play_music", "send_email"}
    assert found.left_out == 2
    result = await router.route("tell me the weather forecast", available_skills=allowed)
    assert "get_weather" not in (*result.selected_skills, *result.suggested_skills)
    assert result.trace[-1].evidence["left_out"] == 2
    discovered = await router.discover("tell me the weather forecast", available=allowed)
    assert {skill.name for skill in discovered} == {"play_music", "send_email"}


async def test_what_is_always_included_takes_the_last_places(router: SemanticRouter) -> None:
    kept = ["send_email", "get_weather", "no_such_tool"]
    found = await router.rank("tell me the weather forecast", limit=2, always_include=kept)
    assert found.names == ("get_weather", "send_email")
    assert (found.skills[1].score, found.skills[1].reason) == (None, "always included")
    found = await router.rank(
        "tell me the weather forecast", available=["get_weather"], always_include=kept
    )
    assert found.names == ("get_weather",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "limit: 0; expected 1 to 1,000"),
        ({"limit": 1_001}, "limit: 1001; expected 1 to 1,000"),
        ({"always_include": "x"}, "always_include: expected a list of names, not one string"),
        ({"always_include": [1]}, "always_include: every name must be a string"),
        ({"available": "x"}, "available skills: expected a list of names, not one string"),
    ],
)
async def test_options_that_cannot_be_used_are_named(
    router: SemanticRouter, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        await router.rank("hello there", **options)


@pytest.mark.parametrize("one", [{"name": "rain", "description": "Will it rain?"}, print, 5])
def test_one_tool_is_no_list_of_tools(one: Any) -> None:
    with pytest.raises(SourceError, match=r"^source 'tools': expected a list of tools, not one "):
        SemanticRouter.from_tools(one)


async def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(SourceError, match=r"source 'tools', 'a': there is one of that name"):
        SemanticRouter.from_tools([tool("a", "x"), tool("a", "y")])


async def test_another_object_for_the_same_tool_is_handed_back_from_then_on(tmp_path: Path) -> None:
    source = ToolSource(TOOLS)
    async with SemanticRouter(settings_for(tmp_path / "state"), sources=[source]) as router:
        other = copy.deepcopy(TOOLS[0])
        source.replace(other)
        await router.reload()
        assert router.payload("get_weather") is other


def test_tools_without_await(tmp_path: Path) -> None:
    with SyncSemanticRouter.from_tools(TOOLS, settings_for(tmp_path / "state")) as router:
        assert router.rank("play a song of my favourite band").skills[0].payload is TOOLS[2]
        with pytest.raises(UnknownSkill):
            router.payload("nothing")
