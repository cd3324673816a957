"""``router mcp``: serve the router to agents over the Model Context Protocol."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, closing
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from router.cli.options import AllowedHosts, NoLLM, SkillFolders, read_secret, read_settings
from router.cli.process import ready_to_serve
from router.errors import ConfigurationError, RouterError
from router.mcp.hello import Greeting, greet, standard_input
from router.version import install_extra

if TYPE_CHECKING:
    from mcp.server.subscriptions import SubscriptionBus

    from router.mcp.server import Servable, SkillServer
    from router.memory.memory import Memory
    from router.router import SemanticRouter
    from router.settings.settings import Settings
    from router.skills.sources import SkillSource

DEFAULT_PORT: Final = 8642
Opening: TypeAlias = "Callable[[], AbstractAsyncContextManager[Servable]]"


def mcp(
    folders: SkillFolders = None,
    no_llm: NoLLM = False,
    http: Annotated[
        bool, typer.Option("--http", help="Serve streamable HTTP, not standard input and output.")
    ] = False,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on [default: 127.0.0.1].")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help=f"Port; 0 takes a free one [default: {DEFAULT_PORT}]."),
    ] = None,
    key_env: Annotated[
        str | None,
        typer.Option(
            "--key-env",
            "--token-env",  # its name before
            metavar="NAME",
            help="Variable that holds a key with all rights, beside those of router keys.",
        ),
    ] = None,
    allow_host: AllowedHosts = None,
    gateway: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help='Serve the tools of these servers, {"mcpServers": {…}}, which are started.',
        ),
    ] = None,
    pin: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --gateway: only tools as approved by router tools check --pin.",
        ),
    ] = None,
) -> None:
    """Serve routing, skills and memory over MCP: on standard input and output, or over HTTP."""
    if find_spec("mcp") is None:
        raise ConfigurationError(f"the MCP server is an extra: {install_extra('mcp')}")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # at INFO it tells of every event
    settings = read_settings(no_llm=no_llm, serves=folders or () if gateway is None else None)
    if gateway is None:
        if pin is not None:
            raise ConfigurationError("--pin goes with --gateway")
        opening: Opening = partial(_skills, folders, settings)
    elif folders:
        raise ConfigurationError("--gateway serves tools of other servers, and no folder of skills")
    else:
        opening = partial(_gateway, gateway, settings, pin)
    if http:
        key = None if key_env is None else read_secret(key_env)
        served = _serve_http(
            opening,
            host="127.0.0.1" if host is None else host,
            port=DEFAULT_PORT if port is None else port,
            key=key,
            allowed=allow_host or (),
        )
    elif (host, port, key_env, allow_host) == (None, None, None, None):
        # A gateway's servers take longer to start than the SDK takes to be imported.
        greeting = (
            Greeting(standard_input(), b"", None)
            if gateway
            else greet(memory=settings.memory.mcp_tools)
        )
        served = _serve_stdio(greeting, opening)
    else:
        raise ConfigurationError("--host, --port, --key-env and --allow-host go with --http")
    _run(served)


def _run(served: Coroutine[Any, Any, None]) -> None:
    """Run the server. Ctrl-C waits until the loop can take it: a loop that is interrupted while it
    is made complains about itself on the console."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        asyncio.run(served)
        return
    interrupt = {signal.SIGINT}

    async def begin() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupt)
        await served

    signal.pthread_sigmask(signal.SIG_BLOCK, interrupt)
    try:
        asyncio.run(begin())
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupt)
        served.close()  # nothing, unless the loop never came to it


@dataclass(frozen=True, slots=True)
class Served:
    """The parts behind a running server."""

    router: SemanticRouter
    memory: Memory
    server: SkillServer


@asynccontextmanager
async def serving(
    folders: Sequence[Path] | None, settings: Settings, *, more: Sequence[SkillSource] = ()
) -> AsyncIterator[Served]:
    """A server that clients can connect to at once; the skills are read meanwhile. Its clients are
    told of every change on the disk while the block runs. ``more`` are sources beside the folders.

    Raises:
        RouterError: the skills cannot be read or indexed; the block is cancelled.
    """
    from router.mcp.server import SkillServer
    from router.memory.memory import Memory
    from router.router import SemanticRouter
    from router.skills.folders import FolderSource

    roots = (
        FolderSource(folders, max_skills=settings.max_skills)
        if folders
        else FolderSource.configured(settings)
    )
    router = SemanticRouter(settings, sources=[roots, *more])
    # The memory is not entered, because that would open it before anybody asks for it.
    async with aclosing(Memory(settings)) as memory, aclosing(router), _bus(router) as bus:
        shown = memory if settings.memory.mcp_tools else None
        server = SkillServer(router, memory=shown, bus=bus)
        done = asyncio.Event()
        async with beside(_open_and_watch(router, server, done)):
            yield Served(router, memory, server)
            done.set()


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, object]) -> AsyncIterator[asyncio.Task[object]]:
    """Something is done while the block runs, which waits for it at its end.

    Raises:
        RouterError: it failed, and the block was cancelled. What else came of that is not told.
    """
    try:
        async with asyncio.TaskGroup() as group:
            yield group.create_task(work)
    except BaseExceptionGroup as errors:
        ours: BaseException | None = errors.subgroup(RouterError)
        while isinstance(ours, BaseExceptionGroup):
            ours = ours.exceptions[0]
        raise ours or errors from None


@asynccontextmanager
async def _bus(router: SemanticRouter) -> AsyncIterator[SubscriptionBus | None]:
    """The bus that the processes of a cluster share; None where there is no cluster."""
    if router.cluster is None:
        yield None
        return
    from router.cluster.notices import SharedBus

    async with aclosing(SharedBus(router.cluster, router.settings.cluster)) as bus:
        bus.start()
        yield bus


async def _open_and_watch(router: SemanticRouter, server: SkillServer, done: asyncio.Event) -> None:
    await router.open()
    router.manager.observers.add(server)
    # Before what takes longer: clients of the first SDK fail when they are told something while
    # they close, and one that asks little may be done by then.
    await server.on_open()
    async with router.manager.watch():
        ready_to_serve()
        await done.wait()


@asynccontextmanager
async def _skills(folders: Sequence[Path] | None, settings: Settings) -> AsyncIterator[Servable]:
    async with serving(folders, settings) as served:
        yield served.server


@asynccontextmanager
async def _gateway(file: Path, settings: Settings, pin: Path | None) -> AsyncIterator[Servable]:
    """A gateway to the servers of a file, which are started meanwhile."""
    from router.mcp.gateway import GatewayServer
    from router.router import SemanticRouter
    from router.service.gateway import GRACE_SECONDS, ToolGateway
    from router.tools.pins import Pinned
    from router.tools.servers import McpServers

    servers = McpServers(file, grace_seconds=GRACE_SECONDS)
    source = servers if pin is None else Pinned(servers, pin)
    with closing(servers):
        async with (
            aclosing(SemanticRouter(settings, sources=[source])) as router,
            beside(router.open()) as opening,
        ):
            yield GatewayServer(ToolGateway(router, servers))
            opening.cancel()


async def _serve_stdio(greeting: Greeting, opening: Opening) -> None:
    from router.mcp.stdio import serve_stdio, stdio_streams

    try:
        async with opening() as server, stdio_streams(greeting) as streams:
            await serve_stdio(server, streams)
    except BaseExceptionGroup as errors:
        if errors.split(BrokenPipeError)[1] is not None:
            raise
        # The client has gone, and nobody is there to be told.


async def _serve_http(
    opening: Opening, *, host: str, port: int, key: str | None, allowed: Sequence[str]
) -> None:
    from router.cli.keys import who_may_call
    from router.http.caller import for_owners
    from router.http.limits import Places
    from router.mcp.http import DRAIN_SECONDS, PATH, mcp_app
    from router.web.running import address_of, listen, run

    names, callers = who_may_call(host, allowed=allowed, secret=key)
    places = Places()
    with listen(host, port) as listening:
        url = address_of(listening) + PATH
        async with opening() as server:

            def stop() -> None:
                places.draining = True
                server.close()

            await run(
                for_owners(mcp_app(server).wrapped, names=names, callers=callers, places=places),
                listening,
                drain_seconds=DRAIN_SECONDS,
                started=lambda: typer.echo(f"serving MCP at {url}", err=True),
                stopping=stop,
            )
