"""The file of the fuzzy cache: an SQLite database in WAL mode that several processes may share.

New entries, uses and removals are collected, and ``flush`` writes them in one transaction, so that
no request waits for the file. A file that cannot be used never stops the router: a corrupt or
foreign file is moved aside and a new one is begun; without access to it the cache works in memory.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from router.errors import StoreError
from router.result import RoutingResult
from router.stages.fuzzy_index import Entry
from router.stages.validation import Basis, DecidedBy, KeptAnswer
from router.storage.database import Schema, opened

_log = logging.getLogger(__name__)

_Row: TypeAlias = tuple[int, str, str, float]
"""id, normalised text, context, time learned."""

BUSY_SECONDS: Final = 0.05
"""The longest wait for another process that writes. It is short, because it may block the event
loop."""
_SCHEMA: Final = Schema(
    (
        """
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL,
    context TEXT NOT NULL,
    learned REAL NOT NULL,
    used INTEGER NOT NULL,
    result TEXT NOT NULL,
    UNIQUE (text, context)
);
CREATE INDEX entries_by_use ON entries (used);
""",
        # Answers of the first version have no basis, so they can never be valid.
        """
DELETE FROM entries;
ALTER TABLE entries ADD COLUMN catalog TEXT;
ALTER TABLE entries ADD COLUMN basis TEXT;
CREATE TABLE catalogs (version TEXT PRIMARY KEY, marks BLOB NOT NULL) WITHOUT ROWID;
""",
        # What was dropped on purpose: other processes may hold it in memory and in no row. A digest
        # tells nobody what was asked.
        """
CREATE TABLE drops (id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL);
""",
    )
)
_INSERT: Final = """
INSERT OR REPLACE INTO entries (text, context, learned, used, result, catalog, basis)
VALUES (?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM entries), ?, ?, ?)
"""
_BY_PERSON: Final = """
SELECT id FROM entries WHERE text = ? AND context = ? AND basis LIKE '["person"%'
"""
"""A person's answer that another process has written: only a person's answer replaces it."""
_GONE: Final = -1
"""The row of an entry in memory that must be replaced by the entry of the file."""
EVERYTHING: Final = b""
"""Stands among the digests of dropped answers for all of them."""
_DROP: Final = "INSERT INTO drops (digest) VALUES (?)"
_DELETE_OLD_DROPS: Final = "DELETE FROM drops WHERE id <= (SELECT max(id) FROM drops) - 10000"
_TOUCH: Final = """
UPDATE entries SET used = (SELECT coalesce(max(used), 0) + 1 FROM entries) WHERE id = ?
"""


def drop_digest(text: str, context: str) -> bytes:
    """The digest of an answer that was dropped, by the normalised text of its request."""
    key = f"{context}\n{text}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(key, digest_size=16).digest()


class Store:
    """The entries in the file.

    Args:
        path: the file; with None the store finds and keeps nothing.
        diagnostics: each fault of the file is appended once, as a sentence. After a fault the store
            works as if there were no file.
    """

    def __init__(self, path: Path | None, diagnostics: list[str]) -> None:
        self._path = path
        self._diagnostics = diagnostics
        self._used: dict[Entry, None] = {}  # new or used entries, in the order of use
        self._removed: list[int] = []
        self._dropped: list[bytes] = []
        self._last_drop = 0
        self._seen_version = -1
        self._last_id = 0
        self._db: sqlite3.Connection | None = None
        self.fault = ""
        """Why the file could not be opened; empty where it is open, or where there is none."""

    def open(self) -> None:
        """Open the file, if there should be one."""
        if self._path is None:
            return
        try:
            self.use(self.connect(self._path))
        except StoreError as error:
            self.fault = str(error)
            self._report(f"fuzzy cache works in memory only for now: {error}")

    def connect(self, path: Path) -> sqlite3.Connection:
        """A connection to the file. Raises StoreError where it cannot be opened."""
        # The cache's own lock keeps the threads apart.
        return opened(
            path,
            _SCHEMA,
            durable=False,
            busy_seconds=BUSY_SECONDS,
            verified=True,
            set_aside=lambda what: self._report(f"fuzzy cache: {what}"),
        )

    def use(self, db: sqlite3.Connection) -> None:
        """Read from and write to the file of this connection from now on."""
        self._db, self.fault = db, ""

    def new_rows(self) -> list[_Row]:
        """Readable rows added since the last call, least recently used first, without results."""
        found = self._run(
            "SELECT id, text, context, learned FROM entries WHERE id > ? ORDER BY used, id",
            self._last_id,
        )
        rows: list[_Row] = []
        for row_id, text, context, learned in found:
            self._last_id = max(self._last_id, row_id)
            if row_id in self._removed:  # it will be deleted with the next flush
                continue
            if isinstance(text, str) and isinstance(context, str) and isinstance(learned, float):
                rows.append((row_id, text, context, learned))
            else:
                self.note_removal(row_id)
        return rows

    def answer(self, entry: Entry) -> KeptAnswer | None:
        """The answer of an entry in the file; None when it is gone or cannot be read."""
        for text, basis in self._run("SELECT result, basis FROM entries WHERE id = ?", entry.row):
            if isinstance(text, str | bytes):
                with suppress(ValueError):
                    result = RoutingResult.from_json(text)
                    return KeptAnswer(result, None if basis is None else Basis.from_json(basis))
        return None

    def keep_marks(self, version: str, marks: bytes) -> None:
        """Store the marks of a catalog, and delete those of catalogs without answers."""
        self.flush()  # first, so that the file has the answers of this catalog
        self._run(
            "DELETE FROM catalogs WHERE version NOT IN"
            " (SELECT catalog FROM entries WHERE catalog IS NOT NULL)"
        )
        self._run("INSERT OR IGNORE INTO catalogs (version, marks) VALUES (?, ?)", version, marks)

    def marks_of(self, version: str) -> bytes | None:
        """The marks of a catalog; None when they are not in the file."""
        for (marks,) in self._run("SELECT marks FROM catalogs WHERE version = ?", version):
            return marks if isinstance(marks, bytes) else None
        return None

    def ids_if_changed(self) -> frozenset[int] | None:
        """All ids, if another connection has written since the last call; else None."""
        for (version,) in self._run("PRAGMA data_version"):
            if version != self._seen_version:
                self._seen_version = version
                return frozenset(row_id for (row_id,) in self._run("SELECT id FROM entries"))
        return None

    def note_use(self, entry: Entry) -> None:
        """Have the next flush write that an entry is new or was used."""
        if self._db is not None:
            self._used.pop(entry, None)
            self._used[entry] = None

    def forget(self, entry: Entry) -> None:
        """Write nothing more about this entry; its row in the file stays."""
        self._used.pop(entry, None)

    def note_removal(self, row_id: int) -> None:
        """Have the next flush delete a row."""
        if self._db is not None:
            self._removed.append(row_id)

    def note_drop(self, text: str, context: str) -> None:
        """Have the next flush tell other processes that an answer was dropped on purpose. They may
        hold it in memory where it is in no row."""
        if self._db is not None:
            self._dropped.append(drop_digest(text, context))

    def new_drops(self) -> frozenset[bytes]:
        """The digests of what was dropped on purpose since the last call, by this process too."""
        found = self._run("SELECT id, digest FROM drops WHERE id > ?", self._last_drop)
        self._last_drop = max((row_id for row_id, _ in found), default=self._last_drop)
        return frozenset(digest for _, digest in found)

    def clear(self) -> bool:
        """Delete every row, and tell other processes. Returns whether the file, if there should be
        one, is empty now."""
        self._used.clear()
        self._removed.clear()
        self._dropped.clear()
        self._run("DELETE FROM entries")
        self._run("DELETE FROM catalogs")
        self._run("DELETE FROM drops")
        self._run(_DROP, EVERYTHING)
        return self._path is None or self._run("SELECT count(*) FROM entries") == [(0,)]

    def flush(self) -> bool:
        """Write the collected changes. Returns whether the file, if there should be one, has
        them."""
        if self._db is None:
            return self._path is None
        rows: dict[Entry, int | None] = {}
        try:
            with self._db as db:
                db.execute("BEGIN IMMEDIATE")
                db.executemany(
                    "DELETE FROM entries WHERE id = ?", [(row,) for row in self._removed]
                )
                db.executemany(_DROP, [(digest,) for digest in self._dropped])
                db.execute(_DELETE_OLD_DROPS)
                for entry in self._used:
                    if entry.row is None:
                        rows[entry] = self._insert(db, entry)
                    else:
                        db.execute(_TOUCH, (entry.row,))
        except sqlite3.Error as error:
            self._report(f"the fuzzy cache is not written down yet: {self._path}: {error}")
            return False
        for entry, row in rows.items():
            entry.row = row
        self._used.clear()
        self._removed.clear()
        self._dropped.clear()
        return True

    def _insert(self, db: sqlite3.Connection, entry: Entry) -> int | None:
        """Insert a new entry. Returns its row; None when its text cannot be stored in a file."""
        if entry.kept is None:
            return None
        result, basis = entry.kept.result.to_json(), entry.kept.basis
        known = (None, None) if basis is None else (basis.catalog, basis.to_json())
        row = (entry.text, entry.context, entry.learned, result, *known)
        try:
            if basis is None or basis.decided_by is not DecidedBy.PERSON:
                # A person's answer that this process found invalid was deleted above. Any other one
                # stays, and is read into memory with the next look at the file.
                for (person_row,) in db.execute(_BY_PERSON, (entry.text, entry.context)).fetchall():
                    self._seen_version, self._last_id = -1, min(self._last_id, person_row - 1)
                    return _GONE
            return db.execute(_INSERT, row).lastrowid
        except UnicodeEncodeError as error:
            self._report(f"fuzzy cache entry kept in memory only: {self._path}: {error}")
            return None

    def close(self) -> None:
        """Write the collected changes and close the file; then work as if there were none."""
        if self._db is not None:
            self.flush()
            self._db.close()
            self._db = None

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of one statement; none when the file fails."""
        if self._db is None:
            return []
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._report(f"fuzzy cache file cannot be used: {self._path}: {error}")
            return []

    def _report(self, message: str) -> None:
        if message not in self._diagnostics:
            self._diagnostics.append(message)
            _log.warning("%s", message)
