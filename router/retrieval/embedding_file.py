"""The embedding cache of one machine: an SQLite file that all its processes share.

Every vector that is used here is in this file, so that a warm start reads one file and imports no
vector database. It also notes which shared cache holds a vector already, so that a process that
cannot reach the shared cache leaves the rest for another one.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.errors import StoreError
from router.retrieval.embedding_cache import REFRESH_DAYS, UNUSED_DAYS, Vectors, today
from router.storage.database import Schema, in_memory, opened

_log: Final = logging.getLogger(__name__)

MAX_BYTES: Final = 2**30
"""How many bytes of vectors and analyses are kept. Beyond it the oldest of both are deleted."""
KEPT_SHARE: Final = 0.9
"""The share of them that a deletion leaves, so that not every write deletes."""

_SCHEMA: Final = Schema(
    (
        """
CREATE TABLE encoders (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE);
CREATE TABLE vectors (
    encoder INTEGER NOT NULL,
    key TEXT NOT NULL,
    used INTEGER NOT NULL,      -- day of the last use, since the epoch; renewed now and then
    shared TEXT NOT NULL,       -- name of the shared cache that holds it too
    vector BLOB NOT NULL,       -- float32, little-endian
    PRIMARY KEY (encoder, key)
);
CREATE INDEX vectors_by_use ON vectors (used);
""",
        """
CREATE TABLE analyses (         -- of texts, which cost more to read than to keep
    key TEXT PRIMARY KEY,
    used INTEGER NOT NULL,
    analysis BLOB NOT NULL
);
CREATE INDEX analyses_by_use ON analyses (used);
""",
    )
)


class EmbeddingFile:
    """The file. Threads and processes may share it. Whatever reads or writes it raises
    ``StoreError`` where that cannot be done."""

    def __init__(self, path: Path, *, clock: Callable[[], int] = today) -> None:
        """Open or create the file. A file that is damaged or foreign is set aside. Where none can
        be used, the vectors are kept in memory, with a warning. Days since the epoch come from
        ``clock``."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self.fault = ""
        """Why the vectors are kept in memory; empty where they are in the file."""
        self._db = self._opened(verified=False)

    @property
    def name(self) -> str:
        """The file's path."""
        return str(self._path)

    def get(self, encoder: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """See ``EmbeddingCache``. Also notes the use, when the last note is old."""
        with self._transaction("BEGIN") as db:
            rows = db.execute(
                "SELECT key, used, vector FROM vectors WHERE encoder ="
                " (SELECT id FROM encoders WHERE identity = ?)"
                " AND key IN (SELECT value FROM json_each(?))",
                (encoder, json.dumps(list(keys))),
            ).fetchall()
        day = self._clock()
        if stale := [key for key, used, _ in rows if abs(day - used) >= REFRESH_DAYS]:
            with self._transaction("BEGIN IMMEDIATE") as db:
                # It is shared again too, so that whoever shares it knows of the use.
                self._update(db, encoder, stale, "used = ?, shared = ''", day)
        return {key: array for key, _, vector in rows if (array := _array(vector)) is not None}

    def put(self, encoder: str, vectors: Vectors) -> None:
        """See ``EmbeddingCache``."""
        day = self._clock()
        with self._transaction("BEGIN IMMEDIATE") as db:
            db.execute("INSERT OR IGNORE INTO encoders (identity) VALUES (?)", (encoder,))
            ((number,),) = db.execute("SELECT id FROM encoders WHERE identity = ?", (encoder,))
            db.executemany(
                "INSERT OR REPLACE INTO vectors (encoder, key, used, shared, vector)"
                " VALUES (?, ?, ?, '', ?)",
                [(number, key, day, _bytes(vector)) for key, vector in vectors.items()],
            )
            self._prune(db, day)

    def analyses(self, keys: Sequence[str]) -> dict[str, bytes]:
        """What is kept of the analyses of texts."""
        with self._transaction("BEGIN") as db:
            rows = db.execute(
                "SELECT key, analysis FROM analyses WHERE key IN (SELECT value FROM json_each(?))",
                (json.dumps(list(keys)),),
            ).fetchall()
        return {key: analysis for key, analysis in rows if isinstance(analysis, bytes)}

    def keep_analyses(self, analyses: Mapping[str, bytes]) -> None:
        """Keep analyses; those that nobody has made anew for long are deleted."""
        day = self._clock()
        with self._transaction("BEGIN IMMEDIATE") as db:
            db.executemany(
                "INSERT OR REPLACE INTO analyses VALUES (?, ?, ?)",
                [(key, day, analysis) for key, analysis in analyses.items()],
            )
            self._prune(db, day)

    def unshared(self, encoder: str, shared: str) -> dict[str, NDArray[np.float32]]:
        """The vectors of an encoder, by its identity, that the shared cache of this name is not
        known to hold."""
        with self._transaction("BEGIN") as db:
            rows = db.execute(
                "SELECT key, vector FROM vectors WHERE shared != ? AND encoder ="
                " (SELECT id FROM encoders WHERE identity = ?)",
                (shared, encoder),
            ).fetchall()
        return {key: array for key, vector in rows if (array := _array(vector)) is not None}

    def note_shared(self, encoder: str, keys: Iterable[str], shared: str) -> None:
        """Note that a shared cache holds these vectors."""
        with self._transaction("BEGIN IMMEDIATE") as db:
            self._update(db, encoder, list(keys), "shared = ?", shared)

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        with self._lock:
            self._db.close()

    def _update(
        self,
        db: sqlite3.Connection,
        encoder: str,
        keys: Sequence[str],
        change: str,
        value: object,
    ) -> None:
        db.execute(
            f"UPDATE vectors SET {change} WHERE encoder ="  # noqa: S608 - a constant of this file
            " (SELECT id FROM encoders WHERE identity = ?)"
            " AND key IN (SELECT value FROM json_each(?))",
            (value, encoder, json.dumps(keys)),
        )

    def _prune(self, db: sqlite3.Connection, day: int) -> None:
        """Delete what nobody has used for long, and what is too much."""
        for table in ("vectors", "analyses"):
            db.execute(f"DELETE FROM {table} WHERE used < ?", (day - UNUSED_DAYS,))  # noqa: S608
        (pages,), (free,), (size,) = (
            db.execute(f"PRAGMA {name}").fetchone()
            for name in ("page_count", "freelist_count", "page_size")
        )
        held = (pages - free) * size
        if held > MAX_BYTES:
            share = 1 - KEPT_SHARE * MAX_BYTES / held
            for table in ("vectors", "analyses"):
                db.execute(
                    f"DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table}"  # noqa: S608
                    " ORDER BY used, rowid"
                    f" LIMIT (SELECT CAST(count(*) * ? AS INTEGER) FROM {table}))",
                    (share,),
                )

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._db.execute(begin)
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT:
                    self._db.close()
                    self._db = self._opened(verified=True)  # set aside, and begun anew
                raise StoreError(self._path, f"vectors cannot be kept: {error}") from error

    def reopen(self) -> None:
        """Try again to open a file that could not be opened, and put into it what was kept in
        memory meanwhile.

        Raises:
            StoreError: it still cannot be opened.
        """
        if not self.fault:
            return
        db = self._connected(verified=False)
        with self._lock:
            held, self._db, self.fault = self._db, db, ""
        with closing(held):
            kept = "SELECT identity, key, vector FROM vectors JOIN encoders ON encoder = id"
            for encoder, key, vector in held.execute(kept):
                if (array := _array(vector)) is not None:
                    self.put(encoder, {key: array})
            self.keep_analyses(dict(held.execute("SELECT key, analysis FROM analyses")))

    def _opened(self, *, verified: bool) -> sqlite3.Connection:
        try:
            return self._connected(verified=verified)
        except StoreError as error:
            self.fault = str(error)
            _log.warning("vectors are kept in memory only for now: %s", error)
            return in_memory(_SCHEMA)

    def _connected(self, *, verified: bool) -> sqlite3.Connection:
        def warn(what: str) -> None:
            _log.warning("cached vectors: %s", what)

        return opened(self._path, _SCHEMA, durable=False, verified=verified, set_aside=warn)


def _bytes(vector: NDArray[np.float32]) -> bytes:
    return np.ascontiguousarray(vector, dtype="<f4").tobytes()


def _array(stored: object) -> NDArray[np.float32] | None:
    """A stored vector; None when it is damaged."""
    if not isinstance(stored, bytes) or not stored or len(stored) % 4:
        return None
    return np.frombuffer(stored, dtype="<f4").astype(np.float32, copy=False)
