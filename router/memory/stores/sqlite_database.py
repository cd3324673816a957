"""A memory store's database in one SQLite file; words are searched by FTS5.

SQLite in WAL mode, so that several threads and processes read while one writes. ``synchronous`` is
FULL: a commit is on the disk before it returns.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.errors import InvalidRequest, StoreError
from router.memory.stores.database import Rows, WordMatch
from router.storage.database import (
    READ_ONLY,
    FilePlace,
    ReadOnlyFile,
    Schema,
    UnusableFile,
    opened,
    reader,
    reopened,
    told,
)

_SCHEMA: Final = Schema(
    (
        """
CREATE TABLE memory_store (
    version INTEGER NOT NULL,
    id TEXT NOT NULL,             -- of this database, for whoever keeps what is derived from it
    generation INTEGER NOT NULL,
    encoder TEXT NOT NULL         -- whose vectors these are
);
INSERT INTO memory_store VALUES (1, lower(hex(randomblob(16))), 0, '');
CREATE TABLE spaces (
    id INTEGER PRIMARY KEY,
    layer TEXT NOT NULL,
    scope TEXT NOT NULL,
    items INTEGER NOT NULL DEFAULT 0,
    words INTEGER NOT NULL DEFAULT 0,
    written INTEGER NOT NULL DEFAULT 0,   -- generation of the last change
    removed INTEGER NOT NULL DEFAULT 0,   -- generation of the last change other than new rows
    UNIQUE (layer, scope)
);
CREATE TABLE items (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    space INTEGER NOT NULL,
    id TEXT NOT NULL,
    created REAL NOT NULL,
    accessed REAL,
    usefulness REAL NOT NULL,
    type TEXT NOT NULL,
    tags TEXT NOT NULL,
    provenance TEXT NOT NULL,
    attributes TEXT NOT NULL,
    status TEXT,
    due REAL,
    content TEXT NOT NULL,
    length INTEGER NOT NULL,
    words TEXT NOT NULL,
    UNIQUE (space, id)
);
CREATE INDEX items_by_time ON items (space, created);
CREATE INDEX items_by_due ON items (space, status, due) WHERE status IS NOT NULL;
CREATE TABLE terms (
    space INTEGER NOT NULL,
    term TEXT NOT NULL,
    items INTEGER NOT NULL,
    PRIMARY KEY (space, term)
) WITHOUT ROWID;
CREATE VIRTUAL TABLE postings USING fts5 (
    words, content = 'items', content_rowid = 'row', tokenize = "ascii tokenchars '+#:'''"
);
CREATE TRIGGER items_added AFTER INSERT ON items BEGIN
    INSERT INTO postings (rowid, words) VALUES (new.row, new.words);
END;
CREATE TRIGGER items_removed AFTER DELETE ON items BEGIN
    INSERT INTO postings (postings, rowid, words) VALUES ('delete', old.row, old.words);
    DELETE FROM vectors WHERE row = old.row;
    DELETE FROM edges WHERE row = old.row;
END;
CREATE TABLE vectors (row INTEGER PRIMARY KEY, space INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE INDEX vectors_by_space ON vectors (space, row);
CREATE TABLE edges (
    space INTEGER NOT NULL,
    source TEXT NOT NULL,
    target TEXT,                  -- none: the row is about the entity itself
    row INTEGER NOT NULL
);
CREATE INDEX edges_by_source ON edges (space, source);
CREATE INDEX edges_by_target ON edges (space, target);
CREATE INDEX edges_by_row ON edges (row);
""",
        """
CREATE INDEX items_by_status ON items (space, status, created) WHERE status IS NOT NULL;
""",
        """
ALTER TABLE items ADD COLUMN expires REAL;
UPDATE items SET expires =
    (julianday(json_extract(attributes, '$.expires_at')) - 2440587.5) * 86400.0
WHERE attributes LIKE '%"expires_at"%';
CREATE INDEX items_by_expiry ON items (expires) WHERE expires IS NOT NULL;
""",
        """
DROP TRIGGER items_removed;
ALTER TABLE vectors RENAME TO vectors_of_contents;
DROP INDEX vectors_by_space;
CREATE TABLE vectors (
    row INTEGER NOT NULL,
    part INTEGER NOT NULL,        -- 0: of the content; from 1 on: of a question
    space INTEGER NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (row, part)
);
INSERT INTO vectors SELECT row, 0, space, vector FROM vectors_of_contents ORDER BY row;
DROP TABLE vectors_of_contents;
CREATE INDEX vectors_by_space ON vectors (space, row);
CREATE TRIGGER items_removed AFTER DELETE ON items BEGIN
    INSERT INTO postings (postings, rowid, words) VALUES ('delete', old.row, old.words);
    DELETE FROM vectors WHERE row = old.row;
    DELETE FROM edges WHERE row = old.row;
END;
""",
        """
ALTER TABLE items ADD COLUMN superseded_by TEXT;  -- the mark as JSON
-- Of several values that are extracted at once the JSON is given, and not the text.
UPDATE items SET superseded_by = rtrim(substr(
    json_extract(attributes, '$.superseded_by', '$.superseded_by.none'), 2), ',null]')
WHERE attributes LIKE '%"superseded_by": "%' AND json_valid(attributes);
CREATE INDEX items_by_mark ON items (superseded_by, space) WHERE superseded_by IS NOT NULL;
""",
        """
DROP INDEX items_by_mark;
ALTER TABLE items DROP COLUMN superseded_by;
-- Generated: a process of an earlier version that has the file open writes attributes alone.
-- Python's JSON may contain NaN and Infinity, which SQLite does not read.
ALTER TABLE items ADD COLUMN superseded_by TEXT GENERATED ALWAYS AS (nullif(rtrim(substr(
    json_extract(
        CASE WHEN json_valid(attributes) THEN attributes
        WHEN json_valid(replace(replace(attributes, 'NaN', 'null'), 'Infinity', '0'))
        THEN replace(replace(attributes, 'NaN', 'null'), 'Infinity', '0') END,
        '$.superseded_by', '$.superseded_by.none'),
    2), ',null]'), '')) VIRTUAL;
CREATE INDEX items_by_mark ON items (superseded_by, space) WHERE superseded_by IS NOT NULL;
""",
    ),
    virtual_tables=True,
)


_NOT_EXPIRED: Final = (
    "CREATE TEMP VIEW items AS SELECT * FROM main.items WHERE expires IS NULL"
    " OR expires > (julianday('now') - 2440587.5) * 86400.0"
)


class SqliteConnection:
    """A ``Connection`` to the file; see ``database``."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._db.execute(sql, values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> object:
        return self._db.executemany(sql, rows)

    def numbers(self, sql: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        # As one text: for each row that it gives, the driver lets go of the interpreter's lock.
        as_one = f"SELECT json_group_array(row) FROM ({sql})"  # noqa: S608
        (listed,) = self._db.execute(as_one, values).fetchone()
        return np.array(json.loads(listed), dtype=np.int64)

    def match(
        self, spaces: Sequence[int], terms: Sequence[str], *, every: bool = False
    ) -> WordMatch:
        # A term holds no double quote, so nothing in it can end the string.
        operator = " AND " if every else " OR "
        within = (operator.join(f'"{space}:{term}"' for term in terms) for space in spaces)
        return WordMatch(
            "SELECT rowid AS row FROM postings WHERE postings MATCH ?",
            "postings JOIN items ON items.row = postings.rowid WHERE postings MATCH ?",
            "postings.rowid DESC",
            (" OR ".join(f"({one})" for one in within),),
        )


class SqliteDatabase:
    """A ``Database`` in a file, with a pool of connections, as many as are used at a time."""

    away = False

    def __init__(self, path: Path) -> None:
        """Open the file, or create it. Raises as ``MemoryStore.open``, also if the file is another
        program's; it is left alone."""
        self._path = path
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._pool_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self.read_only = False
        try:
            self._idle.append(opened(path, _SCHEMA, durable=True))
        except UnusableFile as error:
            raise StoreError(path, f"{error.reason}{_WAY_OUT}") from error
        except ReadOnlyFile:
            self.read_only = True
            self._reader().close()  # or say now why it cannot be read
        self._place = FilePlace(path)

    @contextmanager
    def reading(self) -> Iterator[SqliteConnection]:
        with self._connection() as db:
            db.execute("BEGIN")
            try:
                yield SqliteConnection(db)
            finally:
                db.rollback()

    @contextmanager
    def writing(self) -> Iterator[SqliteConnection]:
        if self.read_only:
            raise StoreError(self._path, READ_ONLY)
        with self._write_lock, self._connection() as db:
            self._place.check()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield SqliteConnection(db)
                db.commit()
            except BaseException:
                db.rollback()
                raise

    def vacuum(self) -> None:
        with self._write_lock, self._connection() as db:
            db.execute("INSERT INTO postings (postings) VALUES ('optimize')")
            db.execute("VACUUM")
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise StoreError(self._path, "another process reads it, so its log still stands")

    def close(self) -> None:
        with self._pool_lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._pool_lock:
            if self._closed:
                raise StoreError(self._path, "the store is closed")
            db = self._idle.pop() if self._idle else None
        try:
            if db is None and self.read_only:
                db = self._reader()
            elif db is None:
                self._place.check()  # or an empty file would be made
                # A connection serves one thread at a time; the pool sees to that.
                db = reopened(self._path, _SCHEMA, durable=True)
            yield db
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", None)
            is_broken = code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
            why = f"{told(error)}{_WAY_OUT if is_broken else ''}"
            raise StoreError(self._path, why) from error
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"a text holds a lone surrogate: {error}") from None
        finally:
            if db is not None:
                self._give_back(db)

    def _reader(self) -> sqlite3.Connection:
        """A connection that reads, and does not see what should have been removed by now."""
        return reader(self._path, _SCHEMA, views=_NOT_EXPIRED)

    def _give_back(self, db: sqlite3.Connection) -> None:
        with self._pool_lock:
            # Another machine may write what can only be read here: each reader looks anew.
            if not (self._closed or self.read_only):
                self._idle.append(db)
                return
        db.close()


_WAY_OUT: Final = "; it is left as it is: restore it, or move it away to begin anew"
"""What to do about a damaged file, which is never begun anew: nothing else holds memories."""
