"""What must reach the others and has not yet: kept in a file until the server has it.

A dropped answer must not be given again, and a label must not be lost, because the server could
not be reached when a person spoke. So both are written down first, and sent until they are
acknowledged, after a crash of this process too.
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
    """Sends the letters of one kind until the server has them. Belongs to one event loop. Sending a
    letter twice does no harm, so several of them, and processes, may share the file.

    Attributes:
        caught_up: whether all that lay in the file when it was opened has been sent, by whomever.

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
        most: int,
    ) -> None:
        """Nothing is opened yet.

        Args:
            kind: what the letters are filed under.
            send: gives the server letters, oldest first; raises ``NoRedis`` where it cannot. One
                for which it raises anything else waits for the next process, and holds no other up.
            read: what a letter says; raises ``ValueError`` of one that cannot be read, such as one
                of a later version. That one is dropped.
            most: letters that are sent at once.
        """
        self._kind = kind
        self._send = send
        self._read = read
        self._most = most
        self._file: SharedConnection | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.caught_up = False
        self._failed = 0  # the last letter that could not be sent; those before had their turn
        self._turn = asyncio.Lock()
        self._wanted = asyncio.Event()
        self._background = BackgroundTasks(_log)

    async def open(self, path: Path) -> list[str]:
        """Open or create the file, and begin to send what lies there; gives those letters. Opening
        it again does no harm."""

        def read() -> list[str]:
            if self._file is None:  # kept by the thread itself: the caller may be cancelled
                self._file = SharedConnection(
                    path, _SCHEMA, durable=True, set_aside=lambda what: _log.error("%s", what)
                )
            return [letter for _, letter in self._waiting(self._file, most=-1)]

        letters = await in_thread(read)
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._wanted.set()
            self._background.run(self._keep_sending())
        return letters

    async def put(self, letters: Iterable[str]) -> None:
        """Write letters down, durably before this returns, and send them as soon as that can be."""
        await in_thread(lambda: self.put_now(letters))

    def put_now(self, letters: Iterable[str]) -> None:
        """The same for any thread; it waits for the disk."""
        if self._file is None or self._loop is None:
            raise RuntimeError("the outbox is not open")
        with self._file.transaction() as db:
            db.executemany(
                "INSERT INTO letters (kind, letter) VALUES (?, ?)",
                [(self._kind, letter) for letter in letters],
            )
        self._loop.call_soon_threadsafe(self._wanted.set)

    async def deliver(self) -> None:
        """Send all that is to be sent."""
        file, most = self._file, self._most
        while file is not None:
            async with self._turn:
                found = await in_thread(partial(self._waiting, file, most=most))
                if not found:
                    self.caught_up |= not self._failed
                    return
                said = [one for _, letter in found for one in self._said(letter)]
                try:
                    if said:
                        await self._send(said)
                except (NoRedis, StoreError):
                    raise
                except Exception:  # noqa: BLE001 - whatever it is, it is no reason to lose a letter
                    if len(found) > 1:  # one after the other, to find out which it is
                        most = 1
                        continue
                    _log.exception("a letter about %s is not sent by this process", self._kind)
                    self._failed = found[0][0]
                    most = self._most
                    continue
                await in_thread(partial(_drop, file, [(number,) for number, _ in found]))

    def _said(self, letter: str) -> list[T]:
        """What a letter says; nothing where it cannot be read."""
        try:
            return [self._read(letter)]
        except ValueError as error:
            fault = first_fault(error) if isinstance(error, ValidationError) else error
            _log.error("a letter about %s is left out: %s", self._kind, fault)
            return []

    def _waiting(self, file: SharedConnection, *, most: int) -> list[tuple[int, str]]:
        """Letters that are to be sent, oldest first, with their numbers; -1 means all."""
        with file.turn() as db:
            return db.execute(
                "SELECT number, letter FROM letters WHERE kind = ?"
                " AND number > ? ORDER BY number LIMIT ?",
                (self._kind, self._failed, most),
            ).fetchall()

    async def _keep_sending(self) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            try:
                await self.deliver()
            except (NoRedis, StoreError) as error:
                _log.debug("not sent yet: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
                self._wanted.set()

    async def aclose(self) -> None:
        """Stop sending. What is left is sent by the next process that opens the file. Closing twice
        is fine."""
        await self._background.aclose()
        if self._file is not None:
            await in_thread(self._file.close)


def _drop(file: SharedConnection, numbers: Sequence[tuple[int]]) -> None:
    """The server has these letters; where that cannot be noted they are sent again."""
    with file.transaction() as db:
        db.executemany("DELETE FROM letters WHERE number = ?", numbers)
