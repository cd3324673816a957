"""MCP over streamable HTTP, for clients on this machine or, with a token, elsewhere.

A web page can make its visitor's browser send requests to this machine, under a host name that its
author controls (DNS rebinding). So the ``Host`` and ``Origin`` headers must name a host that this
server is known by. A host that other machines can reach is served with a bearer token only.
"""

from __future__ import annotations

import hmac
import ipaddress
import signal
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse

from router.errors import ConfigurationError
from router.mcp.server import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from router.mcp.server import SkillServer

PATH: Final = "/mcp"
MAX_SESSIONS: Final = 1_000
_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - refused unless asked for and guarded
_SHUTDOWN_SECONDS: Final = 2


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def served_names(host: str, *, allowed: Sequence[str], token: str | None) -> tuple[str, ...]:
    """The host names that requests may be addressed to, without ports.

    Raises:
        ConfigurationError: other machines can reach the host and there is no token, or nobody can
            know by which name they do.
    """
    if is_loopback(host):
        return (*_LOOPBACK_NAMES, *allowed)
    if token is None:
        raise ConfigurationError(
            f"other machines can reach {host}: name a variable that holds a token (--token-env), "
            "or listen on 127.0.0.1"
        )
    if host in _ANY_ADDRESS:
        if not allowed:
            raise ConfigurationError(
                f"{host} is no name that clients use: name those that they do (--allow-host)"
            )
        return tuple(allowed)
    return (f"[{host}]" if ":" in host else host, *allowed)


def http_app(server: SkillServer, *, names: Sequence[str], token: str | None) -> ASGIApp:
    """The ASGI application; ``names`` as ``served_names`` gives them."""
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
    app = server.protocol.streamable_http_app(
        streamable_http_path=PATH,
        max_request_body_size=MAX_MESSAGE_BYTES,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[spelling for name in names for spelling in (name, f"{name}:*")],
            allowed_origins=[spelling for name in origins for spelling in (name, f"{name}:*")],
        ),
    )
    return app if token is None else _TokenRequired(app, token)


async def serve_http(
    server: SkillServer,
    *,
    host: str,
    port: int,
    names: Sequence[str],
    token: str | None,
    announce: Callable[[str], None],
) -> None:
    """Serve until the process is told to stop. Call it in the main thread, which gets the signals.

    Args:
        server: the server.
        host: address to listen on.
        port: 0 takes a free one.
        names: as ``served_names`` gives them.
        token: what clients must show; None means nothing.
        announce: is called with the URL once clients can connect.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    import uvicorn

    class Running(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            shown = f"[{host}]" if ":" in host else host
            announce(f"http://{shown}:{listening.getsockname()[1]}{PATH}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            server.close()  # requests that wait for changes would not end by themselves
            await super().shutdown(sockets)

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}"
        ) from error
    config = uvicorn.Config(
        http_app(server, names=names, token=token),
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    running = Running(config)
    # uvicorn handles signals while it runs, and raises them again when it has stopped; SIGTERM
    # would then end the process before the router is closed.
    signal.signal(signal.SIGTERM, lambda *_: setattr(running, "should_exit", True))
    await running.serve(sockets=[listening])


class _TokenRequired:
    """Lets requests with the token through, before anything of them is read but the headers."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            shown = Headers(scope=scope).get("authorization", "").encode("latin-1")
            if not hmac.compare_digest(shown, self._expected):
                headers = {"WWW-Authenticate": "Bearer"}
                refusal = JSONResponse({"error": "a bearer token is required"}, 401, headers)
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
