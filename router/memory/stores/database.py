"""The interface between the memory store and its database, which is SQLite or PostgreSQL.

Both engines have the same tables. The store's statements are written once, in the SQL that both
understand, with ``?`` for each value. The differences are behind these protocols: transactions, the
search for words, and the vectors (``item_vectors``).

A row never changes its content: to save an item again removes its row and adds a new one, and row
numbers are never used twice. So data that is derived from a row (its words, its vector) is either
right or belongs to a row that is gone; it can never be out of date.

A space contains the items of one layer and one stored scope. Everything that is searched is stored
by space, so a search reads only the rows of the spaces that its scope sees.
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
    """The result of a statement."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


@dataclass(frozen=True, slots=True)
class WordMatch:
    """Parts of a statement that finds the rows of ``items`` with some terms.

    Attributes:
        rows: a query for the row numbers alone, which reads no item.
        items: the text after FROM for a query that reads the items, with the condition.
        newest: the text after ORDER BY that puts the newest of them first.
        values: the bound values of ``rows`` and of ``items``.
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
        """The values of the column ``row`` of a query, in its order; quick for many rows."""
        ...

    def match(
        self, spaces: Sequence[int], terms: Sequence[str], *, every: bool = False
    ) -> WordMatch:
        """Matches the rows of some spaces (at least one) that contain one of the terms, or all."""
        ...


class Database(Protocol):
    """A database with the tables of a memory store. Thread-safe.

    Every error of the engine is raised as a ``StoreError`` that names the database.

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
"""Rows that one statement names at most, because both engines bound the number of values."""

T = TypeVar("T")


def batched(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    """The rows in batches that are small enough for one statement."""
    for start in range(0, len(rows), ROWS_A_STATEMENT):
        yield rows[start : start + ROWS_A_STATEMENT]


def placeholders(count: int) -> str:
    """The placeholders for ``count`` values of an ``IN``; for 0 it is ``NULL``, which matches
    nothing."""
    return ",".join(itertools.repeat("?", count)) or "NULL"


def next_generation(db: Connection) -> int:
    """Raise the store's generation, inside the transaction of a write; returns the new one."""
    ((generation,),) = db.execute(
        "UPDATE memory_store SET generation = generation + 1 RETURNING generation"
    ).fetchall()
    return int(generation)
