"""A process of ``router serve`` for tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cascade import some_skills

import router


def environment_of(home: Path) -> dict[str, str]:
    """The variables of a process that keeps everything in one folder."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "ROUTER_STATE_DIR": str(home / "state"),
        "PYTHONPATH": str(Path(router.__file__).parents[1]),
    }


@contextmanager
def started(
    tmp_path: Path, environment: dict[str, str], *more: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    skills = some_skills(tmp_path / "skills", "git", "testing")
    arguments = ["serve", "--port", "0", "--no-llm", "--skills", str(skills), *more]
    with subprocess.Popen(
        [sys.executable, "-m", "router", *arguments],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"serving at (http://127\.0\.0\.1:\d+)( with 2 workers)?\n", line)
        assert found is not None, line
        try:
            yield process, found[1]
        finally:
            process.terminate()
