"""Several processes that serve one address: started, started again when one dies, stopped in order.

The first process opens the socket and hands it down; the system gives each connection to one of the
workers that wait for it. A worker that dies takes its connections along and nothing else. Workers
stop when the first process has ended, however it did: they would keep the address, and nobody would
watch them.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from router.errors import RouterError
from router.web.running import stop_signals

_log: Final = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
"""The longest pause between two starts of a worker that dies at once; the pause doubles each
time."""
STABLE_SECONDS: Final = 60.0
"""A worker that lived so long is started again at once."""
GRACE_SECONDS: Final = 20.0
"""How long a worker may take to keep what was learnt, after the time for requests under way. Then
it is killed."""
REFUSED: Final = (1, 2)
"""Exit codes that say that a command cannot be carried out; starting it again would not help."""


async def run_workers(
    command: Callable[[int], Sequence[str]],
    number: int,
    *,
    listening: socket.socket,
    environment: Mapping[str, str],
    drain_seconds: float,
    started: Callable[[], None],
    died: Callable[[int], None],
) -> None:
    """Keep some workers running until this process is told to stop, then stop them.

    Call it in the main thread, which gets the signals.

    Args:
        command: the command line of the worker of a number, from 0 on.
        number: of workers.
        listening: the socket that they inherit; it is closed at the end.
        environment: their environment.
        drain_seconds: how long a worker lets requests under way go on.
        started: is called when all of them have been started.
        died: is called with the number of a worker that ended without being told to.

    Raises:
        RouterError: a worker refused to serve; it has said why on standard error.
        KeyboardInterrupt: Ctrl-C told the process to stop.
    """
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    told: list[int] = []

    def stop(name: int) -> None:
        told.append(name)
        stopping.set()

    for name in (*stop_signals(), signal.SIGINT):
        loop.add_signal_handler(name, stop, name)
    running: dict[int, asyncio.subprocess.Process] = {}

    async def start(worker: int) -> asyncio.subprocess.Process:
        running[worker] = await asyncio.create_subprocess_exec(
            *command(worker),
            stdin=asyncio.subprocess.PIPE,  # ``stop_with_the_first`` sees it end with this process
            pass_fds=[listening.fileno()],
            env=dict(environment),
            start_new_session=True,  # Ctrl-C is for this process, which tells them
        )
        if stopping.is_set():  # meanwhile, and it was not there to be told
            running[worker].terminate()
        return running[worker]

    async def keep(worker: int, process: asyncio.subprocess.Process) -> None:
        pause = FIRST_PAUSE
        while True:
            began = loop.time()
            code = await process.wait()
            if stopping.is_set():
                return
            if code in REFUSED:
                raise RouterError("a worker could not serve; what it said stands above")
            died(worker)
            if loop.time() - began > STABLE_SECONDS:
                pause = FIRST_PAUSE
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            ended = f"worker {worker} (process {process.pid}) {how}"
            _log.warning("%s; another is started in %g s", ended, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            if stopping.is_set():
                return
            process = await start(worker)

    keepers: list[asyncio.Task[None]] = []
    try:
        keepers += [
            asyncio.create_task(keep(worker, await start(worker))) for worker in range(number)
        ]
        started()
        end = asyncio.create_task(stopping.wait())
        done, _ = await asyncio.wait([end, *keepers], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        stopping.set()
        listening.close()  # or the system takes connections that no worker will answer
        await _stop(running.values(), drain_seconds + GRACE_SECONDS)
        await asyncio.gather(*keepers, return_exceptions=True)
        for name in (*stop_signals(), signal.SIGINT):
            loop.remove_signal_handler(name)
    if signal.SIGINT in told:
        raise KeyboardInterrupt


def stop_with_the_first(folder: Path) -> None:
    """Have this worker stop once the process that started it has ended, and delete the folder that
    it could not. Call it in the worker's loop."""
    loop, pipe = asyncio.get_running_loop(), sys.stdin.fileno()

    def ended() -> None:
        loop.remove_reader(pipe)
        shutil.rmtree(folder, ignore_errors=True)
        signal.raise_signal(signal.SIGTERM)

    loop.add_reader(pipe, ended)


async def _stop(processes: Iterable[asyncio.subprocess.Process], seconds: float) -> None:
    """Tell processes to stop; kill those that are still running after some seconds."""
    alive = [process for process in processes if process.returncode is None]
    for process in alive:
        process.terminate()
    waiting = [asyncio.create_task(process.wait()) for process in alive]
    if waiting:
        await asyncio.wait(waiting, timeout=seconds)
    for process in alive:
        if process.returncode is None:
            process.kill()
    await asyncio.gather(*waiting)
