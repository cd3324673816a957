"""Which addresses only this machine can reach. Memory asks too, so no extra is needed here."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit


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


def without_proxy(address: str | None) -> dict[str, None]:
    """``mounts`` for a client of httpx, with which it asks this machine itself, and not through the
    proxy of the environment. What else the environment says, such as certificates, still counts.

    Args:
        address: what the client asks, with or without a scheme. The usual names of this machine are
            always among the mounts, so None is fine.

    Raises:
        ValueError: the address is malformed.
    """
    host = urlsplit(address if "//" in address else f"//{address}").hostname if address else None
    hosts = {"localhost", "127.0.0.1", "::1"} | ({host} if host and is_asked_here(host) else set())
    return {f"all://[{one}]" if ":" in one else f"all://{one}": None for one in hosts}
