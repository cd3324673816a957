"""Single flight: identical requests share one piece of work."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

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
