"""Batches reads of answers that come at the same time.

A read while no other is under way is a plain GET. Reads that come while one is under way wait, and
are sent as one MGET when it ends. So a single read has no delay, and under load one round trip
serves many. The MGET is sent after the reads were asked for, so its values are as fresh as a GET's.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import Final

from router.cluster.link import Link, NoRedis
from router.concurrency.tasks import BackgroundTasks

_log: Final = logging.getLogger(__name__)

MAX_BATCH: Final = 100
"""The largest number of names in one MGET."""


class Reads:
    """Reads values by name. Belongs to one event loop."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._is_reading = False
        self._waiting: dict[str, asyncio.Future[bytes | NoRedis | None]] = {}
        self._background = BackgroundTasks(_log)

    async def get(self, name: str) -> bytes | None:
        """The value; None where there is none.

        Raises:
            NoRedis: the server cannot be used.
        """
        if self._is_reading:
            future = self._waiting.get(name)
            if future is None:
                future = self._waiting[name] = asyncio.get_running_loop().create_future()
            found = await asyncio.shield(future)  # others may wait for it
            if isinstance(found, NoRedis):
                raise found
            return found
        self._is_reading = True
        try:
            value: bytes | None = await self._link.run(lambda redis: redis.get(name))
            return value
        finally:
            if self._waiting:
                self._background.run(self._read_waiting())
            else:
                self._is_reading = False

    async def _read_waiting(self) -> None:
        while self._waiting:
            names = list(islice(self._waiting, MAX_BATCH))
            futures = [self._waiting.pop(name) for name in names]
            found: list[bytes | NoRedis | None] = [NoRedis("closed")] * len(names)
            try:
                found = await self._link.run(lambda redis: redis.mget(names))  # noqa: B023 - awaited
            except Exception as error:  # noqa: BLE001 - the waiting reads would never end
                fault = error if isinstance(error, NoRedis) else NoRedis(f"not read: {error}")
                found = [fault] * len(names)
            finally:
                for future, value in zip(futures, found, strict=True):
                    future.set_result(value)
        self._is_reading = False

    async def aclose(self) -> None:
        """End what is under way. Closing twice is fine."""
        await self._background.aclose()
