"""A memory store's database in PostgreSQL; words are searched by tsvector, vectors by pgvector.

The tables lie in a schema of their own, so that they may share a database with others. Everything
that PostgreSQL's client library knows can stand in the address, TLS above all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool

from router.errors import ConfigurationError, InvalidRequest, StoreAway, StoreError
from router.memory.stores.database import Connection, Rows, WordMatch, placeholders
from router.memory.stores.item_vectors import ItemVectors
from router.memory.stores.spaces import Filter, Space, ids_of

_T = TypeVar("_T")
SCHEMA: Final = "router_memory"
CONNECTIONS: Final = 8
"""Connections of one process; further calls wait in line."""
WAIT_SECONDS: Final = 5.0
"""Longest wait for a connection, for another process that writes, and for any word of a server
that the network no longer reaches."""
TRIAL_SECONDS: Final = 1.0
"""Longest wait for a connection while the server is away."""
READ_SECONDS: Final = 15.0
WRITE_SECONDS: Final = 60.0
REBUILD_SECONDS: Final = 3600.0
"""Longest silence of a server that is there and does not answer: for a statement of a read, of a
write, and for one that writes tables anew or makes them."""

MIGRATIONS: Final = (
    """
CREATE TABLE memory_store (
    version INTEGER NOT NULL,
    id TEXT NOT NULL,
    generation BIGINT NOT NULL,
    encoder TEXT NOT NULL         -- whose vectors these are
);
INSERT INTO memory_store VALUES (0, gen_random_uuid()::text, 0, '');
CREATE TABLE spaces (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    layer TEXT NOT NULL,
    scope TEXT NOT NULL,
    items INTEGER NOT NULL DEFAULT 0,
    words INTEGER NOT NULL DEFAULT 0,
    written BIGINT NOT NULL DEFAULT 0,
    removed BIGINT NOT NULL DEFAULT 0,
    UNIQUE (layer, scope)
);
CREATE INDEX spaces_by_scope ON spaces (scope);
CREATE TABLE items (
    row BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    space BIGINT NOT NULL REFERENCES spaces,
    id TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    accessed DOUBLE PRECISION,
    usefulness DOUBLE PRECISION NOT NULL,
    type TEXT NOT NULL,
    tags TEXT NOT NULL,
    provenance TEXT NOT NULL,
    attributes TEXT NOT NULL,
    status TEXT,
    due DOUBLE PRECISION,
    expires DOUBLE PRECISION,
    content TEXT NOT NULL,
    length INTEGER NOT NULL,
    words TEXT NOT NULL,
    postings TSVECTOR NOT NULL
        GENERATED ALWAYS AS (array_to_tsvector(string_to_array(btrim(words), '  '))) STORED,
    UNIQUE (space, id)
);
CREATE INDEX items_by_word ON items USING gin (postings) WITH (fastupdate = off);
CREATE INDEX items_by_time ON items (space, created);
CREATE INDEX items_by_due ON items (space, status, due) WHERE status IS NOT NULL;
CREATE INDEX items_by_status ON items (space, status, created) WHERE status IS NOT NULL;
CREATE INDEX items_by_expiry ON items (expires) WHERE expires IS NOT NULL;
CREATE TABLE terms (
    space BIGINT NOT NULL REFERENCES spaces ON DELETE CASCADE,
    term TEXT COLLATE "C" NOT NULL,
    items INTEGER NOT NULL,
    PRIMARY KEY (space, term)
);
CREATE TABLE vectors (
    row BIGINT PRIMARY KEY REFERENCES items ON DELETE CASCADE,
    space BIGINT NOT NULL,
    vector VECTOR NOT NULL
);
CREATE INDEX vectors_by_space ON vectors (space, row);
CREATE TABLE edges (
    space BIGINT NOT NULL,
    source TEXT NOT NULL,
    target TEXT,
    row BIGINT NOT NULL REFERENCES items ON DELETE CASCADE
);
CREATE INDEX edges_by_source ON edges (space, source);
CREATE INDEX edges_by_target ON edges (space, target);
CREATE INDEX edges_by_row ON edges (row);
-- The planner's statistics would keep samples of texts, after they are forgotten too.
ALTER TABLE spaces ALTER scope SET STATISTICS 0;
ALTER TABLE items ALTER id SET STATISTICS 0, ALTER tags SET STATISTICS 0,
    ALTER provenance SET STATISTICS 0, ALTER attributes SET STATISTICS 0,
    ALTER content SET STATISTICS 0, ALTER words SET STATISTICS 0, ALTER postings SET STATISTICS 0;
ALTER TABLE terms ALTER term SET STATISTICS 0;
ALTER TABLE edges ALTER source SET STATISTICS 0, ALTER target SET STATISTICS 0;
""",
    """
ALTER TABLE vectors ADD COLUMN part INTEGER NOT NULL DEFAULT 0;  -- from 1 on: of a question
ALTER TABLE vectors DROP CONSTRAINT vectors_pkey, ADD PRIMARY KEY (row, part);
""",
    r"""
ALTER TABLE items ADD COLUMN superseded_by TEXT;  -- the mark as JSON
ALTER TABLE items ALTER superseded_by SET STATISTICS 0;
UPDATE items SET superseded_by =
    substring(attributes FROM '"superseded_by": ("(?:[^"\\]|\\.)*")')
WHERE attributes LIKE '%"superseded_by": "%';
CREATE INDEX items_by_mark ON items (superseded_by, space) WHERE superseded_by IS NOT NULL;
""",
    r"""
ALTER TABLE items DROP COLUMN superseded_by;  -- and its index
-- Generated, because a process of an earlier version that runs on writes attributes alone.
ALTER TABLE items ADD COLUMN superseded_by TEXT GENERATED ALWAYS AS (
    substring(attributes FROM '[{ ]"superseded_by": ("(?:[^"\\]|\\.)*")')) STORED;
ALTER TABLE items ALTER superseded_by SET STATISTICS 0;
CREATE INDEX items_by_mark ON items (superseded_by, space) WHERE superseded_by IS NOT NULL;
""",
)
"""Each makes one version out of the version before, in a transaction of its own."""


class PostgresConnection:
    """A ``Connection`` to the server; see ``database``."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows:
        return self._db.execute(_translated(sql), values)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._db.cursor() as cursor:
            cursor.executemany(_translated(sql), rows)

    def numbers(self, sql: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        return np.array([row for (row,) in self.execute(sql, values)], dtype=np.int64)

    def match(
        self, spaces: Sequence[int], terms: Sequence[str], *, every: bool = False
    ) -> WordMatch:
        operator = " & " if every else " | "
        within = (operator.join(_lexeme(space, term) for term in terms) for space in spaces)
        return WordMatch(
            "SELECT row FROM items WHERE postings @@ ?::tsquery",
            "items WHERE postings @@ ?::tsquery",
            "row DESC",
            (" | ".join(f"({one})" for one in within),),
        )


class _Connection(psycopg.Connection[Any]):
    """A connection that is given up where the server is silent for too long, which no setting of
    PostgreSQL sees to: a server that hangs cannot keep its own bounds.

    Attributes:
        patience: seconds of silence that a statement may take.
    """

    patience: float = READ_SECONDS

    def wait(self, gen: PQGen[_T], *args: Any, **options: Any) -> _T:
        try:
            return super().wait(self._bounded(gen), *args, **options)
        except _Silent:
            self.close()  # nobody knows what it would answer to next
            raise

    def _bounded(self, gen: PQGen[_T]) -> PQGen[_T]:
        """The same generator, which is woken ten times a second, and ends in an error after a
        silence."""
        try:
            state = next(gen)
            until = time.monotonic() + self.patience
            while True:
                ready = yield state
                state = gen.send(ready)
                if ready:
                    until = time.monotonic() + self.patience
                elif time.monotonic() > until:
                    raise _Silent(f"no answer for {self.patience:g} s")
        except StopIteration as ended:
            return cast("_T", ended.value)


class _Silent(psycopg.OperationalError):
    """The server is there and does not answer."""


class PostgresDatabase:
    """A ``Database`` on a server, with a pool of connections."""

    read_only = False
    away = False

    def __init__(self, url: str) -> None:
        """Connect, and bring the schema to this version. Processes may start at the same time: one
        migrates, the others wait for it. Raises as ``MemoryStore.connect``, also if a later version
        of this program wrote the schema."""
        try:
            if not url.strip():  # for libpq this is the server of this machine
                raise psycopg.ProgrammingError("empty")
            parts = conninfo_to_dict(url)
        except (psycopg.ProgrammingError, UnicodeEncodeError):  # its text may show a password
            raise ConfigurationError(
                "setting memory.url: not an address, such as postgresql://HOST/DATABASE"
            ) from None
        port = f":{parts['port']}" if "port" in parts else ""
        self._name = f"postgresql://{parts.get('host', '')}{port}/{parts.get('dbname', '')}"
        self._closed = False
        self._trial = threading.Lock()
        # Whatever the database or the environment says: texts are of any alphabet.
        address = make_conninfo("", **{**_USUAL, **parts, "client_encoding": "UTF8"})
        try:
            with _Connection.connect(address, autocommit=True) as db:
                self._migrate(db)
        except psycopg.Error as error:
            raise self._told(error) from error
        self._pool = ConnectionPool(
            address,
            # Plans for terms that were common are wrong for rare ones, so none is kept.
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=1,
            max_size=CONNECTIONS,
            timeout=WAIT_SECONDS,
            # Then the next call tries at once; the pauses between tries double without an end.
            reconnect_timeout=WAIT_SECONDS,
            configure=_configure,
            check=_check,
            connection_class=_Connection,
            num_workers=1,
            open=True,
        )

    @contextmanager
    def reading(self) -> Iterator[PostgresConnection]:
        with self._connection(READ_SECONDS) as db:
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield PostgresConnection(db)
            finally:
                if not db.closed:
                    db.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[PostgresConnection]:
        is_written = False
        try:
            with self._connection(WRITE_SECONDS) as db, db.transaction():
                db.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITERS_TURN,))
                yield PostgresConnection(db)
                is_written = True
        except StoreAway as error:
            if not is_written:
                raise
            reason = f"{error.reason}; what was being saved may have been stored"
            raise StoreAway(self._name, reason) from error

    def vacuum(self) -> None:
        with self._connection(REBUILD_SECONDS) as db:
            self._wait_for_older_readers(db)
            db.execute("VACUUM (FULL) items, vectors, edges, terms, spaces")

    def close(self) -> None:
        self._closed = True
        self._pool.close()

    @contextmanager
    def _connection(self, patience: float) -> Iterator[psycopg.Connection[Any]]:
        """A connection whose statements may take that many seconds of silence. While the server is
        away one call at a time tries whether it is back, and the others fail at once."""
        if self._closed:
            raise StoreError(self._name, "the store is closed")
        is_trial = self.away
        if is_trial and not self._trial.acquire(blocking=False):
            raise StoreAway(self._name, "away; another call tries whether it is back")
        try:
            with self._pool.connection(TRIAL_SECONDS if is_trial else WAIT_SECONDS) as db:
                db.patience = patience
                yield db
            self.away = False
        except psycopg.Error as error:
            told = self._told(error)
            self.away = isinstance(told, StoreAway)
            raise told from error
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"a text holds a lone surrogate: {error}") from None
        finally:
            if is_trial:
                self._trial.release()

    def _migrate(self, db: _Connection) -> None:
        db.patience = WAIT_SECONDS
        while (version := self._version(db)) < len(MIGRATIONS):
            db.patience = REBUILD_SECONDS
            with db.transaction():
                db.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITERS_TURN,))
                if self._version(db) != version:  # another process was first
                    continue
                if version == 0:
                    self._prepare(db)
                _look_into_schema(db)
                db.execute(MIGRATIONS[version])
                db.execute("UPDATE memory_store SET version = %s", (version + 1,))
        if version > len(MIGRATIONS):
            raise StoreError(self._name, "written by a later version of this program; use that one")

    def _prepare(self, db: psycopg.Connection[Any]) -> None:
        """Make the extension and the schema, unless they are there."""
        try:
            db.execute("CREATE EXTENSION IF NOT EXISTS vector")
            # Who may not make one is refused IF NOT EXISTS, too.
            if not db.execute(
                "SELECT 1 FROM pg_namespace WHERE nspname = %s", (SCHEMA,)
            ).fetchall():
                db.execute(f"CREATE SCHEMA {SCHEMA}")
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFile) as error:
            hint = (
                "an administrator can prepare the database: CREATE EXTENSION vector, and "
                f"CREATE SCHEMA {SCHEMA} AUTHORIZATION for this role"
            )
            raise StoreError(self._name, f"{_reason(error)}; {hint}") from error

    def _told(self, error: psycopg.Error) -> StoreError:
        """An error of the client library as one of ours."""
        kind = StoreAway if _is_away(error) else StoreError
        return kind(self._name, _reason(error))

    def _version(self, db: psycopg.Connection[Any]) -> int:
        """How many migrations the schema has seen."""
        tables = "SELECT 1 FROM pg_tables WHERE schemaname = %s AND tablename = 'memory_store'"
        if not db.execute(tables, (SCHEMA,)).fetchall():
            return 0
        ((version,),) = db.execute(f"SELECT version FROM {SCHEMA}.memory_store").fetchall()  # noqa: S608
        return int(version)

    def _wait_for_older_readers(self, db: psycopg.Connection[Any]) -> None:
        """Wait until no transaction of this database may still see what has been deleted, because
        PostgreSQL takes such rows over into the new files."""
        ((now,),) = db.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchall()
        until = time.monotonic() + WAIT_SECONDS
        while db.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() "
            "AND greatest(age(backend_xid), age(backend_xmin)) > age(%s::xid) LIMIT 1",
            (now,),
        ).fetchall():
            if time.monotonic() > until:
                raise StoreError(
                    self._name, "another session still reads an older state of the database"
                )
            time.sleep(_LOOK_SECONDS)


class PostgresVectors(ItemVectors):
    """The vectors of a ``PostgresDatabase``, searched by pgvector.

    The search is exact: it compares all vectors of the spaces that a scope sees. An approximate
    index over all rows would first take the nearest of everybody and only then leave out other
    scopes, so a small scope beside large ones would find too little.
    """

    WIDTH = "vector_dims(vector)"

    def _stored(self, vector: NDArray[np.float32]) -> Vector:
        return Vector(vector)

    def _read(self, stored: Vector) -> NDArray[np.float32]:
        return stored.to_numpy()

    def _nearest(
        self,
        db: Connection,
        spaces: Sequence[Space],
        vector: NDArray[np.float32],
        limit: int,
        where: Filter,
    ) -> dict[int, float]:
        condition, values = where.sql()
        joined = "JOIN items ON items.row = vectors.row" if where else ""
        wanted = self._stored(vector)
        found = db.execute(
            "SELECT vectors.row, max(-(vector <#> ?)) AS similarity "  # noqa: S608
            f"FROM vectors {joined} WHERE vectors.space IN ({placeholders(len(spaces))}) "
            f"AND {self.WIDTH} = ? AND {condition} "
            "GROUP BY vectors.row ORDER BY similarity DESC LIMIT ?",
            (wanted, *ids_of(spaces), len(vector), *values, limit),
        )
        return dict(found.fetchall())


_WRITERS_TURN: Final = 0x726F7574
"""The number of the advisory lock that a transaction holds while it writes ("rout")."""
_LOOK_SECONDS: Final = 0.02
_USUAL: Final[dict[str, str | int | None]] = {
    "application_name": "cascade-router",
    "connect_timeout": int(WAIT_SECONDS),
    # Without these a call that is under way when the network is cut waits for a quarter of an hour.
    "tcp_user_timeout": int(WAIT_SECONDS * 1000),
    "keepalives_idle": int(WAIT_SECONDS),
    "keepalives_interval": 1,
    "keepalives_count": int(WAIT_SECONDS),
}
"""What an address says of a connection, unless it says something else itself."""
_AWAY_CODES: Final = ("08", "57P")
"""The beginnings of PostgreSQL's codes for a lost connection, and for a server that stops, has
crashed or is starting."""


def _look_into_schema(db: psycopg.Connection[Any]) -> None:
    """Find the store's tables first, and what the database's own path finds after them."""
    db.execute(
        "SELECT set_config('search_path', %s || current_setting('search_path'), false)",
        (f"{SCHEMA}, ",),
    )


def _check(db: _Connection) -> None:
    """Whether a connection that lay in the pool still works. Raises ``psycopg.Error``."""
    db.patience = WAIT_SECONDS
    ConnectionPool.check_connection(db)


def _configure(db: psycopg.Connection[Any]) -> None:
    """Make a new connection ready for the pool."""
    _look_into_schema(db)
    db.execute(f"SET lock_timeout = '{WAIT_SECONDS}s'")
    register_vector(db)


def _lexeme(space: int, term: str) -> str:
    quoted = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{space}:{quoted}'"


@lru_cache(maxsize=1_000)
def _translated(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


def _reason(error: psycopg.Error) -> str:
    """What is wrong, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _is_away(error: psycopg.Error) -> bool:
    """Whether there is no connection, or the server ended it. A connection that was not made or was
    lost has no code."""
    code = error.sqlstate
    return isinstance(error, psycopg.OperationalError) and (
        code is None or code.startswith(_AWAY_CODES)
    )
