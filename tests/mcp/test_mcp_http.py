"""Streamable HTTP: who may connect, and what is said to malformed messages."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx2
import pytest
import uvicorn
from greetings import DISCOVER, initialize
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from served import only_mcp
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from typer.testing import CliRunner

from router.cli.app import app
from router.http.keys import KeyFile, Right
from router.mcp.http import LongMessagesAnswered, SessionsBounded
from router.mcp.lines import MAX_MESSAGE_BYTES
from router.mcp.server import SkillServer

NEWER = {"MCP-Protocol-Version": "2026-07-28"}
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
GENERATIONS = pytest.mark.parametrize("newer", [True, False], ids=["newer", "older"])


def post(
    url: str,
    body: bytes | None = None,
    *,
    newer: bool = False,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> httpx2.Response:
    """A raw request; by default the first of its generation of the protocol."""
    message = DISCOVER if newer else initialize()
    era = {**NEWER, "Mcp-Method": "server/discover"} if newer else {}
    content = json.dumps(message).encode() if body is None else body
    sent = [(k.encode(), v.encode("latin-1")) for k, v in {**HEADERS, **era, **headers}.items()]
    return httpx2.post(url, content=content, headers=sent, timeout=120)


@GENERATIONS
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        # tests/web/test_names.py has what else a name may look like.
        ({}, 200),
        ({"Host": "LOCALHOST:80"}, 200),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Origin": "http://LocalHost:6274"}, 200),
        ({"Origin": "http://localhost.evil.example"}, 403),
    ],
    ids=str,
)
def test_only_this_machine_s_names_are_served(
    shared: Any, newer: bool, headers: dict[str, str], status: int
) -> None:
    assert post(shared.url, newer=newer, headers=headers).status_code == status


@GENERATIONS
@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (None, 401),
        ("Bearer wrong", 401),
        ("Bearer", 401),
        ("Basic right-token", 401),
        ("Bearer right-token ü", 401),
        ("Bearer right-token", 200),
        ("bearer right-token", 200),
    ],
)
def test_the_token_is_required_where_one_is_set(
    shared: Any, newer: bool, shown: str | None, status: int
) -> None:
    headers = {} if shown is None else {"Authorization": shown}
    answer = post(shared.token_url, newer=newer, headers=headers)
    assert answer.status_code == status
    assert ("www-authenticate" in answer.headers) is (status == 401)


async def test_keys_count_as_for_router_serve(server: SkillServer, tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "api_keys.json")
    transport = httpx2.ASGITransport(app=only_mcp(server, keys=keys.path))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:

        async def status(key: str | None) -> int:
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            return (await client.get("/elsewhere", headers=headers)).status_code

        assert await status(None) == 404  # nobody is asked for a key while there is none
        owner = keys.make("all", rights=list(Right))
        tenant = keys.make("one tenant", rights=[Right.ROUTE], scopes=["shop"])
        shown = (None, "wrong", tenant, owner)
        assert [await status(key) for key in shown] == [401, 401, 403, 404]
        keys.revoke(keys.all()[0].id)
        assert await status(owner) == 401


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_client_works_with_a_token(shared: Any, mode: str) -> None:
    async with (
        httpx2.AsyncClient(headers={"Authorization": "Bearer right-token"}) as carrier,
        Client(streamable_http_client(shared.token_url, http_client=carrier), mode=mode) as client,
    ):
        assert not (await client.call_tool("router_status", {})).is_error


@GENERATIONS
@pytest.mark.parametrize(
    "body", [b'{"jsonrpc": "2.0", "id": 1, "meth', b"", b"\xff\xfe", b"[" * 100_000]
)
def test_what_is_no_json_is_a_parse_error(shared: Any, newer: bool, body: bytes) -> None:
    answer = post(shared.url, body, newer=newer)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32700)


@pytest.mark.parametrize("body", [b"[]", b"3", b'{"id": 1}', b'{"jsonrpc": "1.0", "id": 1}'])
@pytest.mark.parametrize(("newer", "code"), [(True, -32600), (False, -32602)])
def test_json_that_is_no_message_is_refused(
    shared: Any, newer: bool, code: int, body: bytes
) -> None:
    answer = post(shared.url, body, newer=newer)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


@GENERATIONS
def test_a_huge_body_is_refused(shared: Any, newer: bool) -> None:
    answer = post(shared.url, b" " * (5 * 1024 * 1024), newer=newer)
    assert answer.status_code == 413


@GENERATIONS
def test_a_huge_message_is_answered_by_its_id(shared: Any, newer: bool) -> None:
    message = {"method": "x", "params": "y" * MAX_MESSAGE_BYTES, "jsonrpc": "2.0", "id": "a"}
    answer = post(shared.url, json.dumps(message).encode(), newer=newer)
    assert answer.status_code == 200
    assert answer.json()["id"] == "a"
    assert answer.json()["error"]["code"] == -32600


async def test_nothing_is_read_of_a_message_beyond_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.mcp.http.MAX_MESSAGE_BYTES", 10)
    monkeypatch.setattr("router.mcp.http.MAX_READ_BYTES", 100)
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b'{"id": 1, "x": "'

    app = LongMessagesAnswered(PlainTextResponse("fine"))
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        assert (await client.post("/", content=endless())).status_code == 413
    assert read < 20


async def test_abandoned_sessions_give_way_to_new_ones_and_busy_ones_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.mcp.http.MAX_SESSIONS", 3)
    ended: list[str] = []
    held, release = asyncio.Event(), asyncio.Event()
    given = iter("abcdef")

    async def sessions(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        session = request.headers.get("mcp-session-id")
        if request.method == "DELETE":
            ended.append(session or "")
        elif request.method == "GET":
            held.set()
            await release.wait()
        new = {} if session else {"mcp-session-id": next(given)}
        await Response(headers=new)(scope, receive, send)

    transport = httpx2.ASGITransport(app=SessionsBounded(sessions))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for _ in range(3):
            await client.post("/")
        busy = asyncio.create_task(client.get("/", headers={"mcp-session-id": "a"}))
        await held.wait()
        await client.post("/", headers={"mcp-session-id": "b"})  # now c is idle for longest
        await client.post("/")
        assert ended == ["c"]
        await client.post("/")
        assert ended == ["c", "b"]
        release.set()
        await busy
        await client.delete("/", headers={"mcp-session-id": "d"})
        await client.post("/")  # a place is free
        assert ended == ["c", "b", "d"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_come_in_when_sessions_were_left_behind(
    server: SkillServer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.mcp.http.MAX_SESSIONS", 2)
    app = only_mcp(server)
    config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1)
    running = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        for _ in range(5):
            assert (await asyncio.to_thread(post, url)).status_code == 200
        async with Client(url, mode=mode) as client:
            assert not (await client.call_tool("load_skill", {"name": "git"})).is_error
        running.should_exit = True
        await serving


@GENERATIONS
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_another_content_type_is_refused(shared: Any, newer: bool, kind: str) -> None:
    answer = post(shared.url, newer=newer, headers={"Content-Type": kind})
    assert answer.status_code == 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
ARGUMENTS = st.sampled_from(
    ("request", "available_skills", "history", "scope", "query", "limit", "name", "role")
)


@settings(max_examples=50)
@given(
    tool=st.sampled_from(("route", "find_skills", "load_skill", "router_status")),
    arguments=st.dictionaries(ARGUMENTS, JSON, max_size=4),
)
def test_no_arguments_break_a_tool(shared: Any, tool: str, arguments: dict[str, Any]) -> None:
    params = {**DISCOVER["params"], "name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**NEWER, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    answer = post(shared.url, json.dumps(message).encode(), headers=headers)
    assert answer.status_code == 200
    result = answer.json()["result"]
    assert "internal error" not in result["content"][0]["text"]
    assert result["isError"] is ("structuredContent" not in result)


async def test_the_server_goes_on_after_malformed_messages(shared: Any) -> None:
    for body in (b"{", b"[]", b" " * (5 * 1024 * 1024)):
        await asyncio.to_thread(post, shared.url, body)
    async with Client(shared.url) as client:
        assert not (await client.call_tool("load_skill", {"name": "git"})).is_error


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--http", "--host", "0.0.0.0"], "error: other machines can reach 0.0.0.0"),  # noqa: S104
        (["--port", "1234"], "error: --host, --port, --key-env and --allow-host go with --http"),
        (["--http", "--key-env", "NOT_SET"], "error: the variable NOT_SET is not set"),
        (["--http", "--key-env", "BAD"], "error: the value of BAD cannot be sent"),
        (["--http", "--host", "192.0.2.1", "--key-env", "OK"], "error: cannot listen on 192.0"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_the_command_refuses_what_is_unsafe_or_impossible(
    monkeypatch: pytest.MonkeyPatch, skills: Path, arguments: list[str], said: str
) -> None:
    monkeypatch.setenv("BAD", "two words")
    monkeypatch.setenv("OK", "token")
    result = CliRunner().invoke(app, ["mcp", "--skills", str(skills), *arguments])
    assert result.exit_code == 2
    assert result.stderr.startswith(said)
    assert result.stdout == ""


@pytest.fixture
def command(skills: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    monkeypatch.setenv("MCP_TOKEN", "right-token")
    options = ["--skills", str(skills), "--http", "--port", "0", "--token-env", "MCP_TOKEN"]
    with subprocess.Popen(
        [sys.executable, "-m", "router", "mcp", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


async def test_the_command_serves_until_it_is_told_to_stop(command: subprocess.Popen[str]) -> None:
    assert command.stderr is not None
    line = await asyncio.to_thread(command.stderr.readline)
    found = re.fullmatch(r"serving MCP at (http://127\.0\.0\.1:\d+/mcp)\n", line)
    assert found is not None
    assert (await asyncio.to_thread(post, found[1])).status_code == 401
    async with (
        httpx2.AsyncClient(headers={"Authorization": "Bearer right-token"}, timeout=60) as carrier,
        Client(streamable_http_client(found[1], http_client=carrier)) as client,
    ):
        assert not (await client.call_tool("load_skill", {"name": "git"})).is_error
        async with client.listen(tools_list_changed=True):
            command.send_signal(signal.SIGTERM)
            output, errors = await asyncio.to_thread(command.communicate, timeout=120)
    assert (command.returncode, output, errors) == (0, "", "")
