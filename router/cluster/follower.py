"""Follows one Redis stream of the cluster, record by record.

Each record names the one before it. Where that is not the last one read, records are missing: the
stream was trimmed while this process was away, or flushed. The follower then calls ``missed`` and
reads the stream again from its beginning. It does the same where the newest record is older than
the last one read: the stream was flushed, and the server's clock has stepped back. Records that
cause an error in this program count as missing, too, and are skipped.

It has a connection of its own, because reading blocks it. It never opens the circuit breaker; other
operations notice that the server is lost.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from router.cluster.link import connect, troubles
from router.concurrency.tasks import BackgroundTasks

if TYPE_CHECKING:
    from router.settings.settings import ClusterSettings

_log: Final = logging.getLogger(__name__)

BLOCK_SECONDS: Final = 1.0
"""How long one read waits for the next record, where the caller does not say."""
BATCH: Final = 500
"""The largest number of records of one read."""
RETRY_SECONDS: Final = 0.25
"""The pause after a read that failed."""


Record = Mapping[str, str]


now: Final[Callable[[], float]] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)
"""Seconds on a clock that only grows and, on Linux, counts the time that the machine sleeps."""


class Follower:
    """Reads one stream until it is closed. Belongs to one event loop.

    Attributes:
        position: the id of the last record that was read; empty before the first.
        read_at: a time of ``now``: all records that the stream had then have been read.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        stream: str,
        *,
        take: Callable[[list[Record]], Awaitable[None]],
        missed: Callable[[], Awaitable[None]],
        block_seconds: float = BLOCK_SECONDS,
    ) -> None:
        """Nothing is read yet.

        Args:
            settings: where the server is.
            stream: its name.
            take: called with new records, oldest first. A record may come twice.
            missed: called when records are missing. All records of the stream then come again.
            block_seconds: how long one read waits for the next record.
        """
        self._stream = stream
        self._take = take
        self._missed = missed
        self._block = int(block_seconds * 1000)
        self.position = ""
        self.read_at = -math.inf
        self._redis = connect(settings, socket_timeout=block_seconds + settings.deadline_seconds)
        self._background = BackgroundTasks(_log)

    def start(self) -> None:
        self._background.run(self._follow())

    async def aclose(self) -> None:
        """Stop. Closing twice is fine."""
        await self._background.aclose()
        await self._redis.aclose()

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
            except troubles() as error:
                _log.debug("the stream %s is not read: %s", self._stream, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _read(self) -> None:
        began = now()
        # After being busy or stopped for long, do not wait for a record, to catch up soon.
        block = None if began - self.read_at > 2 * self._block / 1000 else self._block
        async with self._redis.pipeline(transaction=False) as both:  # one round trip
            both.xread({self._stream: self.position or "0"}, count=BATCH, block=block)
            both.xrevrange(self._stream, count=1)
            answer, last = await both.execute()
        found = answer[0][1] if answer else ()
        records = [(record_id.decode(), _decoded(fields)) for record_id, fields in found]
        newest = last[0][0].decode() if last else ""
        if self.position and (
            order_of(newest) < order_of(self.position)
            or (records and records[0][1].get("before") != self.position)
        ):
            _log.warning("records of %s are missing: beginning anew", self._stream)
            self.position, self.read_at = "", -math.inf
            await self._missed()
            return
        if records:
            try:
                await self._take([fields for _, fields in records])
            except troubles():
                raise  # they are read again
            except Exception:  # noqa: BLE001 - one bad record must not end the reading
                _log.exception("records of %s are left out, as missing ones are", self._stream)
                await self._missed()
            self.position = records[-1][0]
        if self.position == newest:
            self.read_at = began


def _decoded(fields: Mapping[bytes, bytes]) -> Record:
    return {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, value in fields.items()
    }


def order_of(record_id: str) -> tuple[int, int]:
    """The id of a record as two numbers, by which records are ordered; zeros for an empty id."""
    milliseconds, _, number = record_id.partition("-")
    return (int(milliseconds), int(number)) if number else (0, 0)
