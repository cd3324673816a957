"""Skills that a program holds in memory, alone and merged with folders."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cascade import settings_for

from router import SemanticRouter
from router.errors import SourceError, UnknownSkill
from router.skills.catalog import Catalog, merge_sources
from router.skills.folders import FolderSource
from router.skills.manifest import SkillManifest
from router.skills.memory_source import MemorySource
from router.skills.sources import SkillSource


def skill(name: str, description: str = "Does a thing.") -> SkillManifest:
    return SkillManifest.in_memory(name, description)


def merged(*sources: SkillSource) -> Catalog:
    return merge_sources([(source, source.read()) for source in sources])


def test_a_skill_in_memory_holds_what_it_was_given() -> None:
    payload = object()
    made = SkillManifest.in_memory(
        " greet\nnow ", "Says hello.", body="How.", examples=["say hi"], payload=payload
    )
    assert (made.name, made.description, made.body) == ("greet now", "Says hello.", "How.")
    assert made.examples == ("say hi",)
    assert made.payload is payload
    assert not made.has_file


@pytest.mark.parametrize(
    ("name", "description", "message"),
    [
        ("", "x", "source 'mine': a name is wanted, not \"''\""),
        (None, "x", "source 'mine': a name is wanted, not 'None'"),
        ("git", "  ", "source 'mine', 'git': there is no description: nothing to route by"),
        ("git", 7, "source 'mine', 'git': there is no description: nothing to route by"),
        (
            "g" * 201,
            "x",
            f"source 'mine', '{'g' * 60}...': the name is over 200 characters",
        ),
    ],
)
def test_a_skill_without_a_name_or_a_description_is_refused(
    name: str, description: str, message: str
) -> None:
    with pytest.raises(SourceError) as caught:
        SkillManifest.in_memory(name, description, origin="mine")
    assert str(caught.value) == message


def test_skills_are_added_replaced_and_removed() -> None:
    source = MemorySource([skill("a")])
    source.add(skill("b"), skill("c"))
    source.replace(skill("b", "Does another thing."))
    source.remove("a", "c")
    assert [(m.name, m.description) for m in source.read().skills] == [("b", "Does another thing.")]


def test_a_call_that_fails_changes_nothing() -> None:
    source = MemorySource([skill("a")], name="mine")
    with pytest.raises(SourceError, match=r"source 'mine', 'a': there is one of that name already"):
        source.add(skill("b"), skill("a"))
    with pytest.raises(SourceError, match=r"source 'mine', 'b': there is one of that name already"):
        source.add(skill("b"), skill("b"))
    with pytest.raises(UnknownSkill, match="did you mean a"):
        source.remove("a", "aa")
    with pytest.raises(UnknownSkill):
        source.replace(skill("a", "new"), skill("z"))
    with pytest.raises(SourceError, match="expected a SkillManifest, not dict"):
        source.add({"name": "z"})  # type: ignore[arg-type]
    assert source.read().skills == (skill("a"),)


def test_an_earlier_source_wins_a_name(tmp_path: Path) -> None:
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "SKILL.md").write_text("---\nname: git\ndescription: a file\n---\nbody\n")
    memory, folders = MemorySource([skill("git")]), FolderSource([tmp_path])
    assert merged(memory, folders).get("git").origin == "memory"
    assert merged(folders, memory).get("git").description == "a file"
    [lost] = merged(memory, folders).shadowed
    assert lost.manifest.path == tmp_path / "git" / "SKILL.md"


async def test_what_is_added_is_routed_to_and_what_is_removed_is_not(tmp_path: Path) -> None:
    source = MemorySource([skill("weather", "Tells the weather forecast of a city.")])
    settings = settings_for(tmp_path / "state")
    async with SemanticRouter(settings, sources=[source]) as router:
        before = await router.route("play the next song in the playlist")
        assert before.selected_skills == ()
        source.add(skill("music", "Plays songs: pause, play, next song in the playlist."))
        await router.reload()
        after = await router.route("play the next song in the playlist")
        assert after.selected_skills == ("music",)
        source.remove("music")
        await router.reload()
        assert "music" not in router.catalog.skills


async def test_a_change_is_followed_without_being_asked_for(tmp_path: Path) -> None:
    told: asyncio.Queue[tuple[str, ...]] = asyncio.Queue()

    class Observer:
        name = "observer"

        async def on_catalog_change(self, change: object) -> None:
            told.put_nowait(change.added)  # type: ignore[attr-defined]

    source = MemorySource([skill("a", "Cooks soup.")])
    async with SemanticRouter(
        settings_for(tmp_path / "state"), sources=[source], observers=[Observer()]
    ):
        await asyncio.to_thread(source.add, skill("b", "Bakes bread."))
        async with asyncio.timeout(20):
            assert await told.get() == ("b",)


async def test_folders_may_stand_among_the_sources(tmp_path: Path) -> None:
    (tmp_path / "skills" / "bake").mkdir(parents=True)
    (tmp_path / "skills" / "bake" / "SKILL.md").write_text("---\ndescription: Bakes.\n---\nbody\n")
    settings = settings_for(tmp_path / "state")
    sources: list[SkillSource | str] = [MemorySource([skill("cook")]), str(tmp_path / "skills")]
    async with SemanticRouter(settings, sources=sources) as router:
        assert list(router.catalog.skills) == ["bake", "cook"]
