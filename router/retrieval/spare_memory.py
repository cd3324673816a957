"""Memory that Python has freed, given back to the system.

The C library keeps freed memory for later, and under glibc in one heap for each thread: a process
that has read thousands of skills in a thread would hold for ever what the reading took.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


def give_back() -> None:
    """Give what nobody uses back to the system; under another C library than glibc, do nothing.

    It takes some 0.3 ms for ten megabytes. So it is for the end of large work, not for requests.
    """
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Any:
    """glibc's ``malloc_trim``; None where there is none."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # musl, macOS; Windows has no program to look in
        return None
