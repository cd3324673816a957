"""Freed memory, as the system counts it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from router.retrieval.spare_memory import give_back

BLOCK = 3_000
BLOCKS = 20_000


def resident() -> int:
    """Bytes of this process in the system's memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="what glibc keeps, and how to get it")
def test_what_is_freed_between_what_stays_goes_back_to_the_system() -> None:
    blocks: list[bytearray | None] = [bytearray(BLOCK) for _ in range(BLOCKS)]
    staying = blocks[::50]
    blocks.clear()
    before = resident()
    give_back()
    assert before - resident() > BLOCK * BLOCKS // 2
    assert all(block is not None and len(block) == BLOCK for block in staying)


def test_giving_back_nothing_is_fine_everywhere() -> None:
    give_back()
    give_back()
