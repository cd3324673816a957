"""An outbox: messages that are kept in a file until the server has them.

When a person corrects an answer while the server cannot be reached, the label must not be lost, and
the dropped answer must not be given again. So both are written to a file first, and sent until they
are acknowledged, also after a crash of this process. The file and the log call a message a letter.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar

from pydantic import ValidationError

from router.cluster.link import RETRY_SECONDS, NoRedis
from router.concurrency.tasks import BackgroundTasks, in_thread
from router.errors import StoreError
from router.plain_json import first_fault
from router.storage.database import Schema, SharedConnection

_log: Final = logging.getLogger(__name__)

_SCHEMA: Final = Schema(
    (
        """
CREATE TABLE letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    letter TEXT NOT NULL
);
""",
    )
)


T = TypeVar("T")


class Outbox(Generic[T]):
    """Sends the messages of one kind until the server has them. Belongs to one event loop. To send
    a message twice does no harm, so several outboxes and processes may share the file.

    Attributes:
        caught_up: whether all messages that were in the file when it was opened have been sent, by
            this process or another one.

    Raises:
        StoreError: the file cannot be opened, read or written.
        NoRedis: the server cannot be used; only ``deliver``.
    """

    def __init__(
        self,
        kind: str,
        send: Callable[[Sequence[T]], Awaitable[None]],
        *,
        read: Callable[[str], T],
        max_batch: int,
    ) -> None:
        """Nothing is opened yet.

        Args:
            kind: the kind of the messages, which tells them from others in the file.
            send: sends messages to the server, oldest first; raises ``NoRedis`` where it cannot. A
                message for which it raises anything else is left for the next process, and the ones
                after it are sent.
            read: parses a message; raises ``ValueError`` for one that cannot be parsed, such as one
                of a later version, which is dropped.
            max_batch: how many messages are sent at once.
        """
        self._kind = kind
        self._send = send
        self._read = read
        self._max_batch = max_batch
        self._file: SharedConnection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.caught_up = False
        self._failed = 0  # the number of the last message that could not be sent
        self._turn = asyncio.Lock()
        self._has_messages = asyncio.Event()
        self._background = BackgroundTasks(_log)

    async def open(self, path: Path) -> list[str]:
        """Open or create the file, begin to send its messages, and return them. Opening it again
        does no harm."""

        def read() -> list[str]:
            if self._file is None:  # the thread stores it, because the caller may be cancelled
                self._file = SharedConnection(
                    path, _SCHEMA, durable=True, set_aside=lambda what: _log.error("%s", what)
                )
            return [message for _, message in self._unsent(self._file, max_batch=-1)]

        messages = await in_thread(read)
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._has_messages.set()
            self._background.run(self._keep_sending())
        return messages

    async def put(self, messages: Iterable[str]) -> None:
        """Store messages, which are on the disk when this returns, and send them as soon as
        possible."""
        await in_thread(lambda: self.put_now(messages))

    def put_now(self, messages: Iterable[str]) -> None:
        """The same as ``put``, from any thread; it blocks on the disk."""
        if self._file is None or self._loop is None:
            raise RuntimeError("the outbox is not open")
        with self._file.transaction() as db:
            db.executemany(
                "INSERT INTO letters (kind, letter) VALUES (?, ?)",
                [(self._kind, message) for message in messages],
            )
        self._loop.call_soon_threadsafe(self._has_messages.set)

    async def deliver(self) -> None:
        """Send all messages."""
        file, max_batch = self._file, self._max_batch
        while file is not None:
            async with self._turn:
                found = await in_thread(partial(self._unsent, file, max_batch=max_batch))
                if not found:
                    self.caught_up |= not self._failed
                    return
                parsed = [one for _, message in found for one in self._parsed(message)]
                try:
                    if parsed:
                        await self._send(parsed)
                except (NoRedis, StoreError):
                    raise
                except Exception:  # noqa: BLE001 - no error is a reason to lose a message
                    if len(found) > 1:  # send one by one, to find the message that fails
                        max_batch = 1
                        continue
                    _log.exception("a letter about %s is not sent by this process", self._kind)
                    self._failed = found[0][0]
                    max_batch = self._max_batch
                    continue
                await in_thread(partial(_drop, file, [(number,) for number, _ in found]))

    def _parsed(self, message: str) -> list[T]:
        """The parsed message; empty where it cannot be parsed."""
        try:
            return [self._read(message)]
        except ValueError as error:
            fault = first_fault(error) if isinstance(error, ValidationError) else error
            _log.error("a letter about %s is left out: %s", self._kind, fault)
            return []

    def _unsent(self, file: SharedConnection, *, max_batch: int) -> list[tuple[int, str]]:
        """The messages to send, oldest first, with their numbers; -1 means all."""
        with file.turn() as db:
            return db.execute(
                "SELECT number, letter FROM letters WHERE kind = ?"
                " AND number > ? ORDER BY number LIMIT ?",
                (self._kind, self._failed, max_batch),
            ).fetchall()

    async def _keep_sending(self) -> None:
        while True:
            await self._has_messages.wait()
            self._has_messages.clear()
            try:
                await self.deliver()
            except (NoRedis, StoreError) as error:
                _log.debug("not sent yet: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
                self._has_messages.set()

    async def aclose(self) -> None:
        """Stop sending. The next process that opens the file sends the rest. Closing twice is
        fine."""
        await self._background.aclose()
        if self._file is not None:
            await in_thread(self._file.close)


def _drop(file: SharedConnection, numbers: Sequence[tuple[int]]) -> None:
    """Delete messages that the server has. If this fails, they are sent again."""
    with file.transaction() as db:
        db.executemany("DELETE FROM letters WHERE number = ?", numbers)
