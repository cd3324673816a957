"""``router mcp --gateway``: real servers behind it, and the SDK's own client before it."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from cpu_time import cpu_time_at_most
from mcp import Client
from servers.tool_folders import REFUND, WEATHER, ToolFolders, tool

from router.errors import SourceError
from router.mcp.gateway import GatewayServer
from router.retrieval.encoders import Encoder
from router.router import SemanticRouter
from router.service.gateway import ToolGateway
from router.settings.settings import Settings
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest
from router.tools.pins import Pinned, write_pins
from router.tools.servers import McpServers

SECONDS = 120.0
GENERATIONS = pytest.mark.parametrize("mode", ["auto", "legacy"])
Gateways = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture
def servers(tmp_path: Path) -> ToolFolders:
    (tmp_path / "servers").mkdir()
    return ToolFolders(tmp_path / "servers")


@pytest.fixture
def gateways(servers: ToolFolders, tmp_path: Path, encoder: Encoder) -> Gateways:
    """Connects to a gateway in this process, over the servers of the folders."""

    @asynccontextmanager
    async def start(mode: str = "auto", pins: Path | None = None) -> AsyncIterator[Client]:
        settings = Settings(state_dir=tmp_path / "state-here", llm={"enabled": False})
        with McpServers(servers.config(), timeout_seconds=SECONDS, first_pause=0.05) as source:
            offered = source if pins is None else Pinned(source, pins)
            async with SemanticRouter(settings, sources=[offered], encoder=encoder) as router:
                server = GatewayServer(ToolGateway(router, source))
                async with Client(server.protocol, mode=mode) as client:
                    yield client

    return start


async def called(client: Client, name: str, arguments: object) -> types.CallToolResult:
    asked: dict[str, Any] = {"name": name, "arguments": arguments}
    return await client.call_tool("call_tool", asked, read_timeout_seconds=SECONDS)


def text_of(result: types.CallToolResult) -> str:
    [content] = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@GENERATIONS
async def test_a_tool_is_found_routed_to_and_called_at_its_own_server(
    servers: ToolFolders, gateways: Gateways, mode: str
) -> None:
    servers.put("bank", REFUND)
    servers.put("sky", WEATHER)
    async with gateways(mode) as client:
        listed = await client.list_tools()
        assert [one.name for one in listed.tools] == ["search_tools", "route", "call_tool"]
        assert all("Call it " in (one.description or "") for one in listed.tools)
        query = {"query": "tell me the weather forecast", "limit": 1}
        found = (await client.call_tool("search_tools", query)).structured_content
        assert found == {
            "tools": [
                {
                    "name": "sky__weather",
                    "description": WEATHER["description"],
                    "input_schema": WEATHER["inputSchema"],
                    "also_at": [],
                    "down": False,
                }
            ],
            "missing": {},
        }
        routed = await client.call_tool("route", {"request": "What is the weather forecast?"})
        assert routed.structured_content is not None
        assert routed.structured_content["tools"][0]["name"] == "sky__weather"
        answer = await called(client, "sky__weather", {"city": "Oslo"})
    assert json.loads(text_of(answer)) == {
        "server": "sky",
        "name": "weather",
        "arguments": {"city": "Oslo"},
    }


async def test_faults_of_a_call_are_told_by_tool_and_source_and_the_others_work(
    servers: ToolFolders, gateways: Gateways
) -> None:
    strict = tool("strict", "Wants a number.")
    strict["inputSchema"] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    odd = [tool(name, "Misbehaves.") for name in ("huge", "failing")]
    servers.put("bank", REFUND, strict, *odd)
    async with gateways() as client:
        faults = {
            name: await called(client, f"bank__{name}", arguments)
            for name, arguments in {
                "strict": {"n": "seven"},
                "huge": {},
                "refnud": {},
            }.items()
        }
        own = await called(client, "bank__failing", {})
        good = await called(client, "bank__refund", {"amount": "7"})
    assert all(fault.is_error for fault in faults.values())
    told = {name: text_of(fault) for name, fault in faults.items()}
    assert told["strict"] == (
        "bank__strict: its arguments do not fit: n: 'seven' is not of type 'integer'"
    )
    place = "source 'mcp', 'bank__"
    assert told["huge"].startswith(f"{place}huge': the answer has 2,097,")
    assert told["refnud"].startswith(
        f"{place}refnud': there is no such tool; did you mean bank__refund"
    )
    assert own.is_error
    assert json.loads(text_of(own))["name"] == "failing"  # the server's own words
    assert not good.is_error


async def test_a_call_that_takes_too_long_is_given_up(
    servers: ToolFolders, gateways: Gateways, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.service.gateway.CALL_SECONDS", 0.05)
    servers.put("bank", tool("slow", "Never answers."))
    async with gateways() as client:
        late = await called(client, "bank__slow", {})
    assert text_of(late) == ("source 'mcp', 'bank__slow': the call failed: no answer within 0.05 s")


async def test_a_server_that_ends_in_a_call_is_reported_and_started_again(
    servers: ToolFolders, gateways: Gateways
) -> None:
    servers.put("bank", REFUND, tool("fatal", "Ends the server."))
    servers.put("sky", WEATHER)
    async with gateways() as client:
        ended = await called(client, "bank__fatal", {})
        assert text_of(ended).startswith("source 'mcp', 'bank__fatal': the call failed: ")
        assert not (await called(client, "sky__weather", {})).is_error
        async with asyncio.timeout(SECONDS):
            while (await called(client, "bank__refund", {})).is_error:
                pass  # until it has been started again


async def test_a_server_that_is_down_keeps_its_tools_but_cannot_be_called(
    servers: ToolFolders, gateways: Gateways
) -> None:
    servers.put("bank", REFUND)
    async with gateways() as client:
        servers.set_mode("bank", "down")
        async with asyncio.timeout(SECONDS):
            while not (await called(client, "bank__refund", {})).is_error:
                pass
            found: Any = {"tools": [{"down": False}]}
            while not found["tools"][0]["down"]:
                answer = await client.call_tool("search_tools", {"query": "refund"})
                found = answer.structured_content
        refused = await called(client, "bank__refund", {})
    assert found["tools"][0]["name"] == "bank__refund"
    assert "'bank__refund': the server is down: " in text_of(refused)


async def test_a_twin_is_named_and_called_where_it_was_asked_for(
    servers: ToolFolders, gateways: Gateways
) -> None:
    servers.put("a", REFUND)
    servers.put("b", REFUND)
    async with gateways() as client:
        found = (await client.call_tool("search_tools", {"query": "refund"})).structured_content
        assert found is not None
        assert [(one["name"], one["also_at"]) for one in found["tools"]] == [
            ("a__refund", ["b__refund"])
        ]
        answer = await called(client, "b__refund", {})
    assert json.loads(text_of(answer))["server"] == "b"


async def test_a_name_that_is_no_tools_holds_nobody_up_over_ten_thousand() -> None:
    names = [f"server{number % 300}__get_user_{number}" for number in range(10_000)]
    skills = {name: SkillManifest.in_memory(name, "Gets a user.") for name in names}
    gateway = ToolGateway(SemanticRouter(), McpServers({"a": {"command": "true"}}))
    catalog = Catalog(skills)
    with (
        pytest.raises(SourceError, match="did you mean server"),
        cpu_time_at_most(0.1),
    ):
        gateway._find(catalog, "server12__get_user_77777")


async def test_a_twin_that_nobody_approved_is_neither_named_nor_called(
    servers: ToolFolders, gateways: Gateways, tmp_path: Path
) -> None:
    pins = tmp_path / "approved.json"
    servers.put("b", REFUND)
    with McpServers(servers.config(), timeout_seconds=SECONDS) as source:
        write_pins(pins, source.read().skills)
    servers.put("a", REFUND)  # before the approved one
    async with gateways(pins=pins) as client:
        found = (await client.call_tool("search_tools", {"query": "refund"})).structured_content
        assert found is not None
        assert [(one["name"], one["also_at"]) for one in found["tools"]] == [("b__refund", [])]
        refused = await called(client, "a__refund", {})
        assert not (await called(client, "b__refund", {})).is_error
    assert "there is no such tool" in text_of(refused)


async def test_a_tool_that_changes_is_found_by_its_new_text_with_long_texts_cut(
    servers: ToolFolders, gateways: Gateways
) -> None:
    servers.put("bank", REFUND)
    async with gateways() as client:
        long = "Waters the tomatoes. " + "x" * 5_000
        many = {f"p{number}": {"description": "y" * 100} for number in range(300)}
        changed = tool("garden", long)
        changed["inputSchema"]["properties"] = many
        servers.put("bank", changed)
        found: Any = None
        async with asyncio.timeout(SECONDS):
            while not found or found["tools"][0]["name"] != "bank__garden":
                answer = await client.call_tool("search_tools", {"query": "water the tomatoes"})
                found = answer.structured_content
    [shown] = found["tools"]
    assert len(shown["description"]) == 2_000
    assert shown["input_schema"] is None


@pytest.mark.parametrize(("mode", "pinned"), [("auto", False), ("legacy", True)])
async def test_the_command_serves_what_is_approved(
    servers: ToolFolders, tmp_path: Path, start_stdio: Gateways, mode: str, pinned: bool
) -> None:
    servers.put("sky", WEATHER, REFUND)
    config, pins = tmp_path / "servers.json", tmp_path / "approved.json"
    config.write_text(json.dumps(servers.config()))
    arguments = ["-m", "router", "mcp", "--no-llm", "--gateway", str(config)]
    if pinned:
        pins.write_text('{"sky__refund": "0"}')
        arguments += ["--pin", str(pins)]
    async with start_stdio(*arguments, mode=mode) as client:
        answer = await called(client, "sky__weather", {"city": "Oslo"})
    assert bool(answer.is_error) is pinned


@GENERATIONS
async def test_the_command_serves_over_http(
    servers: ToolFolders, tmp_path: Path, mode: str
) -> None:
    servers.put("sky", WEATHER)
    config = tmp_path / "servers.json"
    config.write_text(json.dumps(servers.config()))
    arguments = ["-m", "router", "mcp", "--no-llm", "--gateway", str(config), "--http"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, "--port", "0", stderr=PIPE
    )
    assert process.stderr is not None
    said, _, url = (await process.stderr.readline()).decode().strip().rpartition(" ")
    assert said == "serving MCP at"
    async with Client(url, mode=mode, read_timeout_seconds=SECONDS) as client:
        answer = await called(client, "sky__weather", {"city": "Oslo"})
        assert not answer.is_error
        assert (await called(client, "sky__refund", {})).is_error
    process.terminate()
    _, errors = await process.communicate()
    assert (process.returncode, errors) == (0, b"")
