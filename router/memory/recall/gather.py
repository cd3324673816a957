"""Asks many layers, a few at a time, each within a deadline. No layer can delay or break the
answer.

``Gatherer.gather`` gives one report per layer: what it found, and how the call went. Layers that
run on the event loop are asked ``LAYERS_AT_A_TIME`` at a time, those in threads
``threads_at_a_time``; the deadline of a layer begins when it is asked. The number is low for
threads because they share one interpreter, so that layers which compute slow each other down: over
100,000 memories on two busy cores the slowest layer of a recall took 39 ms with six at a time and
23 ms with two, and all layers together took no longer. Anybody may write a layer, so:

* While other layers wait for their turn, a layer gets at most half of the time that is left. So
  layers that hang leave time for those that come after them.
* A layer on the event loop is a task. When it is late it is cancelled and given a moment to end. A
  task that ignores this goes on, and stays in ``running`` until it ends.
* A layer that blocks is asked in daemon threads of this module. A hung thread cannot be killed, and
  the interpreter would wait for threads of ``concurrent.futures`` when it exits. Layers share the
  threads; each layer has at most ``CALLS_AT_A_TIME`` of them, and its further calls wait in a
  queue.
* A layer is skipped as busy while ``CALLS_AT_A_TIME`` of its calls run past their deadline. A layer
  that fails or is late several times in a row is stopped by a circuit breaker for a while.
* An error inside a layer becomes part of its report, and never an exception of a task that nobody
  awaits.
* Everything that a layer returns is checked, item by item. One wrong item makes the whole report an
  error: a layer that breaks one rule (above all the one about scopes) cannot be trusted in the
  others.

None of this helps against an ``async`` layer that blocks the event loop; such a layer has to be
written as a blocking one.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import logging
import math
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from router.concurrency.breaker import CircuitBreaker, GuardedCall
from router.errors import ConfigurationError
from router.memory.model import (
    AnyLayer,
    BlockingLayer,
    LayerQuery,
    LayerReport,
    LayerStatus,
    MemoryItem,
    MemoryLayer,
    Scope,
)
from router.memory.recall.answers import LayerState
from router.result import LayerChoice

_log = logging.getLogger(__name__)

LAYERS_AT_A_TIME: Final = 6
THREADS_AT_A_TIME: Final = 2
CALLS_AT_A_TIME: Final = 2
"""Threads that one blocking layer may occupy, and late calls at which any layer is skipped as
busy."""
_GRACE_SECONDS: Final = 0.002
"""How long a cancelled task has to end; a task that awaits something ends in one turn of the
loop."""
_CLOSE_SECONDS: Final = 0.5
_JOIN_SECONDS: Final = 0.1
_REASON_CHARACTERS: Final = 200

_Answer: TypeAlias = tuple[MemoryItem, ...] | str
"""What a layer found, or why it failed."""


class Gatherer:
    """Asks layers, a few at a time; see the module's text. Belongs to one event loop. ``specs`` are
    the ``LayerSpec`` of the layers, by name, in the order of ``layers``.

    Args:
        layers: each is asked on the event loop if its ``search`` is a coroutine function, else in
            a thread.
        layer_seconds: deadline of each layer, from when it is asked.
        threads_at_a_time: how many layers in threads are asked at a time: few if they compute,
            ``LAYERS_AT_A_TIME`` if they wait for something.
        breaker_failures: failures (or late answers) in a row after which a layer is not asked.
        breaker_reset_seconds: how long it is not asked; then one trial call decides.

    Raises:
        ConfigurationError: two layers share a name, or one's quality is not in [0, 1].
    """

    def __init__(
        self,
        layers: Iterable[AnyLayer],
        *,
        layer_seconds: float = 0.05,
        threads_at_a_time: int = THREADS_AT_A_TIME,
        breaker_failures: int = 5,
        breaker_reset_seconds: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._layer_seconds = layer_seconds
        self._threads_at_a_time = threads_at_a_time
        self._clock = clock
        self._threads = _Threads()
        self._sources: dict[str, _Source] = {}
        self._closed = False
        for layer in layers:
            name, quality = layer.spec.name, layer.spec.quality
            if name in self._sources:
                raise ConfigurationError(f"two memory layers are named {name!r}")
            if not 0 <= quality <= 1:
                raise ConfigurationError(f"memory layer {name!r}: quality {quality} not in [0, 1]")
            breaker = CircuitBreaker(
                failures=breaker_failures, reset_seconds=breaker_reset_seconds, clock=clock
            )
            if inspect.iscoroutinefunction(layer.search):
                self._sources[name] = _LoopSource(cast(MemoryLayer, layer), breaker)
            else:
                blocking = cast(BlockingLayer, layer)
                self._sources[name] = _ThreadSource(blocking, breaker, self._threads)
        self.specs = MappingProxyType({name: one.spec for name, one in self._sources.items()})

    async def gather(
        self,
        query: LayerQuery,
        choices: Sequence[LayerChoice],
        *,
        scope: Scope,
        k: int,
        until: float = math.inf,
    ) -> tuple[LayerReport, ...]:
        """Ask the chosen layers: one report per layer, in the order of ``choices``.

        If the caller is cancelled, all calls are cancelled.

        Args:
            choices: distinct names of layers, with the weights to report.
            k: items of each layer at most, at least 1.
            until: the time, by the clock, at which all layers must be done.
        """
        if self._closed:
            raise RuntimeError("the layers are closed")
        ask = partial(self._ask, query, scope, k, until)
        turns = self._turns([choice.name for choice in choices])
        return tuple(
            await asyncio.gather(*(ask(*turns[choice.name], choice) for choice in choices))
        )

    def _turns(self, names: Iterable[str]) -> dict[str, tuple[asyncio.Semaphore, bool]]:
        """For each layer the semaphore that it must take, and whether layers of its kind are asked
        after it."""
        in_threads = {name: isinstance(self._sources[name], _ThreadSource) for name in names}
        turns: dict[str, tuple[asyncio.Semaphore, bool]] = {}
        for kind, at_a_time in ((False, LAYERS_AT_A_TIME), (True, self._threads_at_a_time)):
            asked = [name for name, threaded in in_threads.items() if threaded is kind]
            turn, last = asyncio.Semaphore(at_a_time), len(asked) - at_a_time
            turns |= {name: (turn, place < last) for place, name in enumerate(asked)}
        return turns

    def states(self) -> tuple[LayerState, ...]:
        """The state of each layer."""
        now = self._clock()
        return tuple(
            LayerState(
                name,
                source.spec.description,
                source.breaker.state,
                len(source.running),
                source.late(now),
            )
            for name, source in self._sources.items()
        )

    async def aclose(self) -> None:
        """End all calls and threads. Layers that hang get half a second, and are then named in the
        log."""
        self._closed = True
        running = [future for source in self._sources.values() for future in source.running]
        for future in running:
            future.cancel()
        if running:
            await asyncio.wait(running, timeout=_CLOSE_SECONDS)
        await self._threads.aclose()
        hanging = [name for name, source in self._sources.items() if source.running]
        if hanging:
            _log.warning("closed while memory layers hang: %s", ", ".join(hanging))

    async def _ask(
        self,
        query: LayerQuery,
        scope: Scope,
        k: int,
        until: float,
        turn: asyncio.Semaphore,
        others_wait: bool,
        choice: LayerChoice,
    ) -> LayerReport:
        """One layer's report, once it is its turn."""
        source = self._sources[choice.name]
        report = partial(LayerReport, choice.name, choice.weight)
        async with turn:
            started = self._clock()
            left = (until - started) / (2 if others_wait else 1)
            deadline = started + min(self._layer_seconds, left)
            if source.late(started) >= CALLS_AT_A_TIME:
                reason = "busy: earlier calls of it still hang"
                return report(LayerStatus.SKIPPED, 0.0, reason)
            if deadline <= started:
                return report(LayerStatus.SKIPPED, 0.0, "no time was left to ask it")
            guard = source.breaker.try_call()
            if guard is None:
                return report(LayerStatus.SKIPPED, 0.0, "left alone after failures in a row")
            with guard:
                future = source.start(query, scope, k, deadline)
                try:
                    await asyncio.wait({future}, timeout=deadline - started)
                    milliseconds = (self._clock() - started) * 1000
                    return report(*_outcome(future, source, guard, milliseconds))
                finally:
                    if not future.done():
                        future.cancel()
                        await asyncio.wait({future}, timeout=_GRACE_SECONDS)


def _outcome(
    future: asyncio.Future[_Answer], source: _Source, guard: GuardedCall, milliseconds: float
) -> tuple[LayerStatus, float, str, tuple[MemoryItem, ...]]:
    """The report on a call whose time is over; the circuit breaker is told the result."""
    if not future.done():
        reason = f"no answer within {milliseconds:.0f} ms"
        if future in source.running:
            guard.failed()
        else:  # it never ran because of many queries at once, so the layer did not fail
            reason += ", spent in line for a thread"
        return LayerStatus.TIMEOUT, milliseconds, reason, ()
    answer = "the call was cancelled" if future.cancelled() else future.result()
    if isinstance(answer, str):
        guard.failed()
        return LayerStatus.ERROR, milliseconds, answer, ()
    guard.succeeded()
    if not answer:
        return LayerStatus.EMPTY, milliseconds, "nothing found", ()
    return LayerStatus.OK, milliseconds, f"{len(answer)} found", answer


class _Source(ABC):
    """One layer, its circuit breaker, and its calls under way.

    ``running`` maps each call to its deadline. A call stays in it until it has really ended, also
    if nobody waits for it any more.
    """

    def __init__(self, layer: AnyLayer, breaker: CircuitBreaker) -> None:
        self.spec = layer.spec
        self.breaker = breaker
        self.running: dict[asyncio.Future[_Answer], float] = {}

    def late(self, now: float) -> int:
        """The number of calls that still run past their deadline."""
        return sum(1 for deadline in self.running.values() if deadline <= now)

    @abstractmethod
    def start(
        self, query: LayerQuery, scope: Scope, k: int, deadline: float
    ) -> asyncio.Future[_Answer]:
        """Begin a call. The future never gets an exception; it may be cancelled."""


class _LoopSource(_Source):
    """A layer that is asked on the event loop."""

    def __init__(self, layer: MemoryLayer, breaker: CircuitBreaker) -> None:
        super().__init__(layer, breaker)
        self._layer = layer

    def start(
        self, query: LayerQuery, scope: Scope, k: int, deadline: float
    ) -> asyncio.Future[_Answer]:
        task = asyncio.ensure_future(self._ask(query, scope, k))
        self.running[task] = deadline
        task.add_done_callback(self.running.pop)
        return task

    async def _ask(self, query: LayerQuery, scope: Scope, k: int) -> _Answer:
        try:
            found = await self._layer.search(query, scope=scope, k=k)
            return _checked(found, self.spec.name, scope, k)
        except Exception as error:  # noqa: BLE001 - a layer is anyone's code; it may raise anything
            return _failure(self.spec.name, error)


class _ThreadSource(_Source):
    """A layer that is asked in a thread."""

    def __init__(self, layer: BlockingLayer, breaker: CircuitBreaker, threads: _Threads) -> None:
        super().__init__(layer, breaker)
        self._layer = layer
        self._threads = threads
        self._queue: deque[tuple[asyncio.Future[_Answer], Callable[[], None]]] = deque()

    def start(
        self, query: LayerQuery, scope: Scope, k: int, deadline: float
    ) -> asyncio.Future[_Answer]:
        future: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        run = partial(self._run, partial(self._ask, query, scope, k), future, deadline)
        if len(self.running) < CALLS_AT_A_TIME:
            run()
        else:
            self._queue.append((future, run))
        return future

    def _ask(self, query: LayerQuery, scope: Scope, k: int) -> _Answer:
        try:
            found = self._layer.search(query, scope=scope, k=k)
            return _checked(found, self.spec.name, scope, k)
        except BaseException as error:  # noqa: BLE001 - as above; SystemExit must not end the thread
            return _failure(self.spec.name, error)

    def _run(
        self, work: Callable[[], _Answer], future: asyncio.Future[_Answer], deadline: float
    ) -> None:
        self.running[future] = deadline
        self._threads.run(work, partial(self._ended, future))

    def _ended(self, future: asyncio.Future[_Answer], answer: _Answer) -> None:
        del self.running[future]
        if not future.done():
            future.set_result(answer)
        while self._queue:
            following, run = self._queue.popleft()
            if not following.done():
                run()
                return


class _Threads:
    """Daemon threads; another one is started only while all are at work."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._at_work = 0
        self._idle = asyncio.Event()

    def run(self, work: Callable[[], _Answer], done: Callable[[_Answer], None]) -> None:
        """Do ``work`` in a thread, then call ``done`` with its result on the event loop."""
        self._at_work += 1
        self._idle.clear()
        if self._at_work > len(self._threads):
            name = f"memory-layer-{len(self._threads)}"
            thread = threading.Thread(target=self._serve, name=name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the job must wait for one of the other threads
                _log.warning("no thread for a memory layer: %s", error)
            else:
                self._threads.append(thread)
        self._jobs.put(partial(self._do, asyncio.get_running_loop(), work, done))

    async def aclose(self) -> None:
        """End the threads; a thread that hangs ends when its work does."""
        if self._at_work:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._idle.wait()
        for _ in self._threads:
            self._jobs.put(None)
        until = time.monotonic() + _JOIN_SECONDS
        for thread in self._threads:  # idle threads end within microseconds
            thread.join(max(0.0, until - time.monotonic()))
        self._threads.clear()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _do(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[], _Answer],
        done: Callable[[_Answer], None],
    ) -> None:
        answer = work()
        with suppress(RuntimeError):  # the event loop was closed in the meantime
            loop.call_soon_threadsafe(self._done, done, answer)

    def _done(self, done: Callable[[_Answer], None], answer: _Answer) -> None:
        self._at_work -= 1
        if self._at_work == 0:
            self._idle.set()
        done(answer)


def _failure(layer: str, error: BaseException) -> str:
    """Why a layer failed, in one line, cut because an error text may be long and quote memories."""
    _log.debug("memory layer %s failed", layer, exc_info=error)
    words = " ".join("".join(c if c.isprintable() else " " for c in str(error)).split())
    return f"{type(error).__name__}: {words}"[:_REASON_CHARACTERS].rstrip(": ")


def _checked(answer: object, layer: str, scope: Scope, k: int) -> _Answer:
    """The items that a layer returned, or a sentence on the rule that they break."""
    if isinstance(answer, str) or not isinstance(answer, Sequence):
        return f"it returned no list of items but {type(answer).__name__}"
    items = tuple(itertools.islice(answer, k + 1))
    if len(items) > k:
        return f"it returned more than the {k} items asked for"
    for item in items:
        if not isinstance(item, MemoryItem):
            return f"it returned no item but {type(item).__name__}"
        if item.layer != layer:
            return f"it returned an item of another layer, {item.layer!r}"
        if not scope.sees(item.scope):
            return "it returned an item that the scope must not see"
        if item.score_kind is None or item.score_kind is not items[0].score_kind:
            return "it returned an item without a score, or scores of several kinds"
    return items
