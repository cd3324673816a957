"""Steers ``cluster_worker.py``: a process of a cluster that can be asked, stopped and killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any, Final

WORKER: Final = Path(__file__).with_name("cluster_worker.py")


class ProcessEnded(Exception):
    """The process was killed before it answered."""


class SteeredProcess:
    """One process; ``start`` it, and ``close`` it at the end."""

    def __init__(self, settings: dict[str, Any], skills: Path) -> None:
        """Nothing runs yet; ``settings`` are the router's, as plain JSON types."""
        self._settings = settings
        self.skills = skills
        self._numbers = count()
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it, and wait until its router is open."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(WORKER),
            json.dumps(self._settings),
            str(self.skills),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            limit=2**24,
        )
        assert self._process.stdout is not None
        opened = await self._process.stdout.readline()
        if not opened:
            raise ProcessEnded("while it opened")
        self._reading = asyncio.create_task(self._read(self._process.stdout))

    async def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """What it answers to one call.

        Raises:
            ProcessEnded: it has been killed.
        """
        if self._process is None or self._process.stdin is None:
            raise ProcessEnded("it does not run")
        if self._reading is None or self._reading.done():
            raise ProcessEnded("it opens, or has just ended")
        number = next(self._numbers)
        future = asyncio.get_running_loop().create_future()
        self._asked[number] = future
        line = json.dumps({"number": number, "do": do, **arguments}) + "\n"
        try:
            self._process.stdin.write(line.encode())
            await self._process.stdin.drain()
        except OSError as error:
            raise ProcessEnded(str(error)) from error
        answer: dict[str, Any] = await future
        return answer

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            answer = json.loads(line)
            self._asked.pop(answer["number"]).set_result(answer)
        for future in self._asked.values():
            if not future.done():
                future.set_exception(ProcessEnded("before it answered"))
        self._asked.clear()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP or SIGCONT."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def kill(self) -> None:
        """End it at once."""
        self.send(signal.SIGKILL)
        await self._ended()

    async def close(self) -> None:
        """Let it close its router and end."""
        self.send(signal.SIGCONT)
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        await self._ended()

    async def _ended(self) -> None:
        if self._process is not None:
            await self._process.wait()
            self._process = None
        if self._reading is not None:
            await self._reading
            self._reading = None
