"""The manager: keeps the catalog in step with its sources, one step at a time.

Every step does the same: it reads the sources into a new snapshot (in a thread), has it installed,
makes it current, and notifies the observers. Steps never overlap. Whatever happens during a step is
covered by one more step afterwards. A step that fails leaves everything as it was, is reported, and
is tried again: at the next hint, or after a pause that doubles each time.

A source that reports its own changes is read again at once, and no other source is. Folders do not
report changes: they are watched while ``watch`` runs. Events of folders are debounced: a step
begins when the folders have been quiet for ``DEBOUNCE_SECONDS``, or at the latest after
``MAX_DEBOUNCES`` times as long, because a file that is written all the time must not hide changes
of the others. All skills that changed by then are in one change, each once, as they are on the
disk.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Self

from router.concurrency.tasks import in_thread
from router.skills.changes import CatalogChange
from router.skills.discovery import existing_root
from router.skills.enrichment import Enrichment
from router.skills.folders import FolderSource
from router.skills.observers import CatalogObserver, Observers
from router.skills.registry import SkillRegistry
from router.skills.sources import SkillSource
from router.skills.watching import RESCAN_SECONDS, STEP_MS, FolderWatcher, WatchMode, WatchReport

RETRY_SECONDS: Final = 1.0
"""The pause after a failed step; it doubles each time, up to ``RESCAN_SECONDS``."""
DEBOUNCE_SECONDS: Final = 0.2
MAX_DEBOUNCES: Final = 10
"""Debounce times after which a step begins although the folders are not quiet."""

Install = Callable[[CatalogChange], Awaitable[None]]
"""Makes a change effective (builds the index of ``change.after``, swaps both in one assignment), or
raises and leaves everything as it was. It may be called for the same change again, and for one that
is about reports only, with equal versions."""

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ManagerReport:
    """The state of the manager.

    Attributes:
        watch: what is watched, and how.
        steps: changes that were installed.
        failures: steps that failed in a row; 0 after one that succeeded.
        last_error: of the last failed step, as ``Type: message``; None when there was none.
    """

    watch: WatchReport
    steps: int
    failures: int
    last_error: str | None


class SkillManager:
    """Loads, reloads, unloads and watches skills. Belongs to the event loop it is used on. An error
    of ``install`` is raised by the method that called it; then nothing has changed, and the next
    step tries again.

        manager = SkillManager(registry, install=install, observers=[observer])
        async with manager.watch():
            ...
        await manager.aclose()
    """

    def __init__(
        self,
        registry: SkillRegistry,
        *,
        install: Install,
        observers: Iterable[CatalogObserver] = (),
        polling: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """No folder is watched yet; sources that report their changes are followed from now on.

        Args:
            registry: holds the catalog. When other code reloads it, the next step covers that.
            install: must succeed before a snapshot becomes current.
            observers: are notified of every change after it has become current.
            polling: True or False in place of what ``WATCHFILES_FORCE_POLLING`` says.
            clock: seconds, monotonic.
            sleep: how to wait.
        """
        self.registry = registry
        self.observers = Observers(observers, sleep=sleep)
        self._install = install
        self._installed = registry.catalog
        self._polling = polling
        self._clock = clock
        self._sleep = sleep
        self._stepping = asyncio.Lock()
        self._hinted = asyncio.Event()
        self._last_event = -math.inf
        self._watcher: FolderWatcher | None = None
        self._follower: asyncio.Task[None] | None = None
        self._retry: asyncio.Task[None] | None = None
        self._pause = RETRY_SECONDS
        self._steps = self._failures = 0
        self._last_error: str | None = None
        self._loop = asyncio.get_running_loop()
        self._changed_sources: set[SkillSource] = set()
        self._catching_up: asyncio.Task[None] | None = None
        self._subscriptions: dict[SkillSource, Callable[[], None]] = {}
        self._subscribe()

    async def reload(self, name: str | None = None) -> CatalogChange:
        """Read every source now; with a name, bring back that skill if it was unloaded.

        Raises:
            UnknownSkill: there is no skill of that name afterwards.
        """
        async with self._stepping:
            hidden = self.registry.catalog.hidden
            change = await self._step(hidden=hidden if name is None else hidden - {name})
        if name is not None:
            change.after.get(name)
        return change

    async def load(self, folder: str | Path, *, strongest: bool = False) -> CatalogChange:
        """Add a folder of skills, or the folder of one skill, as the weakest source, unless it is
        searched already, or as the ``strongest``; what was unloaded there comes back.

        Raises:
            ConfigurationError: it is not a folder.
        """
        root = existing_root(Path(folder))
        added = FolderSource([root])
        inside = await in_thread(added.read)
        names = {skill.name for skill in inside.skills}
        async with self._stepping:
            sources = self.registry.sources
            if strongest:
                sources = (added, *(other for other in sources if other.roots != (root,)))
            elif root not in self.registry.roots:
                sources = (*sources, added)
            hidden = self.registry.catalog.hidden - names
            return await self._step(sources=sources, hidden=hidden)

    async def unload(self, name: str) -> CatalogChange:
        """Leave every skill of this name out, until ``load`` or ``reload`` asks for it.

        Raises:
            UnknownSkill: there is none of that name.
        """
        async with self._stepping:
            current = self.registry.catalog
            current.get(name)
            return await self._step(hidden=current.hidden | {name})

    async def use_enrichments(self, peer_enrichments: Mapping[str, Enrichment]) -> CatalogChange:
        """Use these enrichments of other processes, by the digest of the skill's text, in place of
        the earlier ones."""
        async with self._stepping:
            self.registry.peer_enrichments = peer_enrichments
            return await self._step(only=frozenset())

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[Self]:
        """Follow the disk while the block runs."""
        try:
            await self.start()
            yield self
        finally:
            await self.stop()

    async def start(self) -> None:
        """Begin to follow the disk; from the return on, no change goes unnoticed. What changed
        before is found by a first look, which follows by itself."""
        if self._watcher is not None:
            raise RuntimeError("the skills are being watched already")
        loop = asyncio.get_running_loop()

        def hint(event: bool) -> None:
            try:
                loop.call_soon_threadsafe(self._hint, event)
            except RuntimeError:  # the loop was closed without stop()
                watcher.abandon()

        watcher = self._watcher = FolderWatcher(
            lambda: self.registry.roots,
            file=self.registry.enrichment,
            hint=hint,
            polling=self._polling,
            clock=self._clock,
        )
        self._hinted.clear()
        watcher.start()
        await self._hinted.wait()
        self._follower = asyncio.create_task(self._follow(), name="skills-follower")

    async def stop(self) -> None:
        """End what ``start`` began. A step under way is finished first."""
        watcher, self._watcher = self._watcher, None
        if watcher is None:
            return
        await in_thread(watcher.stop)
        async with self._stepping:  # a step that fails leaves a task for another try
            await _end(self._follower, self._retry)
            self._follower = self._retry = None

    async def aclose(self) -> None:
        """Stop watching and notifying observers; changes that are not delivered yet are dropped."""
        await self.stop()
        for end in self._subscriptions.values():
            end()
        self._subscriptions.clear()
        self._changed_sources.clear()
        async with self._stepping:  # as above
            await _end(self._catching_up, self._retry)
        await self.observers.aclose()

    def report(self) -> ManagerReport:
        """The state of the manager; ``observers.reports()`` gives that of the observers."""
        watch = WatchReport(WatchMode.OFF) if self._watcher is None else self._watcher.report
        return ManagerReport(watch, self._steps, self._failures, self._last_error)

    async def _step(
        self,
        *,
        sources: tuple[SkillSource, ...] | None = None,
        hidden: frozenset[str] | None = None,
        only: frozenset[SkillSource] | None = None,
        quick: bool = False,
    ) -> CatalogChange:
        """Read the sources, install the change, notify observers. The caller holds
        ``_stepping``."""
        while True:
            prepared = await in_thread(
                partial(
                    self.registry.prepare, sources=sources, hidden=hidden, only=only, quick=quick
                ),
                leaves=True,
            )
            change = prepared
            if prepared.before is not self._installed:  # other code reloaded the registry
                change = CatalogChange.between(self._installed, prepared.after)
            if change.is_empty:
                break
            await self._install(change)
            if self.registry.commit(prepared):
                self._installed = change.after
                self._steps += 1
                self.observers.publish(change)
                self._subscribe()
                break
        self._failures, self._pause = 0, RETRY_SECONDS
        return change

    def _subscribe(self) -> None:
        """Subscribe to new sources, and end the subscriptions to those that are gone."""
        sources = self.registry.sources
        for source in tuple(self._subscriptions.keys() - set(sources)):
            self._subscriptions.pop(source)()
        for source in sources:
            if source not in self._subscriptions:
                on_changed = partial(self._on_source_changed, source)
                self._subscriptions[source] = source.subscribe(on_changed)
                if not source.roots:  # it may have changed since it was read
                    self._note_change(source)

    def _on_source_changed(self, source: SkillSource) -> None:
        """A source has changed; called on any thread."""
        with suppress(RuntimeError):  # the loop was closed without ``aclose``
            self._loop.call_soon_threadsafe(self._note_change, source)

    def _note_change(self, source: SkillSource) -> None:
        if source not in self._subscriptions:
            return
        self._changed_sources.add(source)
        if self._catching_up is None or self._catching_up.done():
            self._catching_up = self._loop.create_task(self._catch_up(), name="sources-follower")

    async def _catch_up(self) -> None:
        while self._changed_sources:
            async with self._stepping:
                changed = frozenset(self._changed_sources)
                self._changed_sources.clear()
                await self._try_step(only=changed)

    async def _follow(self) -> None:
        while True:
            await self._hinted.wait()
            await self._quiet()
            async with self._stepping:
                self._hinted.clear()  # a hint from here on leads to another step
                await self._try_step(quick=True)

    async def _try_step(
        self, *, only: frozenset[SkillSource] | None = None, quick: bool = False
    ) -> None:
        """A step that nobody waits for; its error is logged and tried again later."""
        try:
            await self._step(only=only, quick=quick)
        except Exception as error:  # noqa: BLE001 - whatever an installation can run into (an
            # encoder, a store, a full disk) must not end the following; it is tried again.
            self._failed(error)

    async def _quiet(self) -> None:
        """Wait until there was no event for the debounce time, but not longer than the maximum."""
        latest = self._clock() + MAX_DEBOUNCES * DEBOUNCE_SECONDS
        while True:
            until = min(self._last_event + DEBOUNCE_SECONDS, latest)
            if (left := until - self._clock()) <= 0:
                return
            await self._sleep(left)

    def _hint(self, event: bool) -> None:
        if event:
            self._last_event = self._clock() - STEP_MS / 1000  # quiet since then
        self._hinted.set()

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        self._last_error = f"{type(error).__name__}: {error}"
        _log.error("skills not reloaded, next try in %g s: %s", self._pause, self._last_error)
        if self._retry is not None:
            self._retry.cancel()
        self._retry = asyncio.create_task(self._try_again(self._pause), name="skills-retry")
        self._pause = min(2 * self._pause, RESCAN_SECONDS)

    async def _try_again(self, seconds: float) -> None:
        await self._sleep(seconds)
        for source in self.registry.sources:
            self._note_change(source)


async def _end(*tasks: asyncio.Task[None] | None) -> None:
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
