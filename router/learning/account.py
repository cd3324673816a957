"""Which account of the error bound is this process's own.

Processes may share one evidence file, and each keeps an account of its own: with one for all, the
last one to write would overwrite what the others have spent. Errors within the bound in each
account add up to errors within it over all traffic.

An account outlives its process: the next process takes it up. A lock says that one is in use.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

from filelock import FileLock, Timeout

from router.errors import StoreError
from router.private_files import FILE_MODE


class AccountPlace:
    """The place of one account in a folder. No other process can have it until ``release``."""

    def __init__(self, folder: Path) -> None:
        """Take the first place that is free.

        Raises:
            StoreError: no lock can be made in the folder.
        """
        for number in count():
            # By default only the thread that takes a lock can let it go.
            lock = FileLock(folder / f"account-{number}.lock", thread_local=False, mode=FILE_MODE)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            except OSError as error:
                raise StoreError(folder, f"cannot be locked: {error}") from error
            self._lock = lock
            self.state = "bound" if number == 0 else f"bound.{number}"
            return

    def release(self) -> None:
        """Let another process have it. Releasing twice is fine."""
        self._lock.release()
