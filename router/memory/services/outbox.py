"""The outbox: changes that the memory service must still be told of, and a record of what it has.

It is an SQLite database. Only intentions are stored, never contents: which file to send, or to
delete in the service. The content is read from the file when it is sent, so what arrives is never
older than the file. Each name has one entry; a later intention replaces an earlier one and goes to
the end of the queue.

- An entry is written with ``synchronous = FULL`` before anything is sent, so it survives kill -9
  and a power cut. It is removed when the service has confirmed every part.
- An entry that is taken is reserved for a minute. If the process dies, the entry is due again; the
  parts that were confirmed are stored with it, and are not sent twice.
- The table ``delivered`` records which files the service has, in which state and under which ids.
  So changed and deleted files are found: a name in it without a file must be deleted in the
  service.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from router.errors import StoreError
from router.memory.stores.database import placeholders
from router.storage.database import Schema, SharedConnection

MAX_ENTRIES: Final = 20_000
HOLD_SECONDS: Final = 60.0
FIRST_DELAY_SECONDS: Final = 2.0
LONGEST_DELAY_SECONDS: Final = 3600.0
_SCHEMA: Final = Schema(
    (
        """
CREATE TABLE queue (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    store TEXT NOT NULL,
    name TEXT NOT NULL,
    intent TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL,
    fault TEXT NOT NULL DEFAULT '',
    sent_digest TEXT NOT NULL DEFAULT '',
    sent TEXT NOT NULL DEFAULT '[]',
    UNIQUE (store, name)
);
CREATE TABLE delivered (
    store TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    ids TEXT NOT NULL,
    PRIMARY KEY (store, name)
) WITHOUT ROWID;
""",
    )
)


class Intent(StrEnum):
    """What is to be done in the service."""

    SEND = "send"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class QueuedFile:
    """One intention.

    Attributes:
        id: its number; later ones are larger.
        attempts: how often it, or an entry that it replaced, was taken; this time included.
        sent_digest: the state of the file that ``sent`` are parts of; empty if nothing was sent.
        sent: ids of the parts that the service has confirmed, in order.
    """

    id: int
    store: str
    name: str
    intent: Intent
    attempts: int
    sent_digest: str
    sent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Delivered:
    """What the service holds of one file: the state it was sent in, and the ids of its parts."""

    digest: str
    ids: tuple[int, ...]


class ServiceOutbox:
    """The queue and the record of one service. Thread-safe, and several processes may share it.

    Every method raises StoreError if the file cannot be used. A damaged file is never replaced by
    an empty one, because it records what was deleted. ``clock`` gives seconds since the epoch,
    which processes share.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        self._file = SharedConnection(path, _SCHEMA, durable=True, may_be_read_only=True)
        self._clock = clock
        self.close = self._file.close

    def add(self, intents: Iterable[tuple[str, str, Intent]]) -> None:
        """Queue intentions, each for a store and a name; durable on return, all or none. StoreError
        is also raised if over 20,000 names would wait."""
        with self._file.transaction() as db:
            for store, name, intent in intents:
                old = db.execute(
                    "SELECT attempts, sent_digest, sent FROM queue WHERE store = ? AND name = ?",
                    (store, name),
                ).fetchone()
                db.execute("DELETE FROM queue WHERE store = ? AND name = ?", (store, name))
                db.execute(
                    "INSERT INTO queue (store, name, intent, due, attempts, sent_digest, sent)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (store, name, intent.value, self._clock(), *(old or (0, "", "[]"))),
                )
            if db.execute("SELECT count(*) FROM queue").fetchone()[0] > MAX_ENTRIES:
                raise StoreError(
                    self._file.path, f"the outbox is full: {MAX_ENTRIES:,} memories wait"
                )

    def take(self, stores: Collection[str]) -> QueuedFile | None:
        """The oldest entry that is due, which is then reserved for a minute; None if there is
        none."""
        with self._file.transaction() as db:
            now = self._clock()
            row = db.execute(
                "SELECT id, store, name, intent, attempts + 1, sent_digest, sent FROM queue"  # noqa: S608 - only placeholders
                f" WHERE store IN ({placeholders(len(stores))}) AND due <= ? ORDER BY id LIMIT 1",
                (*stores, now),
            ).fetchone()
            if row is None:
                return None
            db.execute(
                "UPDATE queue SET attempts = attempts + 1, due = ?, fault = '' WHERE id = ?",
                (now + HOLD_SECONDS, row[0]),
            )
        number, store, name, intent, attempts, digest, sent = row
        return QueuedFile(number, store, name, Intent(intent), attempts, digest, _ids(sent))

    def note_sent(self, entry: QueuedFile, digest: str, ids: Sequence[int]) -> None:
        """Store the parts that the service has confirmed, and reserve the entry for another
        minute."""
        with self._file.transaction() as db:
            db.execute(
                "UPDATE queue SET sent_digest = ?, sent = ?, due = ? WHERE store = ? AND name = ?",
                (
                    digest,
                    json.dumps(list(ids)),
                    self._clock() + HOLD_SECONDS,
                    entry.store,
                    entry.name,
                ),
            )

    def settle(self, entry: QueuedFile, delivered: Delivered | None) -> None:
        """The entry is done: record what the service has now (None: nothing) and remove the entry,
        unless another one has replaced it meanwhile."""
        key = entry.store, entry.name
        with self._file.transaction() as db:
            db.execute("DELETE FROM queue WHERE id = ?", (entry.id,))
            db.execute(
                "UPDATE queue SET sent_digest = '', sent = '[]', due = ?"
                " WHERE store = ? AND name = ?",
                (self._clock(), *key),
            )
            db.execute("DELETE FROM delivered WHERE store = ? AND name = ?", key)
            if delivered is not None:
                row = (*key, delivered.digest, json.dumps(list(delivered.ids)))
                db.execute("INSERT INTO delivered VALUES (?, ?, ?, ?)", row)

    def postpone(self, entry: QueuedFile, fault: str) -> None:
        """The entry failed: it is due again after 2, 4, 8 ... seconds, at most an hour."""
        delay = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(entry.attempts - 1, 20))
        with self._file.transaction() as db:
            db.execute(
                "UPDATE queue SET due = ?, fault = ? WHERE id = ?",
                (self._clock() + delay, fault, entry.id),
            )

    def make_due(self, stores: Collection[str]) -> None:
        """Make every postponed entry due now; entries that are reserved stay so."""
        with self._file.transaction() as db:
            db.execute(
                f"UPDATE queue SET due = ? WHERE store IN ({placeholders(len(stores))})"  # noqa: S608 - only placeholders
                " AND fault != ''",
                (self._clock(), *stores),
            )

    def delivered(self, stores: Collection[str]) -> dict[tuple[str, str], Delivered]:
        """By store and name, what the service has."""
        rows = self._rows("SELECT store, name, digest, ids FROM delivered", stores)
        return {(store, name): Delivered(digest, _ids(ids)) for store, name, digest, ids in rows}

    def held(self, store: str, name: str) -> Delivered:
        """What the service has of one file; an empty digest means nothing."""
        with self._file.turn() as db:
            row = db.execute(
                "SELECT digest, ids FROM delivered WHERE store = ? AND name = ?", (store, name)
            ).fetchone()
        return Delivered("", ()) if row is None else Delivered(row[0], _ids(row[1]))

    def lose(self, stores: Collection[str]) -> None:
        """Delete the record of what the service has, because the service was wiped."""
        with self._file.transaction() as db:
            db.executemany("DELETE FROM delivered WHERE store = ?", [(store,) for store in stores])

    def queued(self, stores: Collection[str]) -> dict[tuple[str, str], Intent]:
        """By store and name, the intentions that wait."""
        rows = self._rows("SELECT store, name, intent FROM queue", stores)
        return {(store, name): Intent(intent) for store, name, intent in rows}

    def _rows(self, statement: str, stores: Collection[str]) -> list[tuple[Any, ...]]:
        among = f" WHERE store IN ({placeholders(len(stores))})"
        with self._file.turn() as db:
            return db.execute(statement + among, tuple(stores)).fetchall()


def _ids(text: str) -> tuple[int, ...]:
    return tuple(json.loads(text))
