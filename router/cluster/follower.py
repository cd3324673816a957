"""Follows one stream of the cluster, record by record.

Each record names the one before it. Where that is not the last one read, records are missing: the
stream was trimmed while this process was away, or flushed. Then the follower says so and reads what
the stream still holds from its beginning.

It has a connection of its own, because it waits on it. It never opens the breaker: a lost server is
noticed by those who ask something.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from router.cluster.link import connect
from router.flight import Background

if TYPE_CHECKING:
    from router.settings import ClusterSettings

_log: Final = logging.getLogger(__name__)

BLOCK_SECONDS: Final = 1.0
"""How long one read waits for the next record."""
BATCH: Final = 500
"""Records of one read."""
RETRY_SECONDS: Final = 0.25
"""After a failed read."""

Record = Mapping[str, str]


class Follower:
    """Reads one stream until it is closed. Belongs to one event loop.

    Attributes:
        position: id of the last record that was taken in; empty before the first.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        stream: str,
        *,
        take: Callable[[list[Record]], Any],
        missed: Callable[[], Any],
        position: str = "",
    ) -> None:
        """Nothing is read yet.

        Args:
            settings: where the server is.
            stream: its name.
            take: takes in records, oldest first; waited for where it is asynchronous. A record may
                come twice.
            missed: told that records are missing; what the stream still holds comes next.
            position: where an earlier follower stopped; empty to begin with what there is.
        """
        self._stream = stream
        self._take = take
        self._missed = missed
        self.position = position
        self._redis = connect(settings, socket_timeout=BLOCK_SECONDS + settings.deadline_seconds)
        self._background = Background(_log)
        self._caught_up = asyncio.Event()

    def start(self) -> None:
        """Begin to follow."""
        self._background.run(self._follow())

    async def caught_up(self) -> None:
        """Wait until everything has been read that there is."""
        self._caught_up.clear()
        await self._caught_up.wait()

    async def aclose(self) -> None:
        """Stop. Closing twice is fine."""
        await self._background.aclose()
        await self._redis.aclose()

    async def _follow(self) -> None:
        from redis.exceptions import RedisError

        while True:
            try:
                await self._read()
            except (RedisError, OSError, TimeoutError) as error:
                _log.debug("the stream %s is not read: %s", self._stream, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _read(self) -> None:
        answer: Any = await self._redis.xread(
            {self._stream: self.position or "0"}, count=BATCH, block=int(BLOCK_SECONDS * 1000)
        )
        if not answer:
            await self._compare()
            return
        (_, found) = answer[0]
        records = [(name.decode(), _plain(fields)) for name, fields in found]
        if self.position and records[0][1].get("before") != self.position:
            await self._begin_anew()
            return
        await _done(self._take([fields for _, fields in records]))
        self.position = records[-1][0]
        if len(records) < BATCH:
            self._caught_up.set()

    async def _compare(self) -> None:
        """A flushed stream whose ids begin lower, because the clock stepped back, would look
        quiet for ever."""
        last: Any = await self._redis.xrevrange(self._stream, count=1)
        newest = last[0][0].decode() if last else ""
        if self.position and _order(newest) < _order(self.position):
            await self._begin_anew()
        self._caught_up.set()

    async def _begin_anew(self) -> None:
        _log.warning("records of %s are missing: beginning anew", self._stream)
        self.position = ""
        await _done(self._missed())


async def _done(result: Any) -> None:
    if asyncio.iscoroutine(result):
        await result


def _plain(fields: Mapping[bytes, bytes]) -> Record:
    return {
        name.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for name, value in fields.items()
    }


def _order(name: str) -> tuple[int, int]:
    """A record's id as numbers, which grow."""
    time, _, number = name.partition("-")
    return (int(time), int(number)) if number else (0, 0)
