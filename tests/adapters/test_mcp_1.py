# mypy: ignore-errors
# The mcp that this is written for is not the one that mypy finds.
"""A client of the first generation of MCP's SDK at our server, which runs on the second.

Both are called ``mcp``, so the client has an environment of its own, and the server runs in that of
``ROUTER_TEST_SERVER``.
"""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

PROJECT = Path(__file__).parents[2]
COMMAND = ["-m", "router", "mcp", "--no-llm", "--skills", str(PROJECT / "skills")]
Connect = Callable[[str, dict[str, str]], AbstractAsyncContextManager[ClientSession]]


@asynccontextmanager
async def over_stdio(python: str, environment: dict[str, str]) -> AsyncIterator[ClientSession]:
    server = StdioServerParameters(command=python, args=COMMAND, env=environment)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        yield session


@asynccontextmanager
async def over_http(python: str, environment: dict[str, str]) -> AsyncIterator[ClientSession]:
    process = await asyncio.create_subprocess_exec(
        python, *COMMAND, "--http", "--port", "0", env=environment, stderr=PIPE
    )
    assert process.stderr is not None
    url = (await process.stderr.readline()).decode().split()[-1]
    async with (
        streamable_http_client(url) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        yield session
    process.terminate()
    await process.communicate()


@pytest.mark.parametrize("connect", [over_stdio, over_http], ids=["stdio", "http"])
async def test_a_client_of_the_first_sdk_lists_routes_and_loads(
    connect: Connect, tmp_path: Path
) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ROUTER_STATE_DIR": str(tmp_path / "state"),
        "PYTHONPATH": str(PROJECT),
    }
    async with connect(os.environ["ROUTER_TEST_SERVER"], environment) as session:
        begun = await session.initialize()
        assert begun.serverInfo.name == "cascade-router"
        listed = await session.list_tools()
        assert [tool.name for tool in listed.tools][:2] == ["route", "find_skills"]
        asked = {"request": "squash the last four commits on this branch"}
        routed = await session.call_tool("route", asked)  # it checks the answer by its schema
        assert routed.structuredContent["selected_skills"] == ["git"]
        loaded = await session.call_tool("load_skill", {"name": "git"})
        assert not loaded.isError
        read = await session.read_resource("skill://git/SKILL.md")
        assert "name: git" in read.contents[0].text
