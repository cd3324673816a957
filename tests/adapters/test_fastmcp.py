from __future__ import annotations

import pytest
from adapters.toolbox import DESCRIPTIONS
from fastmcp import Client, FastMCP
from fastmcp.tools.base import Tool

from router import SemanticRouter
from router.adapters.fastmcp import RoutedSearchTransform


@pytest.fixture
def server() -> FastMCP:
    server: FastMCP = FastMCP("toolbox")
    for name, description in DESCRIPTIONS.items():
        server.add_tool(Tool.from_function(_runner(name), name=name, description=description))
    return server


def _runner(name: str) -> object:
    def run(what: str) -> str:
        return f"{name} has run"

    return run


async def test_a_client_finds_the_tool_and_calls_it(server: FastMCP) -> None:
    transform = RoutedSearchTransform(max_results=3, timeout=60)
    server.add_transform(transform)
    async with Client(server) as client:
        assert {tool.name for tool in await client.list_tools()} == {"search_tools", "call_tool"}
        found = await client.call_tool("search_tools", {"query": "will I need an umbrella in rain"})
        names = [tool["name"] for tool in found.data]
        assert names[0] == "get_weather"
        assert len(names) == 3
        said = await client.call_tool(
            "call_tool", {"name": "get_weather", "arguments": {"what": "Oslo"}}
        )
        assert "get_weather has run" in str(said.content)
    transform.selector.close()


async def test_pinned_tools_stay_visible(server: FastMCP) -> None:
    transform = RoutedSearchTransform(always_visible=["lock_door"])
    server.add_transform(transform)
    async with Client(server) as client:
        shown = {tool.name for tool in await client.list_tools()}
    assert shown == {"lock_door", "search_tools", "call_tool"}
    transform.selector.close()


async def test_tools_of_a_server_are_routed_to_without_the_transform_too(server: FastMCP) -> None:
    async with SemanticRouter.from_tools(await server.list_tools()) as router:
        best = (await router.rank("will I need an umbrella in rain", limit=1)).skills[0]
    assert isinstance(best.payload, Tool)
    assert best.name == "get_weather"
