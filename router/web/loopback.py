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
    hosts = {"localhost", "127.0.0.1", "::1"} | ({host} if host and is_loopback(host) else set())
    return {f"all://[{one}]" if ":" in one else f"all://{one}": None for one in hosts}
