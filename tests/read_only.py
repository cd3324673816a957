"""A folder as it is on a disk that can only be read."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """While the block runs, nothing in the folder can be written; who may neither take away its
    own rights nor mount skips the test."""
    if os.geteuid() != 0:
        folder.chmod(0o500)
        try:
            yield
        finally:
            folder.chmod(0o700)
        return
    if not _done("mount", "--bind", folder, folder):
        pytest.skip("nothing can be mounted here")
    try:
        assert _done("mount", "-o", "remount,bind,ro", folder)
        yield
    finally:
        assert _done("umount", "--lazy", folder)


def _done(*command: str | Path) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0
