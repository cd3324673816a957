"""Servers for tests: a process of ``router serve``, the application of ``router mcp --http``."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cascade import some_skills
from starlette.types import ASGIApp

import router
from router.http.caller import Callers, for_owners
from router.http.keys import KeyFile
from router.http.limits import Places
from router.mcp.http import mcp_app
from router.mcp.server import SkillServer


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
    """A process over two skills, and its address."""
    skills = some_skills(tmp_path / "skills", "git", "testing")
    with launched(tmp_path, environment, "--no-llm", "--skills", str(skills), *more) as running:
        yield running


@contextmanager
def launched(
    folder: Path, environment: dict[str, str], *options: str, by: Sequence[str] = ("-m", "router")
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that works in a folder, and its address; it is told to stop when the block ends.
    ``by`` is what Python is told to run."""
    with subprocess.Popen(
        [sys.executable, *by, "serve", "--port", "0", *options],
        cwd=folder,
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


@contextmanager
def hung_up(handler: signal.Handlers) -> Iterator[None]:
    """This process, and those that it starts, take SIGHUP so; ``nohup`` lets all ignore it."""
    before = signal.signal(signal.SIGHUP, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def only_mcp(
    server: SkillServer, *, keys: Path = Path("no-keys"), token: str | None = None
) -> ASGIApp:
    """A server of MCP alone, for this machine's names; ``keys`` is the file of those that hold."""
    callers = Callers(KeyFile(keys), secret=token, required=token is not None)
    names = ["127.0.0.1", "localhost", "[::1]"]
    app = mcp_app(server).wrapped
    return for_owners(app, names=names, callers=callers, places=Places())
