"""Skills in folders: what is read again, the last good version, links, and bounds."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from manifest_texts import put

from router.errors import ManifestError
from router.skills import folders as folders_module
from router.skills.catalog import load_catalog
from router.skills.diagnostics import Severity
from router.skills.folders import OLD_NS
from router.skills.manifest import read_manifest_bytes

# Loading again


def test_unchanged_manifests_are_reused_and_changed_ones_are_not(tmp_path: Path) -> None:
    put(tmp_path / "same")
    put(tmp_path / "edited", text="before")
    put(tmp_path / "z-lost", name="same")
    before = load_catalog([tmp_path])
    put(tmp_path / "edited", text="afterw")  # as long as before
    after = load_catalog([tmp_path], previous=before)
    assert after.get("same") is before.get("same")
    assert after.shadowed[0].manifest is before.shadowed[0].manifest
    assert after.get("edited").description == "afterw"


def test_an_edit_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    path = put(tmp_path / "git", text="one")
    times = path.stat()
    before = load_catalog([tmp_path])
    put(tmp_path / "git", text="two")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert load_catalog([tmp_path], previous=before).get("git").description == "two"


def test_loading_again_gives_what_loading_afresh_gives(tmp_path: Path) -> None:
    put(tmp_path / "a")
    put(tmp_path / "b", name="a")
    (tmp_path / "a" / "SKILL.md").write_text("broken")
    before = load_catalog([tmp_path])
    put(tmp_path / "a")
    again, afresh = load_catalog([tmp_path], previous=before), load_catalog([tmp_path])
    assert again.version == afresh.version
    assert (again.skills, again.shadowed, again.failures) == (
        afresh.skills,
        afresh.shadowed,
        afresh.failures,
    )


# Loading quickly


class _Reads:
    """Which files are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []

        def read(path: Path) -> bytes:
            self.names.append(path.parent.name)
            return read_manifest_bytes(path)

        monkeypatch.setattr(folders_module, "read_manifest_bytes", read)


def _later() -> int:
    return time.time_ns() + 10 * OLD_NS


def test_quick_loading_reads_only_what_was_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("same", "touched", "edited", "replaced"):
        put(tmp_path / name, text="before")
    put(tmp_path / "z-lost", name="same")
    before = load_catalog([tmp_path], clock=_later)
    os.utime(tmp_path / "touched" / "SKILL.md")
    times = (tmp_path / "edited" / "SKILL.md").stat()
    path = put(tmp_path / "edited", text="afterw")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    shutil.copy2(path, tmp_path / "copy")
    (tmp_path / "copy").replace(tmp_path / "replaced" / "SKILL.md")
    put(tmp_path / "new")
    reads = _Reads(monkeypatch)
    after = load_catalog([tmp_path], previous=before, quick=True)
    assert sorted(reads.names) == ["edited", "new", "replaced", "touched"]
    assert after.skills == load_catalog([tmp_path]).skills


def test_quick_loading_does_not_believe_times_that_were_young(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "git")
    before = load_catalog([tmp_path])
    reads = _Reads(monkeypatch)
    load_catalog([tmp_path], previous=before, quick=True)
    assert reads.names == ["git"]


def test_quick_loading_reads_a_broken_file_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "git")
    good = load_catalog([tmp_path], clock=_later)
    path.write_text("broken")
    broken = load_catalog([tmp_path], previous=good, quick=True, clock=_later)
    reads = _Reads(monkeypatch)
    still = load_catalog([tmp_path], previous=broken, quick=True, clock=_later)
    assert reads.names == ["git"]
    assert still.stale == broken.stale


# The last good version

_BROKEN = {
    "empty": b"",
    "frontmatter cut off": b"---\nname: git\ndescr",
    "frontmatter not closed": b"---\nname: git\ndescription: after\n",
    "no description": b"---\nname: git\n---\nbody\n",
    "too large": b"x" * (1 << 20) + b"x",
    "quote not closed": b'---\nname: git\ndescription: "Bakes bre\n---\nbody\n',
    "tab in the indentation": b"---\nname: git\ndescription: after\nmetadata:\n\ta: b\n---\nbody\n",
}


@pytest.mark.parametrize("content", _BROKEN.values(), ids=list(_BROKEN))
def test_a_broken_edit_keeps_the_last_good_version_and_says_so(
    tmp_path: Path, content: bytes
) -> None:
    path = put(tmp_path / "git", text="good")
    good = load_catalog([tmp_path])
    path.write_bytes(content)
    broken = load_catalog([tmp_path], previous=good)
    assert broken.get("git") is good.get("git")
    assert broken.version == good.version
    [failure] = broken.failures
    assert (failure.path, failure.severity) == (path, Severity.ERROR)
    assert failure.message.endswith("; its last good version stays in use")
    assert dict(broken.stale) == {"git": failure}


def test_a_file_that_was_never_valid_yaml_may_be_edited(tmp_path: Path) -> None:
    path = put(tmp_path / "git")
    path.write_text("---\nname: git\ndescription: Use it: when committing\n---\nbody\n")
    before = load_catalog([tmp_path])
    path.write_text("---\nname: git\ndescription: Use it: when merging\n---\nbody\n")
    after = load_catalog([tmp_path], previous=before)
    assert after.get("git").description == "Use it: when merging"
    assert after.failures == ()


def test_the_last_good_version_stays_for_as_long_as_the_file_is_broken(tmp_path: Path) -> None:
    path = put(tmp_path / "git", text="good")
    catalog = load_catalog([tmp_path])
    for text in ("broken", "---\nbroken still", ""):
        path.write_text(text)
        catalog = load_catalog([tmp_path], previous=catalog)
        assert catalog.get("git").description == "good"
    put(tmp_path / "git", text="mended")
    mended = load_catalog([tmp_path], previous=catalog)
    assert (mended.get("git").description, mended.failures, dict(mended.stale)) == (
        "mended",
        (),
        {},
    )


def test_deleting_a_broken_file_removes_its_skill(tmp_path: Path) -> None:
    path = put(tmp_path / "git")
    good = load_catalog([tmp_path])
    path.write_text("broken")
    broken = load_catalog([tmp_path], previous=good)
    path.unlink()
    assert load_catalog([tmp_path], previous=broken).skills == {}


@pytest.mark.parametrize("shut", ["skills", "skills/team", "skills/team/git"])
def test_a_folder_that_cannot_be_searched_keeps_its_skills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shut: str
) -> None:
    """What a network's disk does while it is away."""
    root = tmp_path / "skills"
    git = put(root / "team" / "git", text="good")
    put(root / "other" / "git", text="shadows it")
    put(root / "team" / "gone")
    line = '{"skill": "git", "requests": ["undo my last commit"]}\n'
    (root / "enrichment.jsonl").write_text(line)
    good = load_catalog([root])

    def search(path: str) -> Any:
        if path == str(tmp_path / shut):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return scandir(path)

    def read(path: Path) -> bytes:
        if path.is_relative_to(tmp_path / shut):
            raise ManifestError(path, 0, "cannot be read: Stale file handle")
        return read_manifest_bytes(path)

    def exists(path: Any) -> bool:
        return shut != "skills" and lexists(path)

    scandir, lexists = os.scandir, os.path.lexists
    monkeypatch.setattr(os, "scandir", search)
    monkeypatch.setattr(os.path, "lexists", exists)
    monkeypatch.setattr(folders_module, "read_manifest_bytes", read)
    away = load_catalog([root], previous=good)
    assert (away.skills, away.shadowed) == (good.skills, good.shadowed)
    assert away.get("git").enrichment is not None
    assert git in {failure.path for failure in away.failures}
    assert [notice.code for notice in away.notices] == ["unreadable-folder"]
    monkeypatch.undo()
    shutil.rmtree(root / "team" / "gone")
    back = load_catalog([root], previous=away)
    assert (set(back.skills), back.failures) == ({"git"}, ())


@pytest.mark.parametrize("away", ["skills", "skills/team"])
def test_a_place_that_cannot_be_reached_keeps_its_skills_until_it_is_gone(
    tmp_path: Path, away: str
) -> None:
    """Nobody can look up a name that is too long, so that stands for a disk that is away."""
    put(tmp_path / "disk" / "team" / "git", text="good")
    (tmp_path / ".git").mkdir()
    root, link = tmp_path / "skills", tmp_path / away
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "disk" / link.relative_to(root))
    good = load_catalog([root])
    link.unlink()
    link.symlink_to("x" * 300)
    kept = load_catalog([root], previous=good)
    assert (set(good.skills), kept.skills) == ({"git"}, good.skills)
    assert [(fault.path.name, fault.severity) for fault in kept.failures] == [
        ("SKILL.md", Severity.ERROR)
    ]
    assert [notice.path for notice in kept.notices] == [link]
    link.unlink()
    assert load_catalog([root], previous=kept).skills == {}


def test_a_file_that_goes_between_the_search_and_the_reading_has_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "git")
    good = load_catalog([tmp_path])

    def delete_and_read(path: Path) -> bytes:
        path.unlink()
        return read_manifest_bytes(path)

    monkeypatch.setattr(folders_module, "read_manifest_bytes", delete_and_read)
    gone = load_catalog([tmp_path], previous=good)
    assert (gone.skills, gone.failures) == ({}, ())


def test_a_broken_winner_keeps_its_name(tmp_path: Path) -> None:
    strong = put(tmp_path / "project" / "git", text="strong")
    put(tmp_path / "user" / "git", text="weak")
    roots = [tmp_path / "project", tmp_path / "user"]
    good = load_catalog(roots)
    strong.write_text("broken")
    broken = load_catalog(roots, previous=good)
    assert broken.get("git").description == "strong"
    assert list(broken.stale) == ["git"]
    assert len(broken.shadowed) == 1


def test_a_broken_loser_is_reported_but_not_stale(tmp_path: Path) -> None:
    put(tmp_path / "project" / "git", text="strong")
    weak = put(tmp_path / "user" / "git", text="weak")
    roots = [tmp_path / "project", tmp_path / "user"]
    good = load_catalog(roots)
    weak.write_text("broken")
    broken = load_catalog(roots, previous=good)
    assert [failure.path for failure in broken.failures] == [weak]
    assert dict(broken.stale) == {}


def test_a_file_that_never_loaded_has_no_last_good_version(tmp_path: Path) -> None:
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "SKILL.md").write_text("broken")
    again = load_catalog([tmp_path], previous=load_catalog([tmp_path]))
    assert (again.skills, len(again.failures), dict(again.stale)) == ({}, 1, {})


def test_a_missing_root_may_be_noted_instead_of_raised(tmp_path: Path) -> None:
    put(tmp_path / "here" / "git")
    catalog = load_catalog([tmp_path / "gone", tmp_path / "here"], missing_ok=True)
    assert list(catalog.skills) == ["git"]
    assert [(notice.path, notice.code) for notice in catalog.notices] == [
        (tmp_path / "gone", "missing-root")
    ]


# Links


def test_a_linked_skill_is_loaded_under_the_name_of_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A skill that is shared by a link, and reached by two roots, is one skill."""
    monkeypatch.setenv("HOME", str(tmp_path))
    path = put(tmp_path / "repo" / "foo")
    for root in ("one", "two"):
        (tmp_path / root).mkdir()
        (tmp_path / root / "foo").symlink_to(path.parent)
    catalog = load_catalog([tmp_path / "one", tmp_path / "two"])
    assert catalog.get("foo").path == tmp_path / "one" / "foo" / "SKILL.md"
    assert (catalog.shadowed, catalog.left_out) == ((), ())


def test_more_skills_than_the_bound_are_left_out_over_all_roots_and_reported(
    tmp_path: Path,
) -> None:
    for name in ("one/a", "one/b", "two/c", "two/d"):
        put(tmp_path / name)
    roots = [tmp_path / "one", tmp_path / "two"]
    catalog = load_catalog(roots, max_skills=3)
    assert list(catalog.skills) == ["a", "b", "c"]
    [notice] = catalog.left_out
    assert (notice.path, notice.code) == (tmp_path / "two", "too-many-skills")
