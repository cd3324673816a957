"""The manager over real folders and the real watcher: what is saved becomes current, once."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import threading
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from router.errors import ConfigurationError, UnknownSkill
from router.skills.catalog import Catalog
from router.skills.changes import CatalogChange
from router.skills.folders import FolderSource
from router.skills.manager import SkillManager
from router.skills.manifest import SkillManifest
from router.skills.memory_source import MemorySource
from router.skills.registry import SkillRegistry
from router.skills.watching import WatchMode


def text_of(name: str, text: str) -> str:
    return f"---\nname: {name}\ndescription: {text}\n---\nbody\n"


def put(folder: Path, text: str = "x") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "SKILL.md"
    path.write_text(text_of(folder.name, text))
    return path


class Recorder:
    """An observer that keeps what it was told, and waits until that fulfils a condition."""

    name = "recorder"

    def __init__(self) -> None:
        self.changes: list[CatalogChange] = []
        self._told = asyncio.Condition()

    async def on_catalog_change(self, change: CatalogChange) -> None:
        async with self._told:
            self.changes.append(change)
            self._told.notify_all()

    async def until(self, condition: Callable[[Catalog], object]) -> Catalog:
        """The first catalog told that fulfils the condition."""
        async with asyncio.timeout(120), self._told:
            await self._told.wait_for(lambda: self.changes and condition(self.changes[-1].after))
            return self.changes[-1].after


class Installer:
    """Stands for the router's part: counts, can be held up, and fails as often as told."""

    def __init__(self) -> None:
        self.installed: list[CatalogChange] = []
        self.failing = 0
        self.tried = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()
        self.running = 0

    async def __call__(self, change: CatalogChange) -> None:
        assert self.running == 0
        self.running += 1
        self.tried.set()
        try:
            await self.gate.wait()
            if self.failing:
                self.failing -= 1
                raise OSError("no space left")
            self.installed.append(change)
        finally:
            self.running -= 1


class Live:
    """A manager with a recorder and an installer, over some roots."""

    def __init__(self, *roots: Path, missing_ok: bool = False, **options: Any) -> None:
        self.recorder = Recorder()
        self.install = Installer()
        self.registry = SkillRegistry([FolderSource(roots, missing_ok=missing_ok)])
        self.manager = SkillManager(
            self.registry,
            install=self.install,
            observers=[self.recorder],
            **options,
        )

    async def until(self, condition: Callable[[Catalog], object]) -> Catalog:
        return await self.recorder.until(condition)

    async def until_described(self, name: str, text: str) -> Catalog:
        return await self.until(
            lambda catalog: name in catalog.skills and catalog.skills[name].description == text
        )


@asynccontextmanager
async def live(*roots: Path, debounce_seconds: float = 0.02, **options: Any) -> AsyncIterator[Live]:
    """Watched until the end of the block; then everything must be gone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("router.skills.manager.DEBOUNCE_SECONDS", debounce_seconds)
        setup = Live(*roots, **options)
        async with setup.manager.watch():
            yield setup
        await setup.manager.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [t for t in threading.enumerate() if t.name == "skills-watcher"] == []


@contextmanager
def always_writing(path: Path) -> Iterator[None]:
    """Writes a file again and again for as long as the block runs."""
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            path.write_text(text_of(path.parent.name, f"text {number}"))
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


# Ways of saving


def in_place(path: Path, content: str) -> None:
    path.write_text(content)


def write_and_rename(path: Path, content: str) -> None:
    temporary = path.with_name(".SKILL.md.tmp")
    temporary.write_text(content)
    temporary.replace(path)


def delete_and_create(path: Path, content: str) -> None:
    path.unlink()
    path.write_text(content)


def backup_and_create(path: Path, content: str) -> None:
    """As vim does it: a swap file, the old file set aside, a new one, the old one deleted."""
    swap, aside = path.with_name(".SKILL.md.swp"), path.with_name("SKILL.md~")
    swap.write_text("swap")
    path.rename(aside)
    path.write_text(content)
    aside.unlink()
    swap.unlink()


def over_a_link(path: Path, content: str) -> None:
    """The file becomes a link to another one in the same folder."""
    target = path.with_name(f"text-{len(content)}.md")
    target.write_text(content)
    path.unlink()
    path.symlink_to(target.name)


def in_pieces(path: Path, content: str) -> None:
    with path.open("w") as file:
        for character in content:
            file.write(character)
            file.flush()


def with_the_old_times(path: Path, content: str) -> None:
    times = path.stat()
    path.write_text(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


SAVES = [
    in_place,
    write_and_rename,
    delete_and_create,
    backup_and_create,
    over_a_link,
    in_pieces,
    with_the_old_times,
]


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.parametrize("polling", [False, True])
async def test_every_way_of_saving_is_seen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    save: Callable[[Path, str], None],
    polling: bool,
) -> None:
    monkeypatch.setattr("router.skills.watching.POLL_SECONDS", 0.02)
    path = put(tmp_path / "git", "old")
    put(tmp_path / "other")
    async with live(tmp_path, polling=polling) as setup:
        for text in ("one", "two"):  # as long as each other
            save(path, text_of("git", text))
            await setup.until_described("git", text)
        await setup.until(lambda catalog: not catalog.failures)
    assert {name for change in setup.recorder.changes for name in change.changed} == {"git"}


async def test_what_was_saved_before_the_watch_began_is_seen(tmp_path: Path) -> None:
    setup = Live(tmp_path)
    put(tmp_path / "git")
    async with setup.manager.watch():
        seen = await setup.until(lambda catalog: catalog.skills)
    await setup.manager.aclose()
    assert list(seen.skills) == ["git"]


# Folders


async def test_folders_may_come_move_and_go(tmp_path: Path) -> None:
    root = tmp_path / "skills"
    root.mkdir()
    put(tmp_path / "away" / "ready")
    async with live(root) as setup:
        put(root / "git", "one")
        await setup.until_described("git", "one")
        put(root / "deep" / "er" / "sql", "one")
        await setup.until_described("sql", "one")
        put(root / "deep" / "er" / "sql", "two")
        await setup.until_described("sql", "two")
        (tmp_path / "away" / "ready").rename(root / "ready")
        await setup.until(lambda catalog: "ready" in catalog.skills)
        (root / "deep").rename(root / "moved")
        await setup.until(lambda catalog: catalog.skills["sql"].path.is_relative_to(root / "moved"))
        put(root / "moved" / "er" / "sql", "three")
        await setup.until_described("sql", "three")
        (root / "ready").rename(tmp_path / "away" / "ready")
        await setup.until(lambda catalog: "ready" not in catalog.skills)
        shutil.rmtree(root / "moved")
        final = await setup.until(lambda catalog: "sql" not in catalog.skills)
    assert list(final.skills) == ["git"]


async def test_a_root_may_come_go_and_come_back(tmp_path: Path) -> None:
    root = tmp_path / "project" / ".agents" / "skills"
    async with live(root, missing_ok=True) as setup:
        for text in ("one", "two"):
            put(root / "git", text)
            await setup.until_described("git", text)
            put(root / "git", text + " again")
            await setup.until_described("git", text + " again")
            shutil.rmtree(tmp_path / "project")
            gone = await setup.until(lambda catalog: not catalog.skills)
            assert [notice.code for notice in gone.notices] == ["missing-root"]


async def test_a_change_of_precedence_is_seen(tmp_path: Path) -> None:
    put(tmp_path / "user" / "git", "weak")
    (tmp_path / "project").mkdir()
    async with live(tmp_path / "project", tmp_path / "user") as setup:
        put(tmp_path / "project" / "git", "strong")
        await setup.until_described("git", "strong")
        assert setup.recorder.changes[-1].shadowed == ("git",)
        shutil.rmtree(tmp_path / "project" / "git")
        await setup.until_described("git", "weak")


# What does not matter


async def test_files_that_are_no_skills_lead_to_no_step(tmp_path: Path) -> None:
    path = put(tmp_path / "git", "old")
    (tmp_path / ".git").mkdir()
    async with live(tmp_path) as setup:
        for number in range(20):
            (tmp_path / "git" / f".{number}.swp").write_text("x")
            (tmp_path / ".git" / f"index-{number}.lock").write_text("x")
            path.touch()
        in_place(path, text_of("git", "new"))
        await setup.until_described("git", "new")
        assert setup.manager.report().steps == 1


# Steps


async def test_many_saves_in_a_row_are_one_step(tmp_path: Path) -> None:
    paths = [put(tmp_path / f"skill-{number}") for number in range(20)]
    async with live(tmp_path, debounce_seconds=0.25) as setup:
        for round_ in range(5):
            for path in paths:
                path.write_text(text_of(path.parent.name, f"round {round_}"))
        await setup.until_described("skill-19", "round 4")
        [change] = setup.recorder.changes
    assert len(change.changed) == 20


async def test_a_file_that_is_written_all_the_time_does_not_keep_the_others_from_being_seen(
    tmp_path: Path,
) -> None:
    busy, other = put(tmp_path / "busy"), put(tmp_path / "other")
    async with live(tmp_path) as setup:
        with always_writing(busy):
            in_place(other, text_of("other", "new"))
            await setup.until_described("other", "new")


async def test_what_happens_during_a_step_is_one_more_step(tmp_path: Path) -> None:
    path = put(tmp_path / "git")
    async with live(tmp_path) as setup:
        setup.install.gate.clear()
        in_place(path, text_of("git", "one"))
        await setup.install.tried.wait()
        for number in range(10):
            in_place(path, text_of("git", f"more {number}"))
            put(tmp_path / f"new-{number}")
        explicit = asyncio.create_task(setup.manager.reload())
        setup.install.gate.set()
        await setup.until_described("git", "more 9")
        await explicit
        assert setup.manager.report().steps == 2


async def test_a_snapshot_becomes_current_only_after_it_was_installed(tmp_path: Path) -> None:
    path = put(tmp_path / "git", "old")
    async with live(tmp_path) as setup:
        setup.install.gate.clear()
        in_place(path, text_of("git", "new"))
        await setup.install.tried.wait()
        assert setup.registry.get_skill_manifest("git").description == "old"
        assert setup.recorder.changes == []
        setup.install.gate.set()
        await setup.until_described("git", "new")
        assert setup.registry.catalog is setup.install.installed[-1].after


async def test_a_failed_step_changes_nothing_and_is_tried_again_by_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("manager", "watching"):
        monkeypatch.setattr(f"router.skills.{module}.RESCAN_SECONDS", 3.0)
    path = put(tmp_path / "git", "old")
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    async with live(tmp_path, debounce_seconds=0.0, sleep=sleep) as setup:
        setup.install.failing = 4
        in_place(path, text_of("git", "new"))
        await setup.until_described("git", "new")
        report = setup.manager.report()
        assert (report.steps, report.failures) == (1, 0)
        assert report.last_error == "OSError: no space left"
    assert pauses == [1.0, 2.0, 3.0, 3.0]
    assert "next try in 2 s: OSError: no space left" in caplog.text


async def test_stopping_waits_for_the_step_that_is_under_way(tmp_path: Path) -> None:
    path = put(tmp_path / "git")
    setup = Live(tmp_path)
    await setup.manager.start()
    setup.install.gate.clear()
    in_place(path, text_of("git", "new"))
    await setup.install.tried.wait()
    stopping = asyncio.create_task(setup.manager.stop())
    await asyncio.sleep(0)
    setup.install.gate.set()
    await stopping
    assert setup.registry.get_skill_manifest("git").description == "new"
    await setup.manager.aclose()


async def test_closing_leaves_no_further_try_of_the_step_that_it_waited_for() -> None:
    source, install = MemorySource(), Installer()
    manager = SkillManager(SkillRegistry([source]), install=install)
    install.gate.clear()
    install.failing = 1
    source.add(SkillManifest.in_memory("git", "Commits changes."))
    await install.tried.wait()
    closing = asyncio.create_task(manager.aclose())
    await asyncio.sleep(0)  # it waits for the step now
    install.gate.set()
    await closing
    assert manager.report().failures == 1
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_lost_event_is_healed_by_the_next_look(tmp_path: Path) -> None:
    now = [0.0]
    # No event tells of this: the file behind the link lies where nothing is watched.
    (tmp_path / ".git").mkdir()
    target = tmp_path / ".git" / "text.md"
    target.write_text(text_of("git", "old"))
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "SKILL.md").symlink_to(target)
    async with live(tmp_path, clock=lambda: now[0], debounce_seconds=0.0) as setup:
        target.write_text(text_of("git", "new"))
        now[0] = 30.0
        await setup.until_described("git", "new")


async def test_what_somebody_else_reloaded_is_installed_and_told_too(tmp_path: Path) -> None:
    setup = Live(tmp_path)
    put(tmp_path / "git")
    setup.registry.reload()
    put(tmp_path / "sql")
    await setup.manager.reload()
    await setup.manager.observers.drain()
    assert [change.added for change in setup.install.installed] == [("git", "sql")]
    assert [change.added for change in setup.recorder.changes] == [("git", "sql")]


async def test_a_reload_in_the_middle_of_a_step_does_not_come_between(tmp_path: Path) -> None:
    setup = Live(tmp_path)
    put(tmp_path / "git")
    setup.install.gate.clear()
    step = asyncio.create_task(setup.manager.reload())
    await setup.install.tried.wait()
    put(tmp_path / "sql")
    setup.registry.reload()
    setup.install.gate.set()
    await step
    assert list(setup.install.installed[-1].after.skills) == ["git", "sql"]
    assert setup.registry.catalog is setup.install.installed[-1].after
    await setup.manager.observers.drain()
    assert [change.added for change in setup.recorder.changes] == [("git", "sql")]


# On request


async def test_a_reload_that_cannot_be_installed_raises_and_changes_nothing(
    tmp_path: Path,
) -> None:
    setup = Live(tmp_path)
    put(tmp_path / "git")
    setup.install.failing = 1
    with pytest.raises(OSError, match="no space left"):
        await setup.manager.reload()
    assert setup.registry.list_available_skills() == ()
    assert (await setup.manager.reload()).added == ("git",)


async def test_an_unloaded_skill_stays_away_until_it_is_asked_for(tmp_path: Path) -> None:
    path = put(tmp_path / "git", "one")
    put(tmp_path / "sql")
    async with live(tmp_path) as setup:
        assert (await setup.manager.unload("git")).removed == ("git",)
        in_place(path, text_of("git", "two"))
        put(tmp_path / "new")
        await setup.until(lambda catalog: list(catalog.skills) == ["new", "sql"])
        assert (await setup.manager.reload()).is_empty
        assert (await setup.manager.reload("git")).added == ("git",)
        assert setup.registry.get_skill_manifest("git").description == "two"
        await setup.manager.unload("git")
        assert (await setup.manager.load(tmp_path)).added == ("git",)


async def test_unknown_names_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "git")
    setup = Live(tmp_path)
    with pytest.raises(UnknownSkill, match="did you mean git"):
        await setup.manager.unload("gitt")
    with pytest.raises(UnknownSkill, match="did you mean git"):
        await setup.manager.reload("gitt")


async def test_a_loaded_folder_is_the_weakest_unless_asked_otherwise_and_is_watched(
    tmp_path: Path,
) -> None:
    put(tmp_path / "first" / "git", "first")
    path = put(tmp_path / "second" / "git", "second")
    put(tmp_path / "second" / "sql", "second")
    async with live(tmp_path / "first") as setup:
        change = await setup.manager.load(tmp_path / "second")
        assert (change.added, change.changed, change.shadowed) == (("sql",), (), ("git",))
        put(tmp_path / "second" / "sql", "edited")
        await setup.until_described("sql", "edited")
        change = await setup.manager.load(path.parent, strongest=True)
        assert change.changed == ("git",)
        assert setup.registry.roots[0] == path.parent
        in_place(path, text_of("git", "edited"))
        await setup.until_described("git", "edited")
    with pytest.raises(ConfigurationError, match="does not exist"):
        await setup.manager.load(tmp_path / "third")


# Watching


async def test_watching_is_reported(tmp_path: Path) -> None:
    setup = Live(tmp_path, polling=True)
    assert setup.manager.report().watch.mode is WatchMode.OFF
    async with setup.manager.watch():
        assert str(setup.manager.report().watch.mode) == "polling"
        with pytest.raises(RuntimeError, match="already"):
            await setup.manager.start()
    await setup.manager.stop()
    assert setup.manager.report().watch.mode is WatchMode.OFF
    async with setup.manager.watch():  # it can begin again
        put(tmp_path / "git")
        await setup.until(lambda catalog: "git" in catalog.skills)
    await setup.manager.aclose()


def test_a_loop_that_ends_without_a_stop_takes_the_watcher_with_it(tmp_path: Path) -> None:
    async def forgetful() -> threading.Thread:
        await Live(tmp_path).manager.start()
        [thread] = [t for t in threading.enumerate() if t.name == "skills-watcher"]
        return thread

    thread = asyncio.run(forgetful())
    put(tmp_path / "git")  # the next hint finds the loop closed
    thread.join(10)
    assert not thread.is_alive()


# Memory


async def test_memory_stays_flat_over_many_reloads(tmp_path: Path) -> None:
    paths = [put(tmp_path / f"skill-{number}") for number in range(5)]
    registry = SkillRegistry([tmp_path])
    told = 0

    class Counter:
        name = "counter"

        async def on_catalog_change(self, change: CatalogChange) -> None:
            nonlocal told
            told += 1

    async def install(change: CatalogChange) -> None:
        pass

    manager = SkillManager(registry, install=install, observers=[Counter()])

    async def reloads(start: int, count: int) -> int:
        for number in range(start, start + count):
            path = paths[number % 5]
            path.write_text("" if number % 7 == 0 else text_of(path.parent.name, str(number)))
            await manager.reload()
            await manager.observers.drain()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        kept = [await reloads(start, 100) for start in range(0, 500, 100)]
    finally:
        tracemalloc.stop()
    assert told == 500
    # A leak shows in every hundred; what is made once, such as a thread of the pool, shows in one.
    assert min(after - before for before, after in pairwise(kept)) < 5_000
    await manager.aclose()
