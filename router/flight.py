"""Helpers for asynchronous work: single flight, background tasks, admission, threads."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from typing import Any, Final, Generic, TypeVar

from router.errors import Overloaded

TURNS_OF_A_ROUTE: Final = 4
"""How many turns of the event loop a route takes. ``give_way`` lets as many pass, so that a route
under way is answered meanwhile."""

SLICE_SECONDS: Final = 0.01
"""How long requests may compute in one round of the event loop before the others wait in line."""

CANCEL_SECONDS: Final = 0.1
"""The pause between two cancellations of a task that does not end."""

T = TypeVar("T")


@dataclass(slots=True)
class _Flight(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


class SingleFlight(Generic[T]):
    """Runs at most one task a key; belongs to the event loop that first uses it.

    A caller that is cancelled leaves the others their answer. When the last caller is cancelled
    the work is cancelled too, so no work goes on without a caller.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}
        self._ending: set[asyncio.Task[T]] = set()  # cancelled, because all callers have left

    async def do(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of ``work()``, or of the same key's work that is already under way.

        Raises:
            Exception: whatever ``work`` raises, to every caller that waits for it.
        """
        flight = self._flights.get(key)
        if flight is None:
            flight = _Flight(asyncio.create_task(work()))
            self._flights[key] = flight
        flight.waiting += 1
        try:
            # The shield keeps one caller's cancellation from reaching the shared task.
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0:
                # Landed, or nobody is left: a later caller must not join a dying task.
                if self._flights.get(key) is flight:
                    del self._flights[key]
                if not flight.task.done():
                    flight.task.cancel()
                    self._ending.add(flight.task)
                    flight.task.add_done_callback(self._ending.discard)

    async def finish(self) -> None:
        """Wait until no work is under way, however it ends, also none that nobody waits for."""
        while self._flights or self._ending:
            under_way = {flight.task for flight in self._flights.values()}
            await asyncio.wait(under_way | self._ending)


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


class Admission:
    """Lets requests in: each at its turn, and never more than ``most`` that wait or are decided.

    A request that finds the event loop free goes on at once. When those of one round of the loop
    have computed for ``SLICE_SECONDS``, the next ones wait in line. One goes on in the next round,
    and twice as many as in the last round whenever that took less than half of the slice. So a line
    comes to an end as soon as those who wait need no more than a slice together.

        await admission.turn()
        with admission:
            await admission.turn(is_inside=True)
            ...  # decide, for some milliseconds
    """

    def __init__(self, most: int) -> None:
        """No request is inside yet."""
        self._most = most
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._round_began: float | None = None
        self._going_on = 0  # from the line, in this round

    async def turn(self, *, is_inside: bool = False) -> None:
        """Go on at once if this round of the loop has time left, else wait in line.

        Args:
            is_inside: whether the request was let in before. Then it goes before those that were
                not.

        Raises:
            Overloaded: see ``__enter__``.
        """
        if self._round_began is None:
            self._begin_round()
        elif self._waiting or perf_counter() - self._round_began > SLICE_SECONDS:
            turn = asyncio.get_running_loop().create_future()
            if is_inside:
                self._waiting.appendleft(turn)
                await turn
            else:
                with self:
                    self._waiting.append(turn)
                    await turn

    def __enter__(self) -> None:
        """Raises ``Overloaded`` when too many requests are inside already."""
        if self._inside >= self._most:
            raise Overloaded(self._inside)
        self._inside += 1

    def __exit__(self, *error: object) -> None:
        self._inside -= 1

    @property
    def empty(self) -> bool:
        """Whether no request is inside."""
        return self._inside == 0

    def _begin_round(self) -> None:
        self._round_began = perf_counter()
        asyncio.get_running_loop().call_soon(self._next_round, self._round_began)

    def _next_round(self, last_began: float) -> None:
        self._round_began = None
        quick = perf_counter() - last_began < SLICE_SECONDS / 2
        most, self._going_on = max(1, 2 * self._going_on) if quick else 1, 0
        while self._waiting and self._going_on < most:
            turn = self._waiting.popleft()
            if not turn.done():  # else its request was cancelled
                turn.set_result(None)
                self._going_on += 1
        if self._going_on:
            self._begin_round()


async def in_thread(work: Callable[[], T], *, executor: Executor | None = None) -> T:
    """Run work in a thread, the loop's own or ``executor``'s, and never return before it has ended.

    A thread cannot be cancelled. Were it left behind, it would go on writing to the index while
    the next caller does the same, and nobody would close what it opens.
    """
    task = asyncio.get_running_loop().run_in_executor(executor, work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):  # who closes cancels again and again
                await asyncio.wait([task])
        raise


async def give_way() -> None:
    """Let the requests that wait for the event loop be answered first."""
    for _ in range(TURNS_OF_A_ROUTE):
        await asyncio.sleep(0)
