"""Which account of the error bound is this process's own.

Processes may share one evidence file, and each keeps an account of its own: with one for all, the
last one to write would overwrite what the others have spent. Errors within the bound in each
account add up to errors within it over all traffic. An account is of one catalog, too
(``router/learning/catalogs.py``).

An account outlives its process: the next process takes it up. A lock says that one is in use.
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
    """The place of one account in a folder. No other process can have it until ``release``.

    Attributes:
        number: of the account; so many others were in use when it was taken.
        state: the name of the state that holds it.
    """

    def __init__(self, folder: Path, catalog: str) -> None:
        """Take the first place that is free; ``catalog`` is the key of one.

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
        """Let another process have it. Releasing twice is fine."""
        self._lock.release()


def forget_places(folder: Path, catalog: str) -> None:
    """Remove the locks of a catalog that nobody has used for long."""
    for lock in folder.glob(f"account-*-{catalog}.lock"):
        with suppress(OSError):
            lock.unlink()
