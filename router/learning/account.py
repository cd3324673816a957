"""Gives each process an account of the error bound of its own.

Processes may share one evidence file. With one account for all, the last process to write would
overwrite what the others have spent. If the errors are within the bound in each account, they are
within it over all traffic. Each catalog has accounts of its own, too
(``router/learning/catalogs.py``).

An account outlives its process: the next process continues it. A lock marks an account as in use.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path

from filelock import FileLock, Timeout

from router.errors import StoreError
from router.learning.catalogs import state_of
from router.storage.private_files import FILE_MODE


class AccountPlace:
    """The lock on one account. No other process can take the account until ``release``.

    Attributes:
        number: the number of the account; the accounts with lower numbers were in use.
        state: the name of the stored state that holds the account.
    """

    def __init__(self, folder: Path, catalog: str) -> None:
        """Take the first account of a catalog, given by its key, that is free.

        Raises:
            StoreError: no lock can be made in the folder.
        """
        for number in count():
            # By default only the thread that takes a lock can let it go.
            file = folder / f"account-{number}-{catalog}.lock"
            lock = FileLock(file, thread_local=False, mode=FILE_MODE)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            except OSError as error:
                raise StoreError(folder, f"cannot be locked: {error}") from error
            self._lock, self.number = lock, number
            self.state = state_of("bound" if number == 0 else f"bound.{number}", catalog)
            return

    def release(self) -> None:
        """Let other processes take the account. Releasing twice is fine."""
        self._lock.release()


def forget_places(folder: Path, catalog: str) -> None:
    """Remove the locks of a catalog that nobody has used for long."""
    for lock in folder.glob(f"account-*-{catalog}.lock"):
        with suppress(OSError):
            lock.unlink()
