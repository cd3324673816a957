"""What must reach the others and has not yet: kept in a file until the server has it.

A dropped answer must not be given again, and a label must not be lost, because the server could
not be reached when a person spoke. So both are written down first, and sent until they are
acknowledged, after a crash of this process too.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from router.database import Schema, opened
from router.errors import StoreError

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


class Outbox:
    """The file; safe to use from several threads and processes. Sending a letter twice does no
    harm, so processes that share a folder may share the file."""

    def __init__(self, path: Path) -> None:
        """Open or create the file.

        Raises:
            StoreError: it cannot be opened.
        """
        self._path = path
        self._turn = threading.Lock()
        self._database = opened(
            path, _SCHEMA, durable=True, set_aside=lambda what: _log.error("%s", what)
        )

    def put(self, kind: str, letters: Iterable[str]) -> None:
        """Write letters down, durably before it returns.

        Raises:
            StoreError: the file cannot be written.
        """
        with self._turn:
            try:
                with self._database:
                    self._database.execute("BEGIN IMMEDIATE")
                    self._database.executemany(
                        "INSERT INTO letters (kind, letter) VALUES (?, ?)",
                        [(kind, letter) for letter in letters],
                    )
            except sqlite3.Error as error:
                raise StoreError(self._path, f"cannot be written: {error}") from error

    def waiting(self, kind: str, *, most: int = 500) -> list[tuple[int, str]]:
        """Letters that have not been sent, oldest first, with their numbers.

        Raises:
            StoreError: the file cannot be read.
        """
        with self._turn:
            try:
                return self._database.execute(
                    "SELECT number, letter FROM letters WHERE kind = ? ORDER BY number LIMIT ?",
                    (kind, most),
                ).fetchall()
            except sqlite3.Error as error:
                raise StoreError(self._path, f"cannot be read: {error}") from error

    def sent(self, numbers: Iterable[int]) -> None:
        """The server has these letters.

        Raises:
            StoreError: the file cannot be written; the letters are sent again.
        """
        with self._turn:
            try:
                with self._database:
                    self._database.execute("BEGIN IMMEDIATE")
                    self._database.executemany(
                        "DELETE FROM letters WHERE number = ?", [(number,) for number in numbers]
                    )
            except sqlite3.Error as error:
                raise StoreError(self._path, f"cannot be written: {error}") from error

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        with self._turn:
            self._database.close()
