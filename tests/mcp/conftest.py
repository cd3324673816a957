"""Skills, an open router and running servers for the MCP tests."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import pytest
import uvicorn
from cascade import own_machine
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from served import only_mcp
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from router.mcp.server import SkillServer
from router.retrieval.configured_encoder import build_encoder
from router.retrieval.encoders import Encoder
from router.router import SemanticRouter
from router.settings.settings import Settings

SaveSkill: TypeAlias = Callable[..., Path]
Connect: TypeAlias = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(autouse=True)
def _clean_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_machine(tmp_path, monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty folder of skills."""
    folder = tmp_path / "skills"
    folder.mkdir()
    return folder


def save_skill(
    root: Path,
    name: str,
    description: str,
    *,
    head: str = "",
    body: str = "Do it well.",
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    folder = root / name
    text = f"---\nname: {name}\ndescription: {description}\n{head}---\n\n{body}\n"
    for path, data in {"SKILL.md": text.encode(), **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def save_three_skills(root: Path) -> None:
    save_skill(
        root,
        "git",
        "Commits, merges and rebases Git branches. Use for version control.",
        head="license: MIT\nmetadata:\n  routing-keywords: commit, push\n",
        files={"scripts/undo.sh": b"git reset\n", "references/hooks/list.md": b"# Hooks\n"},
    )
    save_skill(
        root, "testing", "Writes unit tests with pytest. Use when tests are missing or flaky."
    )
    save_skill(root, "secret", "Never offered.", head="disable-model-invocation: true\n")


@pytest.fixture
def save(root: Path) -> SaveSkill:
    """Saves a skill; ``files`` are its other files by path."""
    return partial(save_skill, root)


@pytest.fixture
def skills(root: Path) -> Path:
    """A folder with three skills, one of them not offered."""
    save_three_skills(root)
    return root


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    return build_encoder(Settings())


@pytest.fixture
async def opened(skills: Path, encoder: Encoder, tmp_path: Path) -> AsyncIterator[SemanticRouter]:
    """An open router over the three skills."""
    settings = Settings(state_dir=tmp_path / "state-here")
    async with SemanticRouter(settings, roots=[skills], encoder=encoder) as made:
        yield made


@pytest.fixture
def server(opened: SemanticRouter) -> SkillServer:
    return SkillServer(opened)


class _StreamSeen:
    """Sees the moment at which a client of the older protocol has its stream of notifications."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.seen = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watch(message: Message) -> None:
            await send(message)
            if scope.get("method") == "GET" and message["type"] == "http.response.start":
                self.seen.set()

        await self._app(scope, receive, watch)


def _uvicorn(app: ASGIApp) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app, log_config=None, access_log=False, ws="none", timeout_graceful_shutdown=1
        )
    )


def _url(listening: socket.socket) -> str:
    return f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"


@pytest.fixture
def start_stdio(tmp_path: Path) -> Connect:
    """Starts this Python with some arguments and connects to it over stdio."""

    @asynccontextmanager
    async def start(*arguments: str, mode: str, **options: Any) -> AsyncIterator[Client]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=list(arguments),
            env={name: os.environ[name] for name in ("HOME", "PYTHONPATH", "ROUTER_STATE_DIR")},
        )
        with (tmp_path / "stderr").open("w", encoding="utf-8") as errors:
            transport = stdio_client(parameters, errlog=errors)
            async with Client(transport, mode=mode, read_timeout_seconds=120, **options) as client:
                yield client

    return start


@dataclass(frozen=True, slots=True)
class Shared:
    """A server over the three skills that all tests share.

    Attributes:
        url: open to this machine.
        token_url: the same, for clients with the token "right-token".
        skills: the folder, which no test changes.
    """

    url: str
    token_url: str
    skills: Path


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, encoder: Encoder) -> Iterator[Shared]:
    """A server in a thread of its own."""
    skills = tmp_path_factory.mktemp("skills")
    save_three_skills(skills)
    settings = Settings(state_dir=tmp_path_factory.mktemp("state"), llm={"enabled": False})
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    running: list[uvicorn.Server] = []

    async def serve() -> None:
        async with SemanticRouter(settings, roots=[skills], encoder=encoder) as opened:
            made = SkillServer(opened)
            running.extend(_uvicorn(only_mcp(made, token=token)) for token in (None, "right-token"))
            async with asyncio.TaskGroup() as group:
                for served, place in zip(running, listening, strict=True):
                    group.create_task(served.serve(sockets=[place]))

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    # Connections wait in the listening sockets until the servers run.
    yield Shared(_url(listening[0]), _url(listening[1]), skills)
    for served in running:
        served.should_exit = True
    thread.join()


@pytest.fixture
def connect(start_stdio: Connect, shared: Shared) -> Connect:
    """Connects to a server over the three skills, by transport and generation of protocol."""

    def make(transport: str, mode: str) -> AbstractAsyncContextManager[Client]:
        if transport == "stdio":
            return start_stdio("-m", "router", "mcp", "--skills", str(shared.skills), mode=mode)
        return Client(shared.url, mode=mode, read_timeout_seconds=120)

    return make


@pytest.fixture
def live(
    start_stdio: Connect, opened: SemanticRouter, server: SkillServer, skills: Path
) -> Connect:
    """Connects to a server that watches the folder ``skills``."""

    @asynccontextmanager
    async def over_http(mode: str, **options: Any) -> AsyncIterator[Client]:
        app = _StreamSeen(only_mcp(server))
        running = _uvicorn(app)
        opened.manager.observers.add(server)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            serving = asyncio.create_task(running.serve(sockets=[listening]))
            async with (
                opened.manager.watch(),
                Client(_url(listening), mode=mode, read_timeout_seconds=120, **options) as client,
            ):
                if mode == "legacy":
                    await app.seen.wait()
                yield client
            running.should_exit = True
            await serving

    def make(transport: str, mode: str, **options: Any) -> AbstractAsyncContextManager[Client]:
        if transport == "stdio":
            arguments = ("-m", "router", "mcp", "--skills", str(skills))
            return start_stdio(*arguments, mode=mode, **options)
        return over_http(mode, **options)

    return make
