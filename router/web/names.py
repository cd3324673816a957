"""Under which host names a server may be addressed.

A web page can make its visitor's browser send requests to this machine, under a host name that its
author controls (DNS rebinding). So the ``Host`` and ``Origin`` headers must name a host that the
server is known by. Names are compared whole and without case; any port is fine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from router.errors import ConfigurationError
from router.web.loopback import is_loopback
from router.web.problems import problem

_LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - refused unless asked for and guarded
_HOST: Final = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[^\s:/@\[\]]{1,255})(?::\d{1,5})?")
_ORIGIN: Final = re.compile(r"https?://(.{1,300})", re.IGNORECASE)


def served_names(host: str, *, allowed: Sequence[str], guarded: bool) -> tuple[str, ...]:
    """The host names that requests may be addressed to, without ports.

    Args:
        host: the address that the server listens on.
        allowed: further names, such as a proxy's.
        guarded: whether clients must show a key or a token.

    Raises:
        ConfigurationError: other machines can reach the host and it is not guarded, or nobody can
            know by which name they do.
    """
    if is_loopback(host):
        return (*_LOOPBACK_NAMES, *allowed)
    if not guarded:
        raise ConfigurationError(
            f"other machines can reach {host}: make keys for those who may use it (router keys "
            "new NAME, or --key-env), or listen on 127.0.0.1"
        )
    if host in _ANY_ADDRESS:
        if not allowed:
            raise ConfigurationError(
                f"{host} is no name that clients use: name those that they do (--allow-host)"
            )
        return tuple(allowed)
    return (f"[{host}]" if ":" in host else host, *allowed)


class NamesChecked:
    """Lets requests through whose ``Host`` and ``Origin`` name this server. A slash at the end of
    a path says nothing: Starlette would send the client to an address without slash, but also
    without the proxy's TLS and the prefix that the proxy took away."""

    def __init__(self, app: ASGIApp, names: Sequence[str]) -> None:
        """``names`` as ``served_names`` gives them."""
        self._app = app
        self._names = frozenset(name.lower() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            refusal = None
            if not self._is_ours(headers.get("host", "")):
                refusal = problem(
                    421,
                    "the request is for another server",
                    "the Host header holds none of the server's names; --allow-host adds one",
                )
            elif (origin := headers.get("origin")) and not self._is_our_origin(origin):
                refusal = problem(
                    403, "the request is from another site", "the Origin header names another one"
                )
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            # In place: whoever counts requests finds in the same scope which endpoint answered.
            scope["path"] = scope["path"].rstrip("/") or "/"
        await self._app(scope, receive, send)

    def _is_ours(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        return found is not None and found[1].lower() in self._names

    def _is_our_origin(self, origin: str) -> bool:
        found = _ORIGIN.fullmatch(origin)
        return found is not None and self._is_ours(found[1])


def bearer_token(headers: Headers) -> str | None:
    """The token of an ``Authorization: Bearer`` header; the scheme's case does not matter."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
