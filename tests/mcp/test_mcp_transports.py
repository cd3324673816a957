"""The SDK's own client, in both generations of the protocol, over both transports."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged
from mcp.shared.message import SessionMessage

from router.mcp.server import SkillServer
from router.router import SemanticRouter

Connect = Callable[..., AbstractAsyncContextManager[Client]]
SaveSkill = Callable[..., Path]

NEWER = "2026-07-28"
SECONDS = 120.0

TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http"])
GENERATIONS = pytest.mark.parametrize(
    ("mode", "protocol"), [("auto", NEWER), ("legacy", "2025-11-25")], ids=["newer", "older"]
)


class Inbox:
    """Collects the notifications of an older session."""

    def __init__(self) -> None:
        self._received: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.Notification):
            self._received.put_nowait(message.method)

    async def next(self) -> str:
        async with asyncio.timeout(SECONDS):
            return await self._received.get()


async def skill_enum(client: Client) -> list[str]:
    await client.call_tool("router_status", {})  # waits until the skills are read
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    names: list[str] = tools["load_skill"].input_schema["properties"]["name"]["enum"]
    return names


@TRANSPORTS
@GENERATIONS
async def test_every_tool_and_resource_answers(
    connect: Connect, transport: str, mode: str, protocol: str
) -> None:
    async with connect(transport, mode) as client:
        assert client.protocol_version == protocol
        assert client.instructions is not None
        assert "`route`" in client.instructions
        await client.call_tool("router_status", {})  # waits until the skills are read
        tools = [tool.name for tool in (await client.list_tools()).tools]
        # Those of memory follow where the server has one; they have tests of their own.
        assert tools[:4] == ["route", "find_skills", "load_skill", "give_feedback"]
        arguments: dict[str, dict[str, Any]] = {
            "route": {"request": "commit and push my branch", "history": ["hello"], "scope": "me"},
            "find_skills": {"query": "flaky pytest", "limit": 1},
            "load_skill": {"name": "git"},
            "router_status": {},
        }
        # The client checks each structured answer against the tool's output schema.
        answers = {name: await client.call_tool(name, arguments[name]) for name in arguments}
        listed = (await client.list_resources()).resources
        [content] = (await client.read_resource("skill://git/scripts/undo.sh")).contents
    assert not any(answer.is_error for answer in answers.values())
    found = {name: answer.structured_content for name, answer in answers.items()}
    assert found["route"]["selected_skills"] == ["git"]
    assert [skill["name"] for skill in found["find_skills"]["skills"]] == ["testing"]
    assert found["load_skill"]["instructions"] == "Do it well."
    assert found["router_status"]["skills"]["routable"] == 2
    assert [resource.uri for resource in listed] == [
        "skill://git/SKILL.md",
        "skill://testing/SKILL.md",
    ]
    assert isinstance(content, types.TextResourceContents)
    assert content.text == "git reset\n"


@TRANSPORTS
async def test_a_saved_skill_reaches_newer_clients(
    live: Connect, transport: str, save: SaveSkill
) -> None:
    async with live(transport, "auto") as client:
        assert await skill_enum(client) == ["git", "testing"]
        async with client.listen(tools_list_changed=True, resources_list_changed=True) as changes:
            save("docker", "Builds container images.")
            async with asyncio.timeout(SECONDS):
                # The end of the first reading of the skills may be announced before.
                while await skill_enum(client) != ["docker", "git", "testing"]:
                    assert await anext(changes) == ToolsListChanged()
                    assert await anext(changes) == ResourcesListChanged()
            assert len((await client.list_resources()).resources) == 3


@TRANSPORTS
async def test_a_saved_skill_reaches_older_clients(
    live: Connect, transport: str, save: SaveSkill
) -> None:
    inbox = Inbox()
    async with live(transport, "legacy", message_handler=inbox) as client:
        assert await skill_enum(client) == ["git", "testing"]
        save("docker", "Builds container images.")
        while await skill_enum(client) != ["docker", "git", "testing"]:
            assert await inbox.next() == "notifications/tools/list_changed"
            assert await inbox.next() == "notifications/resources/list_changed"
        assert len((await client.list_resources()).resources) == 3


async def test_an_edit_tells_those_who_watch_the_skill_and_leaves_the_tools_alone(
    opened: SemanticRouter, server: SkillServer, save: SaveSkill
) -> None:
    async with (
        Client(server.protocol) as client,
        client.listen(
            tools_list_changed=True, resource_subscriptions=["skill://git/SKILL.md"]
        ) as changes,
    ):
        save("git", "Commits to branches.")
        await server.on_catalog_change(await opened.reload())
        async with asyncio.timeout(SECONDS):
            assert await anext(changes) == ResourceUpdated("skill://git/SKILL.md")


async def test_no_change_tells_nobody(
    opened: SemanticRouter, server: SkillServer, save: SaveSkill
) -> None:
    inbox = Inbox()
    async with Client(server.protocol, mode="legacy", message_handler=inbox) as client:
        await client.list_tools()
        await server.on_catalog_change(await opened.reload())
        save("docker", "Builds container images.")
        await server.on_catalog_change(await opened.reload())
        assert await inbox.next() == "notifications/tools/list_changed"


async def test_a_client_that_left_is_no_error(
    opened: SemanticRouter, server: SkillServer, save: SaveSkill
) -> None:
    async with Client(server.protocol, mode="legacy") as client:
        await client.list_tools()
    save("docker", "Builds container images.")
    change = await opened.reload()
    await server.on_catalog_change(change)
    assert change.added == ("docker",)


async def test_a_client_that_does_not_read_holds_up_nobody(
    opened: SemanticRouter,
    server: SkillServer,
    save: SaveSkill,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.mcp.server.NOTIFY_SECONDS", 0.05)
    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception](1)
    answers, from_server = anyio.create_memory_object_stream[SessionMessage](0)

    async def say(message: types.JSONRPCMessage) -> None:
        await to_server.send(SessionMessage(message))

    hello = types.InitializeRequestParams(
        protocol_version="2025-11-25",
        capabilities=types.ClientCapabilities(),
        client_info=types.Implementation(name="silent", version="1"),
    ).model_dump(by_alias=True, exclude_none=True)
    options = server.protocol.create_initialization_options()
    inbox = Inbox()
    async with anyio.create_task_group() as group:
        group.start_soon(server.protocol.run, requests, answers, options)
        await say(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="initialize", params=hello))
        await from_server.receive()
        await say(types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized"))
        await say(types.JSONRPCRequest(jsonrpc="2.0", id=2, method="ping"))
        await from_server.receive()  # and from here on nothing more
        async with Client(server.protocol, mode="legacy", message_handler=inbox) as client:
            await client.list_tools()
            save("docker", "Builds container images.")
            await server.on_catalog_change(await opened.reload())
            assert await inbox.next() == "notifications/tools/list_changed"
        from_server.close()
        await to_server.aclose()


async def test_load_skill_goes_with_the_last_skill(
    opened: SemanticRouter, server: SkillServer, skills: Path
) -> None:
    async with Client(server.protocol) as client:
        for name in ("git", "testing"):
            os.unlink(skills / name / "SKILL.md")  # noqa: PTH108 - beside the other removals
        await server.on_catalog_change(await opened.reload())
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["route", "find_skills", "give_feedback", "enrich_skills", "router_status"]
        routed = await client.call_tool("route", {"request": "commit my changes"})
    assert routed.structured_content["decision"] == "abstain"
