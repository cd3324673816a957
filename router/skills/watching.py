"""Watches folders: a thread that gives hints when the disk should be read again.

An event of the file system is only used as a hint to read the disk. So it does no harm if the
system reports too much, too little or the wrong path, as long as every change is soon followed by a
hint:

- Each folder is watched by itself, not recursively, and the list is made the way skills are
  searched for. A recursive watch follows links out of the root (watchfiles 1.3 does: a link to
  /usr takes seconds and thousands of watches), and wakes up for every file below .git.
- When a folder appears, disappears or is replaced, the list is made anew. When the new watch has
  started, a hint follows, because changes in between have caused no event.
- On every tick one ``stat`` for each root checks that it exists and is still the same folder. That
  covers cases without an event: a root that appears later, a renamed parent, a link that points
  elsewhere, a file system that is mounted.
- Every ``RESCAN_SECONDS`` there is a hint without an event, in case one was lost: the kernel drops
  events when its queue is full, and network file systems send none.

If the system gives no events (no more watches are left, or ``WATCHFILES_FORCE_POLLING``), there is
a hint every ``POLL_SECONDS``. Watchfiles' own polling is not used: the manager compares contents
anyway, and by file times two saves within one tick of the clock look like one.
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
"""How often the roots are checked, and how long a new watch needs before it reports all events."""
STEP_MS: Final = 20
"""How often watchfiles looks for events, and the quiet time after which it reports them. Its
default of 50 would add 80 ms to every save; 10 would double the wake-ups of an idle process."""
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
            hint: called on the watcher's thread, for the first time when the first watch has
                started. The argument is True after an event, when more may follow, and False
                without one.
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
        """Start the thread. The first hint means that the first watch has started."""
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
        """Give hints for events until the list of folders to watch may have changed."""
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
        has_started = False
        file = self._file_state()
        with closing(events):
            for changes in events:
                touched = (now := self._file_state()) != file
                file = now
                if not has_started or changes or touched or self._clock() >= self._due:
                    self._give_hint(RESCAN_SECONDS, event=bool(changes or touched))
                must_restart = _identities(self._roots()) != roots or any(
                    kind is not Change.modified and (path in folders or os.path.isdir(path))  # noqa: PTH112
                    for kind, path in changes
                )
                if not has_started:  # a folder may have been made after its parent was listed
                    must_restart = must_restart or _folders(roots) != folders
                    has_started = True
                if must_restart:
                    return

    def _wait_for_a_root(self, roots: dict[Path, tuple[int, int]]) -> None:
        self._give_hint(RESCAN_SECONDS)
        while not self._stopping.is_set() and _identities(self._roots()) == roots:
            self._pause()

    def _poll(self, reason: str, *, until: float) -> None:
        """Give hints without events until a time; then native events are tried again."""
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
    """How changes of these folders are noticed. To find out, they are watched for a moment."""
    has_started = threading.Event()
    reports: list[WatchReport] = []

    def hint(_event: bool) -> None:
        reports.append(watcher.report)
        has_started.set()

    watcher = FolderWatcher(lambda: roots, hint=hint, polling=polling)
    watcher.start()
    has_started.wait()
    watcher.stop()
    return reports[0]


def _identities(roots: tuple[Path, ...]) -> dict[Path, tuple[int, int]]:
    """The device and inode of each root at the moment."""
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
    """Why native events are not used; empty if they are."""
    if polling is not None:
        return "asked for" if polling else ""
    forced = os.environ.get("WATCHFILES_FORCE_POLLING", "")
    wanted = forced.lower() not in ("", "false", "disable", "disabled")
    return "WATCHFILES_FORCE_POLLING is set" if wanted else ""
