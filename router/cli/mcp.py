"""``router mcp``: serve the router to agents over the Model Context Protocol."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from router.cli.options import NoLLM, SkillFolders, open_router, read_settings
from router.cli.process import ready_to_serve
from router.errors import ConfigurationError

if TYPE_CHECKING:
    from router.mcp.server import SkillServer
    from router.router import SemanticRouter
    from router.settings import Settings

DEFAULT_PORT: Final = 8642


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
    token_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Variable that holds the bearer token clients must show."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Further host name that clients may use, such as a proxy's; may be repeated.",
        ),
    ] = None,
) -> None:
    """Serve routing, skills and memory over MCP: on standard input and output, or over HTTP."""
    if find_spec("mcp") is None:
        raise ConfigurationError("the MCP server is an extra: pip install 'cascade-router[mcp]'")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # at INFO it tells of every event
    settings = read_settings(no_llm=no_llm)
    if http:
        token = None if token_env is None else _token(token_env)
        served = _serve_http(
            folders,
            settings,
            host="127.0.0.1" if host is None else host,
            port=DEFAULT_PORT if port is None else port,
            token=token,
            allowed=allow_host or (),
        )
    elif (host, port, token_env, allow_host) == (None, None, None, None):
        served = _serve_stdio(folders, settings)
    else:
        raise ConfigurationError("--host, --port, --token-env and --allow-host go with --http")
    asyncio.run(served)


def _token(variable: str) -> str:
    """The token in a variable; there is no option for the token itself, which others could see."""
    token = os.environ.get(variable, "").strip()
    if not token:
        raise ConfigurationError(f"the variable {variable} is not set, or empty")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(f"the token in {variable} cannot be sent in a header")
    return token


@asynccontextmanager
async def _watching(opened: SemanticRouter, settings: Settings) -> AsyncIterator[SkillServer]:
    """A server whose clients are told of every change on the disk while the block runs."""
    from router.mcp.server import SkillServer
    from router.memory.memory import Memory

    # Not entered, because that would open it before anybody asks for it.
    async with aclosing(Memory(settings)) as memory:
        server = SkillServer(opened, memory=memory)
        opened.manager.observers.add(server)
        async with opened.manager.watch():
            ready_to_serve()
            yield server


async def _serve_stdio(folders: Sequence[Path] | None, settings: Settings) -> None:
    from router.mcp.stdio import serve_stdio, stdio_streams

    async with AsyncExitStack() as stack:
        with redirect_stdout(sys.stderr):  # the client reads what a library might print
            opened = await stack.enter_async_context(open_router(folders, settings))
        server = await stack.enter_async_context(_watching(opened, settings))
        await serve_stdio(server, await stack.enter_async_context(stdio_streams()))


async def _serve_http(
    folders: Sequence[Path] | None,
    settings: Settings,
    *,
    host: str,
    port: int,
    token: str | None,
    allowed: Sequence[str],
) -> None:
    from router.mcp.http import serve_http, served_names

    names = served_names(host, allowed=allowed, token=token)
    async with open_router(folders, settings) as opened, _watching(opened, settings) as server:
        await serve_http(
            server,
            host=host,
            port=port,
            names=names,
            token=token,
            announce=lambda url: typer.echo(f"serving MCP at {url}", err=True),
        )
