"""The state of an open router: opens its parts, exchanges the snapshot, closes everything.

Opening builds the first snapshot. From then on every change of the catalog goes through ``_apply``,
the only place where the snapshot is exchanged. A request reads ``snapshot`` once and never waits.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeVar

from router.concurrency.loop_thread import OwnLoop
from router.concurrency.tasks import BackgroundTasks, in_thread, one_matrix_thread
from router.errors import ForkedProcess, StoreError
from router.events import Events, OptionalPart, Reloaded
from router.stages.answers import LocalAnswers

if TYPE_CHECKING:
    from router.cluster.cluster import Cluster
    from router.components import Snapshot
    from router.learning.learner import Learner
    from router.skills.changes import CatalogChange
    from router.skills.manager import SkillManager
    from router.skills.observers import CatalogObserver
    from router.stages.answers import AnswerCache

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)

RETRY_SECONDS: Final = 5.0
"""The pause before a store that could not be opened is tried again. Each further pause is twice as
long, up to ``LONGEST_PAUSE_SECONDS``."""
LONGEST_PAUSE_SECONDS: Final = 300.0


class Runtime:
    """The parts of one router, from opening to closing. Belongs to one event loop.

    Attributes:
        snapshot: the snapshot that the next request runs on; None while the router is not open.
        closed: whether it is closed for good.
    """

    def __init__(
        self,
        build: Callable[[], Snapshot],
        cache: AnswerCache,
        events: Events,
        *,
        cluster: Cluster | None,
        observers: Sequence[CatalogObserver],
        polling: bool | None,
    ) -> None:
        """Nothing is read yet. ``build`` makes the first snapshot, which takes seconds. ``polling``
        is the setting ``watch.polling``; the others are parts of ``SemanticRouter``."""
        self.snapshot: Snapshot | None = None
        self.closed = False
        self._build = build
        self._cache = cache
        self._events = events
        self._cluster = cluster
        self._observers = observers
        self._polling = polling
        self._first: Snapshot | None = None  # the first snapshot, while opening is not finished
        self._manager: SkillManager | None = None
        self._turn = asyncio.Lock()
        self._can_decide = False  # whether what only decisions need is loaded, too
        self._steps_done = 0  # how many of the further steps of opening are done
        self.background = BackgroundTasks(_log)
        # Always the same thread, because memory that it has freed is reused by this thread only.
        self._builder = ThreadPoolExecutor(1, thread_name_prefix="skills-builder")
        self._process: int | None = None  # the id of the process that opened the router
        self._loop = OwnLoop("router", "SyncSemanticRouter")

    @property
    def current(self) -> Snapshot:
        """The snapshot; raises ``RuntimeError`` where the router is not open."""
        return _opened(self.snapshot)

    @property
    def manager(self) -> SkillManager:
        """Loads, reloads, unloads and watches the skills; raises as ``current`` does."""
        return _opened(self._manager)

    @property
    def ready(self) -> Snapshot | None:
        """The snapshot; None while the router is not open yet.

        Raises:
            ForkedProcess: it was opened in the process that this one was forked from.
            RuntimeError: it is closed, or belongs to another event loop.
        """
        if self._process is not None and self._process != os.getpid():
            raise ForkedProcess("router")
        if self.closed:
            raise RuntimeError("this router is closed")
        self._loop.check()
        return self.snapshot

    async def open(self, *, to_decide: bool = False) -> Snapshot:
        """See ``SemanticRouter.open``."""
        # Outside the lock, so that a closed router raises at once.
        if self.ready is not None and (self._can_decide or not to_decide):
            return self.current
        self._process = os.getpid()
        async with self._turn:
            if self.ready is None:
                self.snapshot = await self._open()
                self._first = None  # else its memory would be kept beside that of later snapshots
                if self._cluster is not None:
                    self._cluster.follow_skills(self.manager)
            if to_decide and not self._can_decide:
                await in_thread(partial(_load, self.current), executor=self._builder)
                self._can_decide = True
            return self.current

    async def _open(self) -> Snapshot:
        from router.skills.manager import SkillManager

        def build() -> None:
            # The thread stores the result: if this caller is cancelled, the next one uses it.
            with one_matrix_thread():
                self._first = self._build()

        if self._first is None:
            await in_thread(build, executor=self._builder)
        steps = [self._cache.open, self._begin_learning_or_later]
        if self._cluster is not None:
            steps.append(partial(self._begin_together, self._cluster))
        for step in steps[self._steps_done :]:  # after a failure, the next caller continues here
            await step()
            self._steps_done += 1
        first = _opened(self._first)
        parts = first.parts
        if parts.store.fault:
            self._open_later("vectors", parts.store.fault, partial(in_thread, parts.store.reopen))
        if isinstance(self._cache, LocalAnswers) and (fault := self._cache.fuzzy.fault):
            self._open_later("answers", fault, partial(in_thread, self._cache.fuzzy.reopen))
        self._manager = SkillManager(
            parts.registry,
            install=self._apply,
            observers=self._observers,
            polling=self._polling,
        )
        return first

    async def _begin_together(self, cluster: Cluster) -> None:
        first = _opened(self._first)
        await cluster.begin(first.catalog, first.parts.learner, first.parts.registry.sources)

    async def _begin_learning_or_later(self) -> None:
        try:
            await self._begin_learning()
        except StoreError as error:  # routing works without learning
            _log.error("nothing is learnt for now: %s", error)
            self._open_later("evidence", str(error), self._learn_late)

    async def _begin_learning(self) -> None:
        """Open the evidence, restore what was learnt, and put the learner into the snapshot."""
        from router.skills.changes import CatalogChange

        before = _opened(self.snapshot or self._first)
        # The thread stores the learner here, so that it is closed if this caller is cancelled.
        opened: list[Learner | None] = []
        begun = False
        try:
            await in_thread(lambda: opened.append(before.parts.open_learner()))
            (learner,) = opened
            if learner is None:
                return
            await learner.begin(before.catalog)
            begun = not self.closed
        finally:
            if not begun and opened and opened[0] is not None:
                await opened[0].aclose()
        if not begun:
            return
        after = _opened(self.snapshot or self._first)
        if after.catalog is not before.catalog:
            learner.catalog_changed(CatalogChange.between(before.catalog, after.catalog))
        after = replace(after, parts=replace(after.parts, learner=learner))
        if self.snapshot is None:
            self._first = after
        else:
            self.snapshot = after

    async def _learn_late(self) -> None:
        await self._begin_learning()
        learner = self.current.parts.learner
        if self._cluster is not None and learner is not None:
            await self._cluster.learn_late(learner)

    def _open_later(self, name: str, fault: str, reopen: Callable[[], Awaitable[None]]) -> None:
        """Continue without a store, whose fault is logged already, and try in the background to
        open it until this succeeds."""
        part = OptionalPart(name, self._events)
        part.failed(fault)
        self.background.run(self._keep_opening(name, part, reopen))

    async def _keep_opening(
        self, name: str, part: OptionalPart, reopen: Callable[[], Awaitable[None]]
    ) -> None:
        pause = RETRY_SECONDS
        while True:
            await asyncio.sleep(pause)
            try:
                await reopen()
            except StoreError as error:
                part.failed(str(error))
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                continue
            _log.warning("the store of %s is used again", name)
            part.worked()
            return

    async def _apply(self, change: CatalogChange) -> None:
        """Build the next snapshot in a thread, then exchange the current one for it."""
        from router.skills.shadow_warnings import warn_of_shadowed

        began = perf_counter()
        before = self.current

        def build() -> Snapshot:
            with one_matrix_thread():
                return before.updated(change.after)

        after = await in_thread(build, executor=self._builder)
        # The current parts, because the evidence may have been opened meanwhile.
        self.snapshot = after = replace(after, parts=self.current.parts)
        if after.parts.learner is not None:
            after.parts.learner.catalog_changed(change)
        warn_of_shadowed(change.after, change.before)
        if self._events.listening:
            self._events.emit(Reloaded(change, perf_counter() - began))

    async def aclose(self, *, after: Callable[[], Awaitable[None]]) -> None:
        """Refuse to open from now on, wait for ``after``, and close everything. Closing twice is
        fine. In a forked process, the parts of its parent are not touched.

        Raises:
            RuntimeError: the router belongs to another event loop that still runs; it stays open.
        """
        if self._process is not None and self._process != os.getpid():
            self.closed = True
            return
        self._loop.check(closing=True)
        self.closed = True
        # The stack closes in reverse order. Each part is closed even if another one fails to close,
        # or if the caller is cancelled.
        async with self._turn, AsyncExitStack() as closing:
            if self._cluster is not None:
                closing.push_async_callback(self._cluster.aclose)
            closing.push_async_callback(self._cache.aclose)
            closing.callback(self._builder.shutdown)
            if (last := self.snapshot or self._first) is not None:
                parts = last.parts
                closing.push_async_callback(parts.llm.aclose)
                closing.push_async_callback(parts.listings.aclose)
                closing.push_async_callback(in_thread, parts.store.close)
                if parts.learner is not None:
                    closing.push_async_callback(parts.learner.aclose)
            closing.callback(self._forget)
            closing.push_async_callback(self.background.aclose)
            if self._manager is not None:
                closing.push_async_callback(self._manager.aclose)
            if self._cluster is not None:  # it brings changes of others to manager and learner
                closing.push_async_callback(self._cluster.stop_taking)
            closing.push_async_callback(after)

    def _forget(self) -> None:
        self._first = self.snapshot = self._manager = None


def _load(snapshot: Snapshot) -> None:
    """Load what decisions need and nothing else does: modules with many patterns, words and
    weights. The first decision would load it on the event loop, where others wait meanwhile."""
    import router.decision
    from router.retrieval.bundled_encoder import bundled_words

    del router
    bundled_words()
    snapshot.parts.classifier.load()


def _opened(part: T | None) -> T:
    if part is None:
        raise RuntimeError("the router is not open; use `async with` or call open() first")
    return part
