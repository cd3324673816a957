"""Observers are notified of changes of the catalog, reliably and in order.

Every observer has a lane of its own: a queue, and a task that exists only while there is something
to deliver. So a slow or failing observer delays no other. Changes are delivered

- in order and one at a time; each begins at the catalog at which the last delivered one ended;
- at least once, while the router is open. A change is delivered when ``on_catalog_change`` has
  returned. If it raises, it is called again after a growing pause. After the last attempt the
  failure is reported; the next change then includes the failed one, because it begins at the last
  delivered;
- with the names of failed attempts, because the observer may have acted on some of them: the next
  change contains them even if the catalog has changed back.

A slow observer does not fill the memory: when ``MAX_PENDING`` changes wait, the last of them is
extended instead of adding another one. If changes that were never attempted cancel each other,
nothing is delivered.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from router.concurrency.tasks import raise_if_cancelled
from router.skills.changes import CatalogChange

MAX_PENDING: Final = 16
"""Changes that wait in one lane, at most; further ones are merged into the last."""
PAUSES: Final = (0.1, 0.2, 0.4, 0.8)
"""Seconds before the second attempt to tell an observer of a change, the third, and so on."""

_log: Final = logging.getLogger(__name__)


class CatalogObserver(Protocol):
    """An object that is notified of changes. ``ObserverConformance`` tests an implementation."""

    @property
    def name(self) -> str:
        """For reports; unique among the observers of one catalog."""
        ...

    async def on_catalog_change(self, change: CatalogChange) -> None:
        """Act on a change, and return when it has been acted on.

        The same change may come twice, which must do no harm, and ``change.removed`` may contain
        names that this observer has never seen. If an exception is raised, the change counts as not
        delivered. The event loop is shared: longer work belongs into a thread.
        """
        ...


@dataclass(frozen=True, slots=True)
class ObserverReport:
    """The state of an observer.

    Attributes:
        name: the observer.
        delivered: changes that were delivered; merged ones count as one.
        pending: changes that wait, the one under way included.
        failures: attempts that raised.
        given_up: changes for which every attempt failed.
        is_behind: whether there is a change that is not delivered.
        last_error: of the last failed attempt, as ``Type: message``; None when there was none.
    """

    name: str
    delivered: int
    pending: int
    failures: int
    given_up: int
    is_behind: bool
    last_error: str | None


class Observers:
    """Delivers changes to observers. Belongs to the event loop that it is used on."""

    def __init__(
        self,
        observers: Iterable[CatalogObserver] = (),
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """The order in which different observers are notified is not defined; ``sleep`` waits."""
        self._sleep = sleep
        self._lanes: dict[str, _Lane] = {}
        for observer in observers:
            self.add(observer)

    def add(self, observer: CatalogObserver) -> None:
        """Notify this observer, too, from the next change on.

        Raises ValueError if there is one with its name.
        """
        if observer.name in self._lanes:
            raise ValueError(f"there is an observer named {observer.name!r} already")
        self._lanes[observer.name] = _Lane(observer, self._sleep)

    async def remove(self, name: str) -> None:
        """Stop notifying an observer; a call under way is cancelled. Unknown names are ignored."""
        lane = self._lanes.pop(name, None)
        if lane is not None:
            await lane.aclose()

    def publish(self, change: CatalogChange) -> None:
        """Queue a change for every observer, and return at once."""
        for lane in self._lanes.values():
            lane.offer(change)

    async def drain(self) -> None:
        """Wait until nothing is left to deliver: every change was delivered or given up."""
        while tasks := [task for lane in self._lanes.values() if (task := lane.wake())]:
            await asyncio.wait(tasks)

    async def aclose(self) -> None:
        """Remove every observer. What was not delivered is dropped."""
        for name in tuple(self._lanes):
            await self.remove(name)

    def reports(self) -> tuple[ObserverReport, ...]:
        """The state of each observer, in the order in which they were added."""
        return tuple(lane.report() for lane in self._lanes.values())


class _Lane:
    """One observer, the changes that wait for it, and the task that delivers them."""

    def __init__(
        self, observer: CatalogObserver, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._observer = observer
        self._name = observer.name
        self._sleep = sleep
        self._pending: deque[CatalogChange] = deque()
        self._unfinished: CatalogChange | None = None
        self._task: asyncio.Task[None] | None = None
        self._delivered = self._failures = self._given_up = 0
        self._last_error: str | None = None

    def offer(self, change: CatalogChange) -> None:
        if len(self._pending) < MAX_PENDING:
            self._pending.append(change)
        else:
            self._pending[-1] = CatalogChange.between(self._pending[-1].before, change.after)
        self.wake()

    def wake(self) -> asyncio.Task[None] | None:
        """The task that is delivering; None when there is nothing to deliver."""
        if self._pending and (self._task is None or self._task.done()):
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._deliver_all(), name=f"observer {self._name}")
        return self._task if self._pending else None

    async def aclose(self) -> None:
        self._pending.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def report(self) -> ObserverReport:
        return ObserverReport(
            self._name,
            delivered=self._delivered,
            pending=len(self._pending),
            failures=self._failures,
            given_up=self._given_up,
            is_behind=bool(self._pending) or self._unfinished is not None,
            last_error=self._last_error,
        )

    async def _deliver_all(self) -> None:
        while self._pending:
            change, missed = self._pending[0], self._unfinished
            if missed is not None:
                change = CatalogChange.between(missed.before, change.after, touched=missed.names)
            # Set before the attempt, because this task may be cancelled in the middle of it.
            self._unfinished = change
            if change.is_empty or await self._deliver(change):
                self._unfinished = None
                self._delivered += 1
            else:
                self._given_up += 1
                _log.error("observer %s gave up on: %s; %s", self._name, change, self._last_error)
            if self._pending:  # unless closed meanwhile
                self._pending.popleft()

    async def _deliver(self, change: CatalogChange) -> bool:
        """Whether one of the attempts succeeded."""
        for pause in (0.0, *PAUSES):
            if pause:
                await self._sleep(pause)
            try:
                await self._observer.on_catalog_change(change)
            except asyncio.CancelledError as error:
                raise_if_cancelled()
                self._failed(error)  # something inside the observer was cancelled, not this task
            except Exception as error:  # noqa: BLE001 - an observer is anybody's code and may
                # raise anything; it is reported, and must not end the lane.
                self._failed(error)
            else:
                return True
        return False

    def _failed(self, error: BaseException) -> None:
        self._failures += 1
        self._last_error = f"{type(error).__name__}: {error}"
