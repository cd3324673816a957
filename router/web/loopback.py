"""Which addresses only this machine can reach, and what proxies the environment names for others.
Memory asks too, so no extra is needed here."""

from __future__ import annotations

import ipaddress
import os
import sys
from typing import Any, Final
from urllib.parse import urlsplit

_PROXIES: Final = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_asked_here(host: str) -> bool:
    """Whether a client that asks a host asks this machine itself. Besides what is loopback this is
    the address at which a server listens to be found at all of its machine's addresses; many use it
    as an address to ask, too."""
    return is_loopback(host) or host in ("0.0.0.0", "::")  # noqa: S104 - nothing listens here


def direct(client: type[Any], address: str | None) -> dict[str, Any]:
    """Options with which a client asks this machine itself, and not through a proxy that the
    environment names. Certificates that the environment names still count. There are none for an
    address elsewhere.

    Args:
        client: a class of httpx, or of its successor httpx2, or one that is derived from theirs.
        address: what it asks, with or without a scheme; one without a host is this machine's. None
            is the address that an SDK has by itself, elsewhere.

    Raises:
        ValueError: the address is malformed.
        OSError: the certificates cannot be read.
    """
    if address is None:
        return {}
    parts = urlsplit(address if "//" in address else f"//{address}")
    if parts.hostname is not None and not is_asked_here(parts.hostname):
        return {}
    # Without ``trust_env`` not even the names of proxies are read: a client cannot be made where
    # one of them is of a kind that it lacks a library for, such as SOCKS.
    options: dict[str, Any] = {"trust_env": False}
    if parts.scheme == "https":
        names = (kind.__module__.partition(".")[0] for kind in client.__mro__)
        library = next(name for name in names if name.startswith("httpx"))
        options["verify"] = sys.modules[library].create_ssl_context()
    return options


def why_no_client(error: Exception) -> str:
    """Why no client can be made, in words that say what to do where it is a SOCKS proxy that the
    environment names: the HTTP library does not say which variable it read."""
    if isinstance(error, ImportError) and "socks" in str(error).lower():
        for name, value in sorted(os.environ.items()):
            if name.upper() in _PROXIES and value.lower().startswith("socks"):
                return (
                    f"{name} names a SOCKS proxy, and the library for it is missing; "
                    "pip install socksio, or unset the variable"
                )
    return str(error)
