"""The conformance suite for sources of skills: the shipped ones pass it, and bad ones do not."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from router.skills.folders import FolderSource
from router.skills.manifest import SkillManifest
from router.skills.memory_source import MemorySource
from router.skills.source_conformance import SourceConformance
from router.skills.sources import SkillSource, SourceSnapshot


def skill(name: str) -> SkillManifest:
    return SkillManifest.in_memory(name, f"Does {name}.")


class TestMemorySource(SourceConformance):
    def make_source(self) -> SkillSource:
        return MemorySource()

    def add(self, source: SkillSource, name: str) -> None:
        assert isinstance(source, MemorySource)
        source.add(skill(name))

    def remove(self, source: SkillSource, name: str) -> None:
        assert isinstance(source, MemorySource)
        source.remove(name)


class TestFolderSource(SourceConformance):
    def make_source(self) -> SkillSource:
        return FolderSource([tempfile.mkdtemp()])

    def add(self, source: SkillSource, name: str) -> None:
        folder = source.roots[0] / name
        folder.mkdir()
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does {name}.\n---\nx\n")

    def remove(self, source: SkillSource, name: str) -> None:
        shutil.rmtree(source.roots[0] / name)

    def close(self, source: SkillSource) -> None:
        shutil.rmtree(source.roots[0])


class Silent(MemorySource):
    """Tells nobody of a change."""

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


class Frozen(MemorySource):
    """Gives what it gave before, whenever somebody looks quickly."""

    def read(
        self, previous: SourceSnapshot | None = None, *, quick: bool = False
    ) -> SourceSnapshot:
        return previous if previous is not None and quick else super().read()


class Nameless(MemorySource):
    """Has no name."""

    def __init__(self) -> None:
        super().__init__(name="")


class Restless(MemorySource):
    """Gives other contents each time."""

    reads = 0

    def read(
        self,
        previous: SourceSnapshot | None = None,
        *,
        quick: bool = False,
    ) -> SourceSnapshot:
        self.reads += 1
        given = super().read().skills
        fresh = [
            SkillManifest.in_memory(one.name, f"Does {one.name}, look {self.reads}.")
            for one in given
        ]
        return SourceSnapshot(tuple(fresh))


@pytest.mark.parametrize("bad", [Silent, Frozen, Nameless, Restless])
def test_a_source_that_breaks_the_contract_does_not_pass(bad: type[MemorySource]) -> None:
    class Checked(TestMemorySource):
        def make_source(self) -> SkillSource:
            return bad()

    suite = Checked()
    tests = [getattr(suite, name) for name in dir(suite) if name.startswith("test_")]
    with pytest.raises(AssertionError):
        for test in tests:
            test()


def test_the_folder_of_the_tests_is_gone() -> None:
    """``close`` of the suite is called, so nothing is left behind."""
    made: list[Path] = []

    class Watched(TestFolderSource):
        def make_source(self) -> SkillSource:
            source = super().make_source()
            made.append(source.roots[0])
            return source

    suite = Watched()
    suite.test_its_name_is_a_text_that_stays()
    assert made
    assert not made[0].exists()
