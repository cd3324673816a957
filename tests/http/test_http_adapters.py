"""Adapters whose tools are ranked by a server: the same tools as without one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from adapters.toolbox import EXPECTED, TURNS, openai_tools
from servers.loopback import QueuedServer, Reply

from router.adapters import rankers
from router.adapters.openai import OpenAITools
from router.errors import InvalidRequest
from router.events import Degraded, Event
from router.http.api import Api
from router.http.app import http_app

KEY = "from-the-environment"
NAMES = ("localhost", "127.0.0.1")


@asynccontextmanager
async def served(api: Api) -> AsyncIterator[str]:
    """The address of a server over an API."""
    config = uvicorn.Config(
        http_app(api, names=NAMES, mcp=None), log_config=None, timeout_graceful_shutdown=1
    )
    running = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        running.should_exit = True
        await serving


def said(turns: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in TURNS[:turns]]


async def test_a_server_chooses_what_the_router_here_would_choose(guarded: Api) -> None:
    definitions = [*openai_tools(), {"type": "function", "function": {"name": "odd", "x": 1}}]
    options = {"limit": 3, "timeout": 60, "always_include": ["lock_door"]}
    async with served(guarded) as address:
        with (
            OpenAITools(definitions, **options) as here,
            OpenAITools(definitions, **options, server=address, key=KEY) as there,
        ):
            for turn, wanted in enumerate(EXPECTED, start=1):
                chosen = await there.aselect(said(turn))
                assert chosen == await here.aselect(said(turn))
                assert wanted in [tool["function"]["name"] for tool in chosen]


async def test_a_server_that_refuses_leaves_every_tool_shown_and_an_event(guarded: Api) -> None:
    definitions, events = openai_tools(), list[Event]()
    async with served(guarded) as address:
        with OpenAITools(definitions, limit=3, timeout=60, server=address) as tools:
            tools.selector.events.subscribe(events.append)
            assert await tools.aselect(said(1)) == definitions
    [event] = events
    assert isinstance(event, Degraded)
    assert "a key is required" in event.reason
    assert event.reason.endswith("every tool is shown")


def test_what_no_ranking_is_leaves_every_tool_shown() -> None:
    server, events = QueuedServer(), list[Event]()
    server.queue(Reply.json({"skills": [7]}))
    definitions = openai_tools()
    with OpenAITools(definitions, limit=3, timeout=60, server=server.address) as tools:
        tools.selector.events.subscribe(events.append)
        assert tools.select(said(1)) == definitions
    server.close()
    [event] = events
    assert isinstance(event, Degraded)
    assert "its answer cannot be read" in event.reason


def test_a_server_that_keeps_failing_is_left_alone_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(rankers, "monotonic", lambda: now)
    server, definitions = QueuedServer(), openai_tools()
    server.always = Reply.json({"title": "out of order"}, status=500)
    with OpenAITools(definitions, limit=3, timeout=60, server=server.address) as tools:
        for turn in range(7):
            assert tools.select([{"role": "user", "content": f"turn {turn}"}]) == definitions
        assert len(server.requests) == rankers.FAILURES
        now = rankers.LEFT_ALONE_SECONDS
        server.always = Reply.json({"skills": [{"name": "lock_door"}]})
        for turn in range(3):
            [chosen] = tools.select([{"role": "user", "content": f"lock door {turn}"}])
            assert chosen["function"]["name"] == "lock_door"
    server.close()


@pytest.mark.parametrize("default", [float("nan"), {1, 2}])
def test_what_cannot_be_sent_leaves_every_tool_shown(default: object) -> None:
    odd = {"name": "odd", "parameters": {"properties": {"what": {"default": default}}}}
    definitions, events = [*openai_tools(), {"type": "function", "function": odd}], list[Event]()
    with OpenAITools(definitions, limit=3, timeout=60, server="http://127.0.0.1:1") as tools:
        tools.selector.events.subscribe(events.append)
        assert tools.select([{"role": "user", "content": "lights off"}]) == definitions
    [event] = events
    assert isinstance(event, Degraded)
    assert "cannot be sent as JSON" in event.reason


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="is no address of HTTP"):
        OpenAITools(openai_tools(), server="router.example.org")
