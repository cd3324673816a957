"""The file of the fuzzy cache: an SQLite database in WAL mode that several processes may share.

Each ``add`` is one transaction. Uses and removals are only noted, and written with the next ``add``
or at the end, so that a look-up never writes. A file that cannot be used never stops the router: a
corrupt or foreign one is moved aside and begun anew, an inaccessible one is done without.
"""

from __future__ import annotations

import itertools
import logging
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from filelock import FileLock

from router.result import RoutingResult

_log = logging.getLogger(__name__)

_Row: TypeAlias = tuple[int, str, str, float]
"""id, normalised text, context, time learned."""

BUSY_MILLISECONDS: Final = 250
"""How long a call waits for another writer at most."""
_SCHEMA_VERSION: Final = 1
_CREATE: Final = f"""
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
PRAGMA user_version = {_SCHEMA_VERSION};
"""
_INSERT: Final = """
INSERT OR REPLACE INTO entries (text, context, learned, used, result)
VALUES (?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM entries), ?)
"""
_TOUCH: Final = """
UPDATE entries SET used = (SELECT coalesce(max(used), 0) + 1 FROM entries) WHERE id = ?
"""


class Store:
    """The entries in the file.

    Args:
        path: the file; with None there is none, nothing is found and nothing is kept.
        diagnostics: where each fault of the file is reported once, in a sentence. Every fault is
            survived; at worst the store works as if there were no file.
    """

    def __init__(self, path: Path | None, diagnostics: list[str]) -> None:
        self._path = path
        self._diagnostics = diagnostics
        self._used: dict[int, None] = {}
        self._removed: list[int] = []
        self._seen_version = -1
        self._last_id = 0
        self._db: sqlite3.Connection | None = None
        if path is None:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Two processes must not both find the file broken and move each other's new one away.
            with FileLock(f"{path}.lock", timeout=10):
                self._db = self._open(path)
        except (OSError, sqlite3.Error) as error:  # FileLock's Timeout is an OSError
            self._report(f"fuzzy cache works in memory only: {path}: {error}")

    def _open(self, path: Path) -> sqlite3.Connection:
        try:
            return _connect(path)
        except _UnusableFile as problem:
            aside = _move_aside(path)
            self._report(f"fuzzy cache begun anew; the old file is now {aside}: {problem}")
            return _connect(path)

    def new_rows(self) -> list[_Row]:
        """Readable rows added since the last call, least recently used first, without results."""
        found = self._run(
            "SELECT id, text, context, learned FROM entries WHERE id > ? ORDER BY used, id",
            self._last_id,
        )
        rows: list[_Row] = []
        for row_id, text, context, learned in found:
            self._last_id = max(self._last_id, row_id)
            if isinstance(text, str) and isinstance(context, str) and isinstance(learned, float):
                rows.append((row_id, text, context, learned))
            else:
                self.note_removal(row_id)
        return rows

    def result(self, row_id: int) -> RoutingResult | None:
        """The result of one row; None when it is gone or cannot be read."""
        for (text,) in self._run("SELECT result FROM entries WHERE id = ?", row_id):
            if isinstance(text, str | bytes):
                with suppress(ValueError):
                    return RoutingResult.from_json(text)
        return None

    def ids_if_changed(self) -> frozenset[int] | None:
        """All ids, if another connection has written since the last call; else None."""
        for (version,) in self._run("PRAGMA data_version"):
            if version != self._seen_version:
                self._seen_version = version
                return frozenset(row_id for (row_id,) in self._run("SELECT id FROM entries"))
        return None

    def add(self, text: str, context: str, learned: float, result: RoutingResult) -> int | None:
        """Write one entry and all that was noted; the entry's id, None when it was not written."""
        if self._db is None:
            return None
        row = (text, context, learned, result.to_json())
        try:
            with self._db:
                self._begin(self._db)
                row_id = self._db.execute(_INSERT, row).lastrowid
        except (sqlite3.Error, UnicodeEncodeError) as error:
            self._report(f"fuzzy cache entry kept in memory only: {self._path}: {error}")
            return None
        self._used.clear()
        self._removed.clear()
        return row_id

    def note_use(self, row_id: int) -> None:
        if self._db is not None:
            self._used.pop(row_id, None)
            self._used[row_id] = None

    def note_removal(self, row_id: int) -> None:
        if self._db is not None:
            self._removed.append(row_id)

    def clear(self) -> None:
        self._used.clear()
        self._removed.clear()
        self._run("DELETE FROM entries")

    def flush(self) -> bool:
        """Write what was noted; whether the file, if there is to be one, holds nothing else now."""
        if self._db is None:
            return self._path is None
        try:
            with self._db:
                self._begin(self._db)
        except sqlite3.Error as error:
            self._report(f"the last uses of the fuzzy cache are not written: {self._path}: {error}")
            return False
        self._used.clear()
        self._removed.clear()
        return True

    def close(self) -> None:
        """Write what was noted and close the file; the store goes on as if there were none."""
        if self._db is not None:
            self.flush()
            self._db.close()
            self._db = None

    def _begin(self, db: sqlite3.Connection) -> None:
        """Begin a transaction with all that was noted."""
        db.execute("BEGIN IMMEDIATE")
        db.executemany(_TOUCH, [(row_id,) for row_id in self._used])
        db.executemany("DELETE FROM entries WHERE id = ?", [(row_id,) for row_id in self._removed])

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


class _UnusableFile(Exception):
    """The file is corrupt, or not a fuzzy cache of this version."""


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file, made first if it is new or empty.

    Raises:
        _UnusableFile: it is corrupt or foreign.
        sqlite3.Error: it cannot be opened or is busy.
    """
    # The cache's own lock keeps the threads apart.
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        db.execute(f"PRAGMA busy_timeout = {BUSY_MILLISECONDS}")
        if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
            db.executescript(f"BEGIN IMMEDIATE; {_CREATE} COMMIT;")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version != _SCHEMA_VERSION:
            raise _UnusableFile(f"schema version {version}, not {_SCHEMA_VERSION}")
        fault = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if fault != "ok":
            raise _UnusableFile(fault)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.DatabaseError as error:
        db.close()
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise _UnusableFile(str(error)) from error
        raise
    except _UnusableFile:
        db.close()
        raise
    return db


def _move_aside(path: Path) -> Path:
    """Rename the file, with what belongs to it, to the first name that is free."""
    aside = next(
        candidate
        for n in itertools.count(1)
        if not (candidate := path.with_name(f"{path.name}.broken-{n}")).exists()
    )
    path.rename(aside)
    for suffix in ("-wal", "-shm"):  # they belong to the old file only
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{aside}{suffix}")
    return aside
