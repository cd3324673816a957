"""How an SQLite file is opened: for several threads and processes, each with its transactions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from router.errors import StoreError

BUSY_SECONDS: Final = 5.0
"""Longest wait for another process that writes."""


def connected(path: Path) -> sqlite3.Connection:
    """A connection to the file, which is made with its folder where it is missing.

    Raises:
        StoreError: it cannot be opened; the message names it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return sqlite3.connect(
            path, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
    except (OSError, sqlite3.Error) as error:
        raise StoreError(path, f"cannot be opened: {error}") from error
