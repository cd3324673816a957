"""The one way in which the router opens an SQLite file.

A file is made with its folder where it is missing, for its owner only, and read by several threads
and processes (WAL mode). A file that lies there already may be damaged, of a later version, or
another program's, even a stranger's: it must hold exactly the tables, indexes and triggers that the
store would create, and code inside its schema is not trusted. The store says whether a file that
cannot be used is begun anew, because it was only a cache, or left alone.
"""

from __future__ import annotations

import errno
import itertools
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeAlias

from filelock import FileLock

from router.errors import StoreError
from router.storage.private_files import FILE_MODE, private_file, private_folder

BUSY_SECONDS: Final = 5.0
"""How long to wait at most for another process that writes."""
STILL_BUSY_SECONDS: Final = 0.5
"""The same after a wait in vain: each thing that a closing program writes would wait."""

_Objects: TypeAlias = frozenset[tuple[str, str, str, str]]
"""Type, name, table and definition of everything that a schema holds."""

_BROKEN: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NOT_WRITABLE: Final = (errno.EROFS, errno.EACCES, errno.EPERM)
READ_ONLY: Final = "its disk or folder can only be read here, so nothing is saved"


@dataclass(frozen=True, slots=True)
class Schema:
    """What a store keeps in its file.

    Attributes:
        steps: scripts of statements, each of which makes one version out of the version before. The
            first one makes version 1 out of an empty file.
        virtual_tables: whether its triggers write to virtual tables, which SQLite allows only in a
            schema that it trusts.
    """

    steps: tuple[str, ...]
    virtual_tables: bool = False

    @property
    def version(self) -> int:
        """The version that the last step makes."""
        return len(self.steps)


class UnusableFile(StoreError):
    """The file is damaged, or not this store's."""


class ReadOnlyFile(StoreError):
    """The file's disk or folder cannot be written, so it can only be read (``reader``)."""


def opened(
    path: Path,
    schema: Schema,
    *,
    durable: bool,
    busy_seconds: float = BUSY_SECONDS,
    verified: bool = False,
    set_aside: Callable[[str], None] | None = None,
) -> sqlite3.Connection:
    """A connection to a file that holds the schema; transactions begin with ``BEGIN``.

    Threads may share the connection if they take turns. Text that is not UTF-8 is read with a
    replacement character, so that one damaged row does not keep the others from being read.

    Args:
        path: the file. It and its folder are made where they are missing.
        schema: what it must hold. A file of an earlier version is brought up to this one.
        durable: whether a commit is on the disk before it returns. Otherwise the last commits may
            be lost when the power fails, and the file is whole all the same.
        busy_seconds: longest wait for another process.
        verified: look through all of the file for damage first; 1 ms a megabyte.
        set_aside: a file that cannot be used is renamed and begun anew, and this is told of it in a
            sentence. None leaves the file alone.

    Raises:
        UnusableFile: the file cannot be used, and ``set_aside`` is None.
        ReadOnlyFile: nothing can be written where it lies.
        StoreError: it cannot be opened or made, another process keeps it, or a later version of
            this program wrote it.
    """
    try:
        private_folder(path.parent)
        # Two processes must neither both find a file empty nor both move it aside.
        with FileLock(f"{path}.lock", timeout=busy_seconds, mode=FILE_MODE):
            try:
                return _connected(path, schema, durable, busy_seconds, verified)
            except UnusableFile as problem:
                if set_aside is None:
                    raise
                aside = _moved_aside(path)
                connection = _connected(path, schema, durable, busy_seconds, verified=False)
                set_aside(f"{path}: begun anew; the old file is now {aside}: {problem.reason}")
                return connection
    except (OSError, sqlite3.Error) as error:  # FileLock's Timeout is an OSError
        why = _reason(path, error)
        kind = ReadOnlyFile if getattr(why, "errno", None) in _NOT_WRITABLE else StoreError
        raise kind(path, f"cannot be opened: {why}") from error


def reader(path: Path, schema: Schema, *, views: str = "") -> sqlite3.Connection:
    """A connection to a file that cannot be written; where there is none, it reads an empty one.

    Args:
        path, schema: those of ``opened``.
        views: a statement that makes temporary views on the file.

    Raises:
        UnusableFile: the file is damaged, or not this store's.
        StoreError: it cannot be opened, or another version of this program wrote it.
    """
    try:
        if _size(path) is None:
            connection = in_memory(schema)
        else:
            # Without a log the file is read as one that nobody changes, because the files beside
            # it that keep readers and writers apart cannot be made.
            how = "mode=ro" if _size(Path(f"{path}-wal")) else "mode=ro&immutable=1"
            connection = reopened(f"{path.resolve().as_uri()}?{how}", schema, durable=False)
        try:
            if _checked(connection, path, schema) < schema.version:
                why = "an earlier version of this program wrote it, and must be brought up to date"
                raise StoreError(path, f"{why}: {READ_ONLY}")
            connection.executescript(f"{views};PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise StoreError(path, f"cannot be read: {_reason(path, error)}") from error
    return connection


def _size(path: Path) -> int | None:
    """The size of a file; None where there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


class SharedConnection:
    """One connection to a file, on which threads take turns.

    Every error of the file is raised as a ``StoreError`` that names it. The arguments are those of
    ``opened``; without a path all lies in memory.
    """

    def __init__(
        self,
        path: Path | None,
        schema: Schema,
        *,
        durable: bool,
        set_aside: Callable[[str], None] | None = None,
        may_be_read_only: bool = False,
    ) -> None:
        """``may_be_read_only``: a file that cannot be written is read all the same."""
        self.path = path or Path(":memory:")
        self._lock = threading.Lock()
        self._patience = BUSY_SECONDS
        self._place: FilePlace | None = None
        if path is None:
            self._connection = in_memory(schema)
            return
        try:
            self._connection = opened(path, schema, durable=durable, set_aside=set_aside)
            self._place = FilePlace(path)
        except ReadOnlyFile:
            if not may_be_read_only:
                raise
            self._connection = reader(path, schema)

    @contextmanager
    def turn(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; each statement is its own transaction."""
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise StoreError(self.path, f"cannot be used: {told(error)}") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """The connection inside a transaction: all statements of the block take effect, or none."""
        if self._place is not None:
            self._place.check()
        with self.turn() as connection:
            connection.execute(f"PRAGMA busy_timeout = {self._patience * 1000:.0f}")
            self._patience = STILL_BUSY_SECONDS
            connection.execute("BEGIN IMMEDIATE")
            self._patience = BUSY_SECONDS
            with connection:  # commits, or rolls back
                yield connection

    def version(self) -> int | None:
        """A number that is another one after another connection has written; None where a thread
        has its turn now. It takes some microseconds and waits for no thread."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return version_of(self._connection)
        except sqlite3.Error:  # who uses the file next is told why
            return None
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the file; nothing may be called after it. Closing twice is fine."""
        with self._lock:
            self._connection.close()


class FilePlace:
    """Where an open file lies. Once it is deleted, or another one has its name, SQLite writes on
    without an error to what nobody will read."""

    def __init__(self, path: Path) -> None:
        """Note which file there is now."""
        self._path = path
        self._file = self._now()

    def check(self) -> None:
        """Before what must not be lost is written.

        Raises:
            StoreError: the file is not there any more.
        """
        if (now := self._now()) is None or now != self._file:
            why = "it was deleted or replaced while it was in use; start this program again"
            raise StoreError(self._path, why)

    def _now(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino


def version_of(connection: sqlite3.Connection) -> int:
    """A number that is another one after any other connection has written to the file."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])


def in_memory(schema: Schema) -> sqlite3.Connection:
    """A connection to a database without a file, which ends with the connection."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.executescript("".join(schema.steps) + f"PRAGMA user_version = {schema.version}")
    return connection


def reopened(
    path: Path | str, schema: Schema, *, durable: bool, busy_seconds: float = BUSY_SECONDS
) -> sqlite3.Connection:
    """One more connection to a file that ``opened`` has checked in this process; a text is its URI.

    Raises:
        sqlite3.Error: it cannot be opened.
    """
    connection = sqlite3.connect(
        path,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        uri=isinstance(path, str),
    )
    try:
        connection.text_factory = _text
        if not schema.virtual_tables:
            connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(
    path: Path, schema: Schema, durable: bool, busy_seconds: float, verified: bool
) -> sqlite3.Connection:
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):  # made with the first one's mode
        if name is path or name.exists():
            private_file(name)
    try:
        connection = reopened(path, schema, durable=durable, busy_seconds=busy_seconds)
        try:
            _prepare(connection, path, schema)
            if verified:
                (fault,) = connection.execute("PRAGMA quick_check(1)").fetchone()
                if fault != "ok":
                    raise UnusableFile(path, f"damaged: {fault}")
        except BaseException:
            connection.close()
            raise
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _BROKEN:
            raise UnusableFile(path, f"damaged: {error}") from error
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, schema: Schema) -> None:
    version = _checked(connection, path, schema)
    connection.execute("PRAGMA journal_mode = WAL")
    if version < schema.version:
        script = "".join(schema.steps[version:])
        connection.executescript(
            f"BEGIN IMMEDIATE;{script};PRAGMA user_version = {schema.version};COMMIT;"
        )


def _checked(connection: sqlite3.Connection, path: Path, schema: Schema) -> int:
    """The version of the schema that the file holds, and nothing else."""
    found = _objects(connection)
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if found and version == 0:
        version = 1  # early stores did not number their first version
    if version > schema.version and _tables(found) & _tables(_expected(schema.steps)):
        # It may have dropped some of our tables. Another program on this machine may still work
        # with it: never set aside.
        raise StoreError(path, "written by a later version of this program; use that one")
    if not 0 <= version <= schema.version or found != _expected(schema.steps[:version]):
        raise UnusableFile(path, "it holds something else than this store's tables")
    return int(version)


def told(error: sqlite3.Error) -> str:
    """An error of SQLite, in words that say what can be done."""
    read_only = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY
    return READ_ONLY if read_only else str(error)


def _reason(path: Path, error: Exception) -> Exception:
    """SQLite says only that it cannot open a file; the system also says why."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CANTOPEN:
        try:
            path.open("r+b").close()
        except OSError as why:
            return why
    return error


def _objects(connection: sqlite3.Connection) -> _Objects:
    rows = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return frozenset(
        (kind, name, table, _plain(definition or "")) for kind, name, table, definition in rows
    )


@lru_cache(maxsize=64)
def _expected(steps: tuple[str, ...]) -> _Objects:
    """The objects that the steps create, found by running them on an empty database."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.executescript("".join(steps))
        return _objects(connection)
    finally:
        connection.close()


def _tables(objects: _Objects) -> frozenset[str]:
    return frozenset(
        name for kind, name, _, _ in objects if kind == "table" and not name.startswith("sqlite_")
    )


def _plain(definition: str) -> str:
    """A definition without comments and line breaks, which may change between versions."""
    return " ".join(re.sub(r"--[^\n]*", "", definition).split())


def _text(stored: bytes) -> str:
    return stored.decode("utf-8", "replace")


def _moved_aside(path: Path) -> Path:
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
