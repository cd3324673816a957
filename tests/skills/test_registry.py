"""The current snapshot and its exchange."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from manifest_texts import put

from router.errors import ConfigurationError, UnknownSkill
from router.settings.settings import Settings
from router.skills.enrichment import Enrichment
from router.skills.folders import FolderSnapshot, FolderSource
from router.skills.registry import SkillRegistry
from router.tools.source import ToolSource


def test_the_skills_are_there_from_the_start(tmp_path: Path) -> None:
    put(tmp_path / "git")
    put(tmp_path / "hidden", more="disable-model-invocation: true\n")
    registry = SkillRegistry([tmp_path])
    assert registry.list_available_skills() == ("git",)
    assert registry.get_skill_manifest("hidden").description == "x"
    with pytest.raises(UnknownSkill, match="did you mean git"):
        registry.get_skill_manifest("gitt")


def test_default_roots_may_come_later_each_at_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    registry = SkillRegistry.configured(Settings(shipped_skills=False))
    assert registry.catalog.notices == ()  # nobody has named them, so nobody misses them
    # From the weakest to the strongest: each takes the name from the one before.
    for root in (".claude/skills", ".agents/skills", "skills", "../home/.agents/skills"):
        place = tmp_path / "project" / root
        put(place.resolve() / "git")
        registry.reload()
        assert registry.get_skill_manifest("git").path == place.resolve() / "git" / "SKILL.md"
    assert len(registry.catalog.shadowed) == 3


def test_a_root_that_the_settings_name_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        SkillRegistry.configured(Settings(skills=(tmp_path / "gone",)))


def test_a_relative_root_means_the_same_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "skills" / "git")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    registry = SkillRegistry([Path("skills")])
    monkeypatch.chdir(tmp_path / "elsewhere")
    registry.reload()
    assert registry.list_available_skills() == ("git",)
    assert registry.roots == (tmp_path / "skills",)


def test_readers_do_not_wait_for_a_reload_and_reloads_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "git", text="one")
    registry = SkillRegistry([tmp_path])
    started, go_on = threading.Event(), threading.Event()
    read = FolderSource.read

    def held_up(source: FolderSource, *given: Any, **options: Any) -> FolderSnapshot:
        loaded = read(source, *given, **options)
        started.set()
        assert go_on.wait(10)
        return loaded

    monkeypatch.setattr(FolderSource, "read", held_up)
    first = threading.Thread(target=registry.reload)
    put(tmp_path / "git", text="two")
    first.start()
    assert started.wait(10)
    assert registry.get_skill_manifest("git").description == "one"  # during the reload
    monkeypatch.setattr(FolderSource, "read", read)
    put(tmp_path / "git", text="three")  # the first reload has read "two" by now
    second = threading.Thread(target=registry.reload)
    second.start()
    go_on.set()
    first.join(10)
    second.join(10)
    assert registry.get_skill_manifest("git").description == "three"


# Preparing and committing


def test_what_is_prepared_becomes_current_when_it_is_committed(tmp_path: Path) -> None:
    put(tmp_path / "git")
    registry = SkillRegistry([tmp_path])
    put(tmp_path / "sql")
    change = registry.prepare()
    assert change.added == ("sql",)
    assert registry.list_available_skills() == ("git",)
    assert registry.commit(change) is True
    assert registry.catalog is change.after


def test_what_was_prepared_before_another_commit_is_refused(tmp_path: Path) -> None:
    registry = SkillRegistry([tmp_path])
    old = registry.prepare()
    put(tmp_path / "git")
    registry.reload()
    assert registry.commit(old) is False
    assert registry.list_available_skills() == ("git",)


def test_sources_and_hidden_names_change_with_the_snapshot(tmp_path: Path) -> None:
    put(tmp_path / "one" / "git")
    put(tmp_path / "two" / "sql")
    registry = SkillRegistry([tmp_path / "one"])
    sources = (*registry.sources, FolderSource([tmp_path / "two"]))
    change = registry.prepare(sources=sources, hidden=frozenset({"git"}))
    assert (change.added, change.removed) == (("sql",), ("git",))
    assert list(registry.roots) == [tmp_path / "one"]
    registry.commit(change)
    assert list(registry.roots) == [tmp_path / "one", tmp_path / "two"]
    registry.reload()
    assert registry.list_available_skills() == ("sql",)


def test_sources_that_give_what_they_gave_are_not_merged_again() -> None:
    source = ToolSource([{"name": "weather", "description": "Tells the weather."}])
    registry = SkillRegistry([source])
    before = registry.catalog
    assert registry.prepare().after is before
    assert registry.prepare(only={source}).after is before
    assert registry.prepare(hidden=frozenset({"weather"})).removed == ("weather",)
    registry.peer_enrichments = {
        before.get("weather").digest: Enrichment(skill="weather", requests=("will it rain?",))
    }
    assert registry.prepare().changed == ("weather",)


def test_one_of_many_reloads_at_once_is_the_last_and_sees_the_disk(tmp_path: Path) -> None:
    registry = SkillRegistry([tmp_path])
    go = threading.Barrier(8)

    def save_and_reload(number: int) -> None:
        go.wait(10)
        put(tmp_path / f"skill-{number}")
        registry.reload()

    threads = [threading.Thread(target=save_and_reload, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(registry.list_available_skills()) == 8
