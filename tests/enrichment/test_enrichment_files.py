"""Where enrichments are written, and that nothing that was written is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import router
from router.enrichment.files import append, drop_replaced, file_for, one_writer
from router.errors import ConfigurationError, StoreError
from router.skills.catalog import Catalog
from router.skills.enrichment import Enrichment, read_enrichment
from router.skills.manifest import SkillManifest


def skill(path: Path) -> SkillManifest:
    return SkillManifest(name="git", description="x", body="", path=path, digest="d")


def written(name: str, *requests: str) -> Enrichment:
    return Enrichment(skill=name, requests=requests)


def test_a_skill_is_written_for_in_its_own_root(tmp_path: Path) -> None:
    roots = (tmp_path / "a", tmp_path / "b")
    for root in roots:
        root.mkdir()
    found = file_for(skill(roots[1] / "git" / "SKILL.md"), Catalog(roots=roots), named=None)
    assert found == roots[1] / "enrichment.jsonl"


def test_the_named_file_comes_first(tmp_path: Path) -> None:
    named = tmp_path / "mine.jsonl"
    assert (
        file_for(skill(tmp_path / "git" / "SKILL.md"), Catalog(roots=(tmp_path,)), named=named)
        == named
    )


def test_a_skill_without_a_folder_that_can_be_written_to_needs_a_named_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="'git' comes from no folder: name a file with"):
        file_for(skill(Path("memory/git")), Catalog(roots=(tmp_path,)), named=None)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(ConfigurationError, match="which cannot be written to: name a file with"):
        file_for(skill(tmp_path / "git" / "SKILL.md"), Catalog(roots=(tmp_path,)), named=None)


def test_nothing_is_written_through_a_link_that_leaves_the_folder_of_skills(tmp_path: Path) -> None:
    """A cloned folder would choose which of the user's files is written to."""
    root = tmp_path / "skills"
    root.mkdir()
    (root / "enrichment.jsonl").symlink_to(tmp_path / "profile")
    with pytest.raises(ConfigurationError, match="is a link out of it: name a"):
        file_for(skill(root / "git" / "SKILL.md"), Catalog(roots=(root,)), named=None)


@pytest.mark.parametrize("lay", [lambda path: path.symlink_to(path.name), os.mkfifo])
def test_what_is_no_file_is_refused_before_anything_is_asked(
    tmp_path: Path, lay: Callable[[Path], None]
) -> None:
    """A link to itself ended in a traceback, and a pipe was waited for when all had been paid."""
    lay(tmp_path / "enrichment.jsonl")
    with pytest.raises(ConfigurationError, match="is no regular file: name a file with"):
        file_for(skill(tmp_path / "git" / "SKILL.md"), Catalog(roots=(tmp_path,)), named=None)


def test_nothing_is_written_into_the_installed_package(tmp_path: Path) -> None:
    """The next installation would overwrite it, and until then examples that ship are lost."""
    shipped = Path(router.__file__).parent / "_shipped_skills"
    with pytest.raises(ConfigurationError, match="'git' comes with the package"):
        file_for(
            skill(shipped / "git" / "SKILL.md"), Catalog(roots=(tmp_path, shipped)), named=None
        )


def test_lines_are_added_behind_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "e.jsonl"
    append(path, written("git", "push"))
    append(path, written("testing", "test it"))
    assert set(read_enrichment(path).by_skill) == {"git", "testing"}


def test_what_a_crash_has_left_unfinished_swallows_no_line(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text('{"skill": "te')
    append(path, written("git", "push"))
    assert set(read_enrichment(path).by_skill) == {"git"}


def test_only_lines_that_a_later_one_replaces_are_taken_out(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    for line in (written("git", "old"), written("testing", "test it"), written("git", "new")):
        append(path, line)
    text = path.read_text()
    path.write_text("# a note of somebody\n" + text)
    path.chmod(0o640)
    drop_replaced(path)
    assert path.read_text().splitlines() == ["# a note of somebody", *text.splitlines()[1:]]
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        append(tmp_path, written("git", "push"))
    with pytest.raises(StoreError, match="cannot be written"):
        drop_replaced(tmp_path)


def test_one_run_writes_at_a_time(tmp_path: Path) -> None:
    with (
        one_writer(tmp_path),
        pytest.raises(StoreError, match="another run writes"),
        one_writer(tmp_path),
    ):
        pass
    with one_writer(tmp_path):
        pass
    (lock,) = tmp_path.iterdir()
    assert lock.stat().st_mode & 0o077 == 0
