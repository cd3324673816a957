"""What the clients of the official SDKs have in common: one for each event loop, and the pause
that a server asks for.

An SDK takes most of a second to import, so that happens at the first call, in a thread.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from router.concurrency.tasks import in_thread


class _Client(Protocol):
    """A client of an SDK; not every SDK has types for it."""

    def close(self) -> Any:
        """Close the connections; to be awaited."""


ClientT = TypeVar("ClientT", bound=_Client)


class LoopClient(Generic[ClientT]):
    """The client of the running event loop; connections of another loop are of no use here."""

    def __init__(self, module: str, make: Callable[[], ClientT]) -> None:
        """Nothing is imported or made yet.

        Args:
            module: the SDK, which is imported before ``make`` is called.
            make: makes a client.
        """
        self._module = module
        self._make = make
        self._client: ClientT | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def get(self) -> ClientT:
        """The client. Raises what the import of the SDK or ``make`` raises."""
        loop = asyncio.get_running_loop()
        if self._client is None:
            await in_thread(partial(importlib.import_module, self._module), leaves=True)
        # Asked again, because a concurrent first call may have connected meanwhile.
        if self._client is None or self._loop is not loop:
            self._client, self._loop = self._make(), loop
        return self._client

    async def aclose(self) -> None:
        """Close the connections. The next ``get`` makes a new client."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.close()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from the two headers that servers use; a date counts from ``Date``."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is None and value is not None:
        try:
            wait = parsedate_to_datetime(value) - parsedate_to_datetime(headers["date"])
        except (KeyError, TypeError, ValueError):
            return None
        seconds = max(wait.total_seconds(), 0.0)
    return seconds


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
