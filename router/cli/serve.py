"""``router serve``: the service over HTTP, with MCP under ``/mcp``."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from router.cli.keys import key_file
from router.cli.mcp import read_token, serving
from router.cli.options import NoLLM, SkillFolders, read_settings
from router.errors import ConfigurationError

if TYPE_CHECKING:
    from router.settings import Settings

DEFAULT_PORT: Final = 8017


def serve(
    folders: SkillFolders = None,
    no_llm: NoLLM = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")
    ] = DEFAULT_PORT,
    key_env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Variable that holds a key with all rights, beside those of router keys.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Further host name that clients may use, such as a proxy's; may be repeated.",
        ),
    ] = None,
    drain_seconds: Annotated[
        float,
        typer.Option(min=1, help="Time for requests under way when the server is told to stop."),
    ] = 10,
) -> None:
    """Serve routing, skills and memory over HTTP, and MCP under /mcp.

    On this machine's own addresses no key is needed, unless there are keys. Any other address needs
    keys: make some with router keys new. /openapi.json describes the API.
    """
    missing = [name for name in ("mcp", "prometheus_client") if find_spec(name) is None]
    if missing:
        raise ConfigurationError("the server is an extra: pip install 'cascade-router[serve]'")
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # at INFO it tells of every event
    asyncio.run(
        _serve(
            folders,
            read_settings(no_llm=no_llm),
            host=host,
            port=port,
            secret=None if key_env is None else read_token(key_env),
            allowed=allow_host or (),
            drain_seconds=drain_seconds,
        )
    )


async def _serve(
    folders: Sequence[Path] | None,
    settings: Settings,
    *,
    host: str,
    port: int,
    secret: str | None,
    allowed: Sequence[str],
    drain_seconds: float,
) -> None:
    from opentelemetry import trace

    from router.http.api import Api, http_app
    from router.http.caller import Callers
    from router.mcp.http import mcp_app
    from router.tools.folder import ToolFolder
    from router.web.names import served_names
    from router.web.running import address_of, listen, run

    keys = key_file()
    has_keys = secret is not None or bool(keys.all())
    names = served_names(
        host,
        allowed=allowed,
        guarded=has_keys,
        guard="make keys for those who may use it (router keys new NAME, or --key-env)",
    )
    with listen(host, port) as listening:
        tools = ToolFolder(settings.evidence_directory / "tools")
        async with serving(folders, settings, more=[tools]) as served:
            callers = Callers(keys, secret=secret, required=has_keys)
            provider = trace.get_tracer_provider()  # such as opentelemetry-instrument sets up
            configured = not isinstance(provider, trace.ProxyTracerProvider)
            api = Api(served.router, served.memory, callers, spans=provider if configured else None)

            def stop() -> None:
                api.stop()
                served.server.close()

            await run(
                http_app(api, names=names, mcp=mcp_app(served.server)),
                listening,
                drain_seconds=drain_seconds,
                started=lambda: typer.echo(f"serving at {address_of(listening)}", err=True),
                stopping=stop,
            )
