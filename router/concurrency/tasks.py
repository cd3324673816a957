"""Helpers for work beside other work: background tasks, threads, cancellation, giving way."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Any, Final, ParamSpec, TypeVar

TURNS_OF_A_ROUTE: Final = 4
"""How many turns of the event loop a route takes. ``give_way`` lets as many pass, so that a route
under way is answered meanwhile."""

CANCEL_SECONDS: Final = 0.1
"""The pause between two cancellations of a task that does not end."""

_limiting: Final = threading.Lock()
"""Held by the block that limits the threads of numpy's library."""

P = ParamSpec("P")
T = TypeVar("T")


def tell_failure(log: logging.Logger, task: asyncio.Task[None]) -> None:
    """Log in a line why a task that nobody waits for has failed, and where."""
    if not task.cancelled() and (error := task.exception()) is not None:
        frame = extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}, line {frame.lineno}, in {frame.name}"
        log.error("in the background: %s: %s (%s)", type(error).__name__, error, place)


class BackgroundTasks:
    """Tasks in the background, which only ``aclose`` waits for; belongs to one event loop."""

    def __init__(self, log: logging.Logger) -> None:
        """No task yet; ``log`` is told of those that fail."""
        self._log = log
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task; ``aclose`` cancels it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        tell_failure(self._log, task)

    async def aclose(self) -> None:
        """Cancel what is under way and wait until it has ended. It is cancelled again and again,
        because a client of the network may take a cancellation for a lost connection."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=CANCEL_SECONDS)


def raise_if_cancelled() -> None:
    """End the task that was told to, where a library has taken that for a fault of its own, or has
    swallowed it because an answer came at the same moment.

    Raises:
        asyncio.CancelledError: it was told to end.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


async def in_thread(
    work: Callable[[], T], *, executor: Executor | None = None, leaves: bool = False
) -> T:
    """Run work in a thread. Everything here that leaves the event loop's thread does it by this
    function, and never by ``asyncio.to_thread``, so that two questions are answered each time.

    May a caller that is cancelled leave the work behind? A thread cannot be cancelled, so the work
    goes on. It must not where it writes, opens or locks something: it would write while the next
    caller does the same, and nobody would close what it opens. So this function does not return
    before the work has ended. With ``leaves`` it returns at once, for work that only reads or
    computes: whoever cancels, because of a deadline above all, need not wait for a result that
    nobody wants.

    May the work hang, because it waits for another machine? Then it needs ``leaves``, and an
    ``executor`` of its own, such as ``DaemonThreads``. Without one the threads of the event loop
    are used. They are few, a program that this package is part of uses them, too, and all of it
    would wait for that machine.

    The work sees the caller's context variables, such as the id that log lines of a request show.
    """
    in_context = partial(copy_context().run, work)
    task = asyncio.get_running_loop().run_in_executor(executor, in_context)
    if leaves:
        return await task
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):  # who closes cancels again and again
                await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # else the event loop complains that nobody has asked for it
        raise


class DaemonThreads(Executor):
    """Threads for work that may hang. The interpreter ends without them; it would wait for those of
    a ``ThreadPoolExecutor``. Each ends by itself when there is no more work."""

    def __init__(self, most: int, name: str) -> None:
        """No thread yet, and never more than ``most``, which is at least one."""
        self._most = most
        self._name = name
        self._running = 0
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changing = threading.Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Begin the work as soon as there is a thread for it."""
        future: Future[T] = Future()
        with self._changing:
            self._waiting.append((future, partial(fn, *args, **kwargs)))
            if self._running < self._most:
                threading.Thread(target=self._work, name=self._name, daemon=True).start()
                self._running += 1
        return future

    def _work(self) -> None:
        while True:
            with self._changing:
                if not self._waiting:
                    self._running -= 1
                    return
                future, work = self._waiting.popleft()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 - whoever waits is told of each
                    future.set_exception(error)


@contextmanager
def one_matrix_thread() -> Iterator[None]:
    """Meanwhile numpy's matrix products use one thread, in the whole process as far as its BLAS
    library knows no other way.

    The library would use a thread for each core. The matrices here are small: with two threads a
    fit over 16 skills took three times as long on two quiet cores, and ten times as long on busy
    ones, because the threads wait for each other.

    Of two blocks that overlap only the first sets the limit, and takes it back when it ends. The
    second one would take the limit for the number that there was before, and leave it behind.
    """
    import numpy as np  # loads the library that is limited
    from threadpoolctl import threadpool_limits

    del np
    if not _limiting.acquire(blocking=False):
        yield
        return
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        _limiting.release()


async def give_way() -> None:
    """Let the requests that wait for the event loop be answered first."""
    for _ in range(TURNS_OF_A_ROUTE):
        await asyncio.sleep(0)
