"""The watcher: when it hints, what it watches, and that it ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import watchfiles

from router.skills.watching import FolderWatcher, WatchMode, WatchReport


class Hints:
    """Counts hints, and waits for them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.count = self.events = 0
        self.watcher: FolderWatcher
        self.report = WatchReport(WatchMode.OFF)
        """What was watched at the last hint."""

    def __call__(self, event: bool) -> None:
        with self._changed:
            self.count += 1
            self.events += event
            self.report = self.watcher.report
            self._changed.notify_all()

    def wait_beyond(self, count: int) -> None:
        self.wait_until(lambda: self.count > count)

    def wait_for_a_new_watch(self, old: WatchReport) -> None:
        self.wait_until(lambda: self.report is not old)

    def wait_until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, 10)


@contextmanager
def watching(
    *roots: Path, clock: Callable[[], float] = lambda: 0.0, **options: Any
) -> Iterator[tuple[FolderWatcher, Hints]]:
    """A watcher whose clock stands still, so that only events and changed roots give hints."""
    hints = Hints()
    watcher = FolderWatcher(lambda: roots, hint=hints, clock=clock, **options)
    hints.watcher = watcher
    watcher.start()
    hints.wait_beyond(0)
    try:
        yield watcher, hints
    finally:
        watcher.stop()


def test_there_is_a_hint_when_the_watch_stands_and_one_after_each_change(tmp_path: Path) -> None:
    with watching(tmp_path) as (watcher, hints):
        assert (watcher.report.mode, watcher.report.reason) == (WatchMode.NATIVE, "")
        assert hints.events == 0
        for text in ("one", "two"):
            before = hints.count
            (tmp_path / "SKILL.md").write_text(text)
            hints.wait_beyond(before)
        assert hints.events == hints.count - 1
    assert watcher.report.mode is WatchMode.OFF


def test_one_more_file_is_followed_wherever_it_lies(tmp_path: Path) -> None:
    (tmp_path / "skills").mkdir()
    file = tmp_path / "enrichment.jsonl"
    with watching(tmp_path / "skills", file=file) as (watcher, hints):
        assert watcher.report.folders == 1
        for text in ("one", "four", None):
            before = hints.count
            if text is None:
                file.unlink()
            else:
                file.write_text(text)
            hints.wait_beyond(before)
        assert hints.events == hints.count - 1


def test_folders_are_watched_as_they_are_searched(tmp_path: Path) -> None:
    root, outside = tmp_path / "skills", tmp_path / "outside"
    for folder in (root / "git" / "deep", root / ".git" / "objects", outside / "a" / "b"):
        folder.mkdir(parents=True)
    (root / "link").symlink_to(outside)
    with watching(root) as (watcher, _):
        assert watcher.report.folders == 3  # the root, git, git/deep


def test_a_link_to_the_whole_disk_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "everything").symlink_to("/")
    with watching(tmp_path) as (watcher, _):
        assert watcher.report.folders == 1


def test_a_new_folder_is_watched_and_what_was_put_into_it_meanwhile_is_hinted_at(
    tmp_path: Path,
) -> None:
    with watching(tmp_path) as (_, hints):
        (tmp_path / "a" / "b").mkdir(parents=True)
        hints.wait_until(lambda: hints.report.folders == 3)
        before = hints.count
        (tmp_path / "a" / "b" / "SKILL.md").write_text("x")
        hints.wait_beyond(before)


def test_a_folder_that_comes_while_the_watch_is_set_up_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*folders: str, **options: Any) -> Any:
        (tmp_path / "late").mkdir(exist_ok=True)
        return native(*folders, **options)

    native = watchfiles.watch
    monkeypatch.setattr(watchfiles, "watch", meanwhile)
    with watching(tmp_path) as (_, hints):
        hints.wait_until(lambda: hints.report.folders == 2)


def test_a_folder_that_goes_while_the_watch_is_set_up_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*folders: str, **options: Any) -> Any:
        if (tmp_path / "early").exists():
            (tmp_path / "early").rmdir()
        return native(*folders, **options)

    native = watchfiles.watch
    monkeypatch.setattr(watchfiles, "watch", meanwhile)
    (tmp_path / "early").mkdir()
    with watching(tmp_path) as (watcher, hints):
        hints.wait_until(lambda: hints.report.folders == 1)
        assert watcher.report.mode is WatchMode.NATIVE


def test_a_folder_that_is_moved_away_is_not_watched_any_more(tmp_path: Path) -> None:
    root = tmp_path / "skills"
    (root / "git").mkdir(parents=True)
    with watching(root) as (_, hints):
        (root / "git").rename(tmp_path / "away")
        hints.wait_until(lambda: hints.report.folders == 1)


@pytest.mark.parametrize("replaced", ["skills", "skills/git"])
def test_a_folder_that_is_replaced_at_once_is_watched_on(tmp_path: Path, replaced: str) -> None:
    folder = tmp_path / replaced
    folder.mkdir(parents=True)
    with watching(tmp_path / "skills") as (watcher, hints):
        for _round in range(3):
            old = watcher.report
            folder.rmdir()
            folder.mkdir()  # often with the same inode
            hints.wait_for_a_new_watch(old)
            before = hints.count
            (folder / "SKILL.md").write_text("x")
            hints.wait_beyond(before)
            before = hints.count
            (folder / "SKILL.md").unlink()
            hints.wait_beyond(before)


@pytest.mark.parametrize("parent", ["root", "nearer/root"])
def test_a_root_may_come_go_and_come_back(tmp_path: Path, parent: str) -> None:
    root = tmp_path / parent
    with watching(root) as (watcher, hints):
        for _round in range(3):
            before = hints.count
            root.mkdir(parents=True)
            hints.wait_beyond(before)
            before = hints.count
            (root / "SKILL.md").write_text("x")
            hints.wait_beyond(before)
            before = hints.count
            (root / "SKILL.md").unlink()
            root.rmdir()
            hints.wait_beyond(before)
        assert watcher.report.mode is WatchMode.NATIVE


def test_renaming_the_parent_of_a_root_is_noticed(tmp_path: Path) -> None:
    root = tmp_path / "project" / "skills"
    root.mkdir(parents=True)
    with watching(root) as (_, hints):
        before = hints.count
        (tmp_path / "project").rename(tmp_path / "renamed")
        hints.wait_beyond(before)


def test_a_linked_root_is_followed_to_where_it_leads_now(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link = tmp_path / "current"
    link.symlink_to("one")
    with watching(link) as (_, hints):
        before = hints.count
        (tmp_path / "new").symlink_to("two")
        (tmp_path / "new").replace(link)
        hints.wait_beyond(before)
        before = hints.count
        (tmp_path / "two" / "SKILL.md").write_text("x")
        hints.wait_beyond(before)


def test_there_is_a_hint_without_an_event_from_time_to_time(tmp_path: Path) -> None:
    now = [0.0]
    with watching(tmp_path, clock=lambda: now[0]) as (_, hints):
        for later in (30.0, 60.0):
            before = hints.count
            now[0] = later
            hints.wait_beyond(before)
        assert hints.events == 0


# Without native events


@pytest.mark.parametrize("value", ["1", "true"])
def test_polling_can_be_forced_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", value)
    with watching(tmp_path) as (watcher, _):
        assert watcher.report.mode is WatchMode.POLLING
        assert watcher.report.reason == "WATCHFILES_FORCE_POLLING is set"
    with watching(tmp_path, polling=False) as (watcher, _):
        assert watcher.report.mode is WatchMode.NATIVE
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "false")
    with watching(tmp_path) as (watcher, _):
        assert watcher.report.mode is WatchMode.NATIVE


def test_polling_hints_every_second(tmp_path: Path) -> None:
    now = [0.0]
    with watching(tmp_path, clock=lambda: now[0], polling=True) as (watcher, hints):
        assert watcher.report.mode is WatchMode.POLLING
        for later in (1.0, 2.0):
            before = hints.count
            now[0] = later
            hints.wait_beyond(before)


def test_without_watches_left_it_polls_and_tries_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The system's limit cannot be reached here without disturbing other processes.
    def no_watches_left(*folders: str, **options: Any) -> None:
        raise OSError(28, "OS file watch limit reached")

    now = [0.0]
    native = watchfiles.watch
    monkeypatch.setattr(watchfiles, "watch", no_watches_left)
    with watching(tmp_path, clock=lambda: now[0]) as (watcher, hints):
        assert str(watcher.report.mode) == "polling"
        assert "OS file watch limit reached" in watcher.report.reason
        monkeypatch.setattr(watchfiles, "watch", native)
        now[0] = 30.0
        hints.wait_until(lambda: hints.report.mode is WatchMode.NATIVE)
        before = hints.count
        (tmp_path / "SKILL.md").write_text("x")
        hints.wait_beyond(before)
        assert str(watcher.report.mode) == "native"


def test_stopping_ends_the_thread_and_gives_the_handles_back(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / str(number)).mkdir()
    threads, handles = threading.active_count(), len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    rounds = 20
    for _round in range(rounds):
        with watching(tmp_path) as (watcher, _):
            pass
        watcher.stop()
    assert threading.active_count() == threads
    # The library closes the last of its handles a moment later; a leak would be 20 of them.
    assert len(os.listdir("/proc/self/fd")) < handles + rounds  # noqa: PTH208
