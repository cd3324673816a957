"""Reading files that may be a stranger's: at most so many bytes, and never waiting for a pipe that
the user has not named."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_FLAGS: Final = os.O_RDONLY | getattr(os, "O_BINARY", 0)
_NO_WAITING: Final = getattr(os, "O_NONBLOCK", 0)
_AT_ONCE: Final = 1 << 20
"""Python takes memory for all that is asked for before it reads, and a limit may not let it."""


class Unreadable(Exception):
    """A file's content cannot be taken; the message says why, without the path."""


def read_bounded(path: Path, *, most: int, pipes: bool = False) -> bytes:
    """The bytes of a regular file or, with ``pipes``, of whatever can be read to an end, such as
    ``/dev/stdin``.

    Raises:
        Unreadable: it is none, holds more than ``most`` bytes, or cannot be read.
    """
    try:
        handle = os.open(path, _FLAGS if pipes else _FLAGS | _NO_WAITING)
        try:
            if not pipes and not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Unreadable("not a regular file")
            with os.fdopen(handle, "rb", closefd=False) as file:
                parts, left = [], most + 1
                while left and (part := file.read(min(left, _AT_ONCE))):
                    parts.append(part)
                    left -= len(part)
                data = b"".join(parts)
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = getattr(error, "strerror", None) or error
        raise Unreadable(f"cannot be read: {reason}") from error
    if len(data) > most:
        raise Unreadable(f"larger than {most:,} bytes")
    return data
