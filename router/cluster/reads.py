"""Reads of answers that come at the same time go to the server together.

A read that finds nothing under way is a plain GET. While one is under way the next ones gather, and
go as one MGET when it ends. So a lone request pays nothing for it, and under load a round trip
serves many. A gathered read begins after it was asked for, so it is as fresh as a GET.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import Final

from router.cluster.link import Link, NoRedis
from router.concurrency.tasks import BackgroundTasks

_log: Final = logging.getLogger(__name__)

MOST: Final = 100
"""Names in one MGET."""


class Reads:
    """Reads values by name. Belongs to one event loop."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._is_reading = False
        self._wanted: dict[str, asyncio.Future[bytes | NoRedis | None]] = {}
        self._background = BackgroundTasks(_log)

    async def get(self, name: str) -> bytes | None:
        """The value; None where there is none.

        Raises:
            NoRedis: the server cannot be used.
        """
        if self._is_reading:
            future = self._wanted.get(name)
            if future is None:
                future = self._wanted[name] = asyncio.get_running_loop().create_future()
            found = await asyncio.shield(future)  # others may wait for it
            if isinstance(found, NoRedis):
                raise found
            return found
        self._is_reading = True
        try:
            value: bytes | None = await self._link.run(lambda redis: redis.get(name))
            return value
        finally:
            if self._wanted:
                self._background.run(self._read_wanted())
            else:
                self._is_reading = False

    async def _read_wanted(self) -> None:
        while self._wanted:
            names = list(islice(self._wanted, MOST))
            futures = [self._wanted.pop(name) for name in names]
            found: list[bytes | NoRedis | None] = [NoRedis("closed")] * len(names)
            try:
                found = await self._link.run(lambda redis: redis.mget(names))  # noqa: B023 - awaited
            except Exception as error:  # noqa: BLE001 - those who wait would wait for ever
                fault = error if isinstance(error, NoRedis) else NoRedis(f"not read: {error}")
                found = [fault] * len(names)
            finally:
                for future, value in zip(futures, found, strict=True):
                    future.set_result(value)
        self._is_reading = False

    async def aclose(self) -> None:
        """End what is under way. Closing twice is fine."""
        await self._background.aclose()
