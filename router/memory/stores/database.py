"""What a memory store asks of its database, whichever engine it is.

Both engines, SQLite and PostgreSQL, keep the same tables. The store's statements are written once,
in the SQL that both understand, with ``?`` for each value. What differs is behind these protocols:
transactions, the search for words, and the vectors (``item_vectors``).

Rows never change what they hold: saving an item again removes its row and adds a new one, and row
numbers are never used twice. So whatever is derived from a row (its words, its vector) is either
right or belongs to a row that is gone; it can never be out of date.

A space is where the items of one layer and one stored scope lie. Everything that is searched is
kept by space, so a search reads the spaces that its scope sees and touches no other row.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray


class Rows(Protocol):
    """What a statement gave."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


@dataclass(frozen=True, slots=True)
class WordMatch:
    """Which rows of ``items`` hold some terms, as parts of a statement.

    Attributes:
        rows: a query of the rows alone, which reads no item.
        items: what stands after FROM to read their items too, with the condition.
        newest: how to order these by age, the newest first.
        values: of either.
    """

    rows: str
    items: str
    newest: str
    values: tuple[Any, ...]


class Connection(Protocol):
    """A connection inside a transaction."""

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Rows: ...

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> object: ...

    def numbers(self, sql: str, values: Sequence[Any] = ()) -> NDArray[np.int64]:
        """The rows that a query gives in its column ``row``, in its order; many at little cost."""
        ...

    def match(
        self, spaces: Sequence[int], terms: Sequence[str], *, every: bool = False
    ) -> WordMatch:
        """The rows of some spaces, one at least, that hold one of the terms, or every one."""
        ...


class Database(Protocol):
    """A database with the tables of a memory store. Thread-safe.

    Every error of the engine is told as a ``StoreError`` that names the database.

    Attributes:
        read_only: whether it can only be read; then ``writing`` raises ``StoreError``.
        away: whether the last call ended in ``StoreAway``.
    """

    read_only: bool
    away: bool

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection on which all statements see the same state of the database."""
        ...

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection in a transaction: on the disk at the end of the block, or not at all. Only
        one transaction writes at a time, whichever process it belongs to."""
        ...

    def vacuum(self) -> None:
        """Write the tables anew, so that nothing deleted is left in their files. Raises StoreError
        if that cannot be done now, or if another reader still needs the old state."""
        ...

    def close(self) -> None:
        """Close every connection; one that is in use is closed when it comes back."""
        ...


ROWS_A_STATEMENT: Final = 500
"""Rows that one statement names at most; both engines bound its values."""

T = TypeVar("T")


def batched(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """The rows in parts that a statement can name."""
    for start in range(0, len(rows), ROWS_A_STATEMENT):
        yield rows[start : start + ROWS_A_STATEMENT]


def placeholders(count: int) -> str:
    """So many placeholders for values of an ``IN``; for none, one that nothing is equal to."""
    return ",".join(itertools.repeat("?", count)) or "NULL"


def next_generation(db: Connection) -> int:
    """Count a write, inside its transaction."""
    ((generation,),) = db.execute(
        "UPDATE memory_store SET generation = generation + 1 RETURNING generation"
    ).fetchall()
    return int(generation)
