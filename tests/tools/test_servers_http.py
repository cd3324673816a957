"""Tools of MCP servers over HTTP: the SDK's own server, and one of the older protocol alone."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mcp_types as types
import pytest
import uvicorn
from cascade import WAIT_SECONDS
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from servers.loopback import HANG, LoopbackServer, Recorded, Reply
from servers.older_mcp_server import OlderServer
from servers.tool_folders import REFUND, WEATHER

from router.concurrency.loop_thread import LoopThread
from router.errors import SourceError
from router.tools.servers import McpServers

NEVER = 10 * WAIT_SECONDS


class NewerServer:
    """The SDK's server over HTTP, whose list of tools a test changes. It wants a header."""

    def __init__(self, address: socket.socket) -> None:
        self.address = address
        self.tools: list[dict[str, Any]] = [REFUND]
        self.bus = InMemorySubscriptionBus()
        self.protocols: set[str] = set()
        self.listening = threading.Event()
        self._listen = ListenHandler(self.bus)
        self._answering = asyncio.Event()
        server: Server[Any] = Server(
            "newer",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listens,
        )
        app = server.streamable_http_app()
        config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1)
        self._running = uvicorn.Server(config)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.address.getsockname()[1]}/mcp"

    async def run(self) -> None:
        await self._running.serve(sockets=[self.address])

    async def stop(self) -> None:
        self._listen.close()
        self._running.should_exit = True

    async def change(self, *tools: dict[str, Any]) -> None:
        self.tools = list(tools)
        await self.bus.publish(ToolsListChanged())

    async def _listens(self, context: Any, params: Any) -> Any:
        self.listening.set()
        return await self._listen(context, params)

    async def _list(self, context: Any, _params: object) -> types.ListToolsResult:
        self.protocols.add(context.protocol_version)
        return types.ListToolsResult(tools=[types.Tool.model_validate(one) for one in self.tools])

    async def end_listening(self) -> None:
        """End the streams on which clients hear of changes, as a server does that is updated."""
        ended, self._listen = self._listen, ListenHandler(self.bus)
        self.listening.clear()
        ended.close()

    async def answer(self) -> None:
        """Answer the calls that wait."""
        self._answering.set()

    async def _call(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if (params.arguments or {}).get("slow"):
            await self._answering.wait()
        key = context.request.headers.get("x-key", "")
        said = f"{params.name} {params.arguments} {key}"
        return types.CallToolResult(content=[types.TextContent(text=said)])


@contextmanager
def newer_server() -> Iterator[tuple[NewerServer, LoopThread]]:
    thread = LoopThread("test server")
    with socket.create_server(("127.0.0.1", 0)) as address:

        async def make() -> NewerServer:
            return NewerServer(address)

        server = thread.wait(make())
        running = thread.submit(server.run())
        yield server, thread
        thread.wait(server.stop())
        running.result(WAIT_SECONDS)
        thread.close(_nothing)


async def _nothing() -> None:
    pass


def until(source: McpServers, holds: Callable[[list[str]], bool]) -> list[str]:
    """The names of the tools, once the condition holds."""
    changed = threading.Event()
    end = source.subscribe(changed.set)
    while not holds(found := [skill.name for skill in source.read().skills]):
        assert changed.wait(WAIT_SECONDS)
        changed.clear()
    end()
    return found


async def test_a_server_of_the_newer_protocol_is_listed_called_and_heard() -> None:
    with newer_server() as (server, thread):
        config = {"bank": {"url": server.url, "headers": {"X-Key": "abc"}}}
        with McpServers(config, timeout_seconds=WAIT_SECONDS) as source:
            assert [skill.name for skill in source.read().skills] == ["bank__refund"]
            answer = await source.call("bank__refund", {"amount": 7})
            [content] = answer.content
            assert isinstance(content, types.TextContent)
            assert content.text == "refund {'amount': 7} abc"
            assert server.listening.wait(WAIT_SECONDS)
            thread.wait(server.change(REFUND, WEATHER))
            assert until(source, lambda names: len(names) == 2)[1] == "bank__weather"
    assert server.protocols == {"2026-07-28"}


async def test_a_server_may_be_silent_for_longer_than_an_answer_of_its_list_may_take() -> None:
    with newer_server() as (server, thread):
        config = {"bank": {"url": server.url}}
        with McpServers(config, timeout_seconds=1, first_pause=0.1, rescan_seconds=NEVER) as source:
            until(source, lambda names: names == ["bank__refund"])
            assert server.listening.wait(WAIT_SECONDS)
            call = asyncio.ensure_future(source.call("bank__refund", {"slow": True}))
            done, _ = await asyncio.wait([call], timeout=1.5)
            assert not done  # the call's own time is a minute
            thread.wait(server.answer())
            assert not (await call).is_error
            thread.wait(server.change(REFUND, WEATHER))
            assert until(source, lambda names: len(names) == 2)[1] == "bank__weather"


def test_changes_are_heard_again_after_the_server_ended_the_stream_of_them() -> None:
    with newer_server() as (server, thread):
        config = {"bank": {"url": server.url}}
        with McpServers(config, timeout_seconds=WAIT_SECONDS, rescan_seconds=NEVER) as source:
            until(source, lambda names: names == ["bank__refund"])
            assert server.listening.wait(WAIT_SECONDS)
            thread.wait(server.end_listening())
            assert server.listening.wait(WAIT_SECONDS)
            thread.wait(server.change(REFUND, WEATHER))
            assert until(source, lambda names: len(names) == 2)[1] == "bank__weather"


def test_a_source_that_is_closed_at_the_moment_of_a_change_ends() -> None:
    with newer_server() as (server, _):
        source = McpServers({"bank": {"url": server.url}}, timeout_seconds=WAIT_SECONDS)
        until(source, lambda names: names == ["bank__refund"])

        async def change_and_end() -> None:
            for connection in source._servers:
                connection.look_again.set()
            await source._end()

        source._thread.submit(change_and_end()).result(WAIT_SECONDS)
        source.close()


class BadServer(LoopbackServer):
    """Gives the same reply to everything."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.always = reply

    def respond(self, request: Recorded) -> Reply:
        return self.next_reply()


def test_servers_that_misbehave_are_reported_and_the_others_work() -> None:
    is_json = {"Content-Type": "application/json"}
    servers: dict[str, LoopbackServer] = {
        "hang": BadServer(HANG),
        "garbage": BadServer(Reply(b"%%% no JSON %%%", headers=is_json)),
        "broken": BadServer(Reply.json({}, status=500)),
        "endless": BadServer(Reply(b" " * 65_536, headers=is_json, endless=True)),
        "bank": OlderServer(),
    }
    config = {name: {"url": f"{server.address}/mcp"} for name, server in servers.items()}
    with McpServers(config, timeout_seconds=5.0, first_pause=WAIT_SECONDS) as source:
        found = source.read()
    for server in servers.values():
        server.close()
    assert [skill.name for skill in found.skills] == ["bank__refund"]
    reasons = {failure.path.name: failure.message for failure in found.failures}
    assert list(reasons) == ["hang", "garbage", "broken", "endless"]
    for reason in reasons.values():
        assert reason.startswith("the server cannot be reached: ")
    assert reasons["hang"].endswith("no answer within 5 s")
    assert "the reply is over 16,777,216 bytes" in reasons["endless"]


async def test_a_server_of_the_older_protocol_alone_is_listed_and_called_until_it_ends() -> None:
    server = OlderServer()
    config = {"bank": {"url": f"{server.address}/mcp"}}
    with McpServers(config, timeout_seconds=WAIT_SECONDS, rescan_seconds=0.1) as source:
        assert [skill.name for skill in source.read().skills] == ["bank__refund"]
        assert not (await source.call("bank__refund", {})).is_error
        server.close()
        with pytest.raises(SourceError, match="'bank__refund': the "):
            while True:
                await source.call("bank__refund", {})
    assert server.violations == []
