"""Watching folders: a thread that says when it is worth looking at the disk again.

An event is only a hint to read the disk. Nothing else is concluded from it, so it does no harm when
the system reports too much, too little or the wrong path. What matters is that every change is
followed by a hint soon:

- Each folder is watched by itself, not recursively, and the list is made the way skills are
  searched for. A recursive watch follows links out of the root (watchfiles 1.3 does: a link to
  /usr takes seconds and thousands of watches), and wakes up for every file below .git.
- When a folder comes, goes or is replaced, the list is made anew, and a hint follows once the new
  watch stands: what was written in between had none.
- Whether a root is there, and is still the same folder, is looked at on every tick, by one
  ``stat`` a root. That also covers what sends no event: a root that appears later, a parent that
  is renamed, a link that is pointed elsewhere, a file system that is mounted.
- Every ``RESCAN_SECONDS`` there is a hint without any event, which heals a lost one (the kernel
  drops events when its queue is full, network file systems send none).

Where the system has no events to give (no more watches, ``WATCHFILES_FORCE_POLLING``), hints come
every ``POLL_SECONDS``. That is not watchfiles' own polling: the manager compares contents
anyway, and file times do not tell two saves in one tick apart.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from router.errors import ConfigurationError
from router.skills.discovery import scan_root
from router.skills.folders import FileState, state_of

TICK_MS: Final = 60
"""How often the roots are looked at, and how long a new watch needs before it is trusted."""
STEP_MS: Final = 20
"""How often watchfiles looks for events, and the quiet time after which it hands them over. Its
own 50 would add 80 ms to every save, 10 would double the wake-ups of an idle process."""
RESCAN_SECONDS: Final = 30.0
"""Between two hints without an event."""
POLL_SECONDS: Final = 1.0
"""Between two hints where there are no native events."""
BATCH_MS: Final = 100
"""How long watchfiles collects events at most."""

_NO_ROOT: Final = (-1, -1)


class WatchMode(StrEnum):
    OFF = "off"
    NATIVE = "native"
    POLLING = "polling"


@dataclass(frozen=True, slots=True)
class WatchReport:
    """What is watched.

    Attributes:
        mode: how changes are noticed.
        reason: why it is not by native events; empty when it is.
        folders: how many folders are watched; 0 when polling.
    """

    mode: WatchMode
    reason: str = ""
    folders: int = 0


class FolderWatcher:
    """Calls ``hint`` when something below the roots may have changed. Runs one thread."""

    def __init__(
        self,
        roots: Callable[[], tuple[Path, ...]],
        *,
        file: Path | None = None,
        hint: Callable[[bool], None],
        polling: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A watcher that is not started yet.

        Args:
            roots: gives the folders to watch; asked again on every tick.
            file: one more file to follow, wherever it lies; it is looked at on every tick.
            hint: called on the watcher's thread, first when the first watch stands. True: there
                was an event, more may follow. False: it is just time to look.
            polling: True or False in place of what ``WATCHFILES_FORCE_POLLING`` says.
            clock: seconds, monotonic.
        """
        self._roots = roots
        self._file = file
        self._hint = hint
        self._clock = clock
        self._due = clock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="skills-watcher", daemon=True)
        self._forced = _why_polling(polling)
        self.report = WatchReport(WatchMode.OFF)

    def start(self) -> None:
        """Start the thread. The first hint says that the first watch stands."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and wait for it; it takes some milliseconds. Stopping twice is fine."""
        self.abandon()
        self._thread.join()

    def abandon(self) -> None:
        """Let the thread end, without waiting for it."""
        self._stopping.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._forced:
                self._poll(self._forced, until=math.inf)
                continue
            roots = _identities(self._roots())
            folders = _folders(roots)
            self.report = WatchReport(WatchMode.NATIVE, folders=len(folders))
            try:
                if folders:
                    self._listen(roots, folders)
                else:
                    self._wait_for_a_root(roots)
            except FileNotFoundError:  # a folder went while the watch was set up
                self._give_hint(RESCAN_SECONDS, event=True)
                self._pause()
            except (OSError, RuntimeError) as error:  # no watches left; watchfiles' own failures
                self._due = now = self._clock()
                self._poll(f"no native events: {error}", until=now + RESCAN_SECONDS)
        self.report = WatchReport(WatchMode.OFF)

    def _listen(self, roots: dict[Path, tuple[int, int]], folders: frozenset[str]) -> None:
        """Hint at events until the folders to watch may be others."""
        from watchfiles import Change, watch

        events = watch(
            *folders,
            watch_filter=None,
            recursive=False,
            force_polling=False,
            ignore_permission_denied=False,  # True also hides that no watches are left
            debounce=BATCH_MS,
            step=STEP_MS,
            rust_timeout=TICK_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            stop_event=self._stopping,
        )
        stands = False
        file = self._file_state()
        with closing(events):
            for changes in events:
                touched = (now := self._file_state()) != file
                file = now
                if not stands or changes or touched or self._clock() >= self._due:
                    self._give_hint(RESCAN_SECONDS, event=bool(changes or touched))
                others = _identities(self._roots()) != roots or any(
                    kind is not Change.modified and (path in folders or os.path.isdir(path))  # noqa: PTH112
                    for kind, path in changes
                )
                if not stands:  # a folder may have come after its parent was listed
                    others = others or _folders(roots) != folders
                    stands = True
                if others:
                    return

    def _wait_for_a_root(self, roots: dict[Path, tuple[int, int]]) -> None:
        self._give_hint(RESCAN_SECONDS)
        while not self._stopping.is_set() and _identities(self._roots()) == roots:
            self._pause()

    def _poll(self, reason: str, *, until: float) -> None:
        """Hint without events; native ones are tried again after that."""
        self.report = WatchReport(WatchMode.POLLING, reason)
        while not self._stopping.is_set() and (now := self._clock()) < until:
            if now >= self._due:
                self._give_hint(POLL_SECONDS)
            self._pause()

    def _file_state(self) -> FileState | None:
        return None if self._file is None else state_of(self._file)

    def _pause(self) -> None:
        self._stopping.wait(TICK_MS / 1000)

    def _give_hint(self, next_within: float, *, event: bool = False) -> None:
        self._due = self._clock() + next_within
        self._hint(event)


def how_watched(roots: tuple[Path, ...], *, polling: bool | None = None) -> WatchReport:
    """How changes of these folders are noticed, found out by watching them for a moment."""
    stands = threading.Event()
    reports: list[WatchReport] = []

    def hint(_event: bool) -> None:
        reports.append(watcher.report)
        stands.set()

    watcher = FolderWatcher(lambda: roots, hint=hint, polling=polling)
    watcher.start()
    stands.wait()
    watcher.stop()
    return reports[0]


def _identities(roots: tuple[Path, ...]) -> dict[Path, tuple[int, int]]:
    """Which folder each root is at the moment, by device and inode."""
    found = {}
    for root in roots:
        try:
            status = root.stat()
        except OSError:
            found[root] = _NO_ROOT
        else:
            found[root] = (status.st_dev, status.st_ino)
    return found


def _folders(roots: dict[Path, tuple[int, int]]) -> frozenset[str]:
    """The folders that are searched for skills, without links on the way."""
    found: set[str] = set()
    for root, identity in roots.items():
        if identity != _NO_ROOT:
            with suppress(ConfigurationError):  # it has gone meanwhile
                found.update(scan_root(root, trusted=tuple(roots)).folders)
    return frozenset(found)


def _why_polling(polling: bool | None) -> str:
    """Why native events are not wanted; empty when they are."""
    if polling is not None:
        return "asked for" if polling else ""
    forced = os.environ.get("WATCHFILES_FORCE_POLLING", "")
    wanted = forced.lower() not in ("", "false", "disable", "disabled")
    return "WATCHFILES_FORCE_POLLING is set" if wanted else ""
