"""One snapshot: who gets a name, what the version stands for, and what is reported."""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import ConfigurationError, UnknownSkill
from router.skills import folders as folders_module
from router.skills.catalog import Catalog, load_catalog
from router.skills.diagnostics import Severity
from router.skills.folders import OLD_NS
from router.skills.manifest import SkillManifest, read_manifest_bytes


def put(folder: Path, *, name: str | None = None, text: str = "x", more: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "SKILL.md"
    path.write_text(f"---\nname: {name or folder.name}\ndescription: {text}\n{more}---\nbody\n")
    return path


def manifest(name: str, digest: str) -> SkillManifest:
    return SkillManifest(
        name=name, description="x", body="y", path=Path(name) / "SKILL.md", digest=digest
    )


def test_skills_are_held_by_name_in_the_order_of_their_names(tmp_path: Path) -> None:
    for folder, name in (("one", "zebra"), ("two", "ant"), ("three", "mole")):
        put(tmp_path / folder, name=name)
    catalog = load_catalog([tmp_path])
    assert list(catalog.skills) == ["ant", "mole", "zebra"]
    assert catalog.get("mole").path == tmp_path / "three" / "SKILL.md"


def test_a_catalog_cannot_be_changed(tmp_path: Path) -> None:
    catalog = load_catalog([tmp_path])
    with pytest.raises(TypeError):
        catalog.skills["a"] = manifest("a", "1")  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        catalog.version = "0"  # type: ignore[misc]


def test_no_roots_give_an_empty_catalog() -> None:
    catalog = load_catalog([])
    assert (dict(catalog.skills), catalog.routable, catalog.diagnostics) == ({}, (), ())


def test_a_missing_root_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        load_catalog([tmp_path / "gone"])


# Precedence


def test_the_earlier_root_wins_a_name_and_the_loser_is_reported(tmp_path: Path) -> None:
    strong = put(tmp_path / "project" / "git", text="strong")
    weak = put(tmp_path / "user" / "git", text="weak")
    catalog = load_catalog([tmp_path / "project", tmp_path / "user"])
    assert catalog.get("git").path == strong
    [shadowed] = catalog.shadowed
    assert (shadowed.manifest.path, shadowed.by.path) == (weak, strong)
    [diagnostic] = catalog.diagnostics
    assert (diagnostic.path, diagnostic.code) == (weak, "shadowed")
    assert str(strong) in diagnostic.message


def test_within_a_root_the_first_path_wins_a_name(tmp_path: Path) -> None:
    put(tmp_path / "b", name="same")
    first = put(tmp_path / "a", name="same")
    catalog = load_catalog([tmp_path])
    assert catalog.get("same").path == first
    assert len(catalog.shadowed) == 1


def test_a_broken_skill_in_a_strong_root_leaves_its_name_to_the_weaker(tmp_path: Path) -> None:
    (tmp_path / "project" / "git").mkdir(parents=True)
    (tmp_path / "project" / "git" / "SKILL.md").write_text("no frontmatter")
    weak = put(tmp_path / "user" / "git")
    catalog = load_catalog([tmp_path / "project", tmp_path / "user"])
    assert catalog.get("git").path == weak


def test_a_file_under_two_roots_is_loaded_once(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "git")
    (tmp_path / "again").symlink_to("skills")
    catalog = load_catalog([tmp_path / "skills", tmp_path, tmp_path / "again"])
    assert list(catalog.skills) == ["git"]
    assert catalog.shadowed == ()


# Failures


def test_what_cannot_be_loaded_is_reported_and_disturbs_no_other(tmp_path: Path) -> None:
    put(tmp_path / "good")
    broken = put(tmp_path / "broken", text="")
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    catalog = load_catalog([tmp_path])
    assert list(catalog.skills) == ["good"]
    assert [(f.path, f.line, f.severity, f.code, f.message) for f in catalog.failures] == [
        (broken, 3, Severity.ERROR, "not-loaded", "no description: nothing to route by"),
        *(
            (
                tmp_path / name / "SKILL.md",
                0,
                Severity.ERROR,
                "not-loaded",
                "not a regular file",
            )
            for name in ("folder", "pipe")
        ),
    ]


def test_diagnostics_hold_the_search_and_the_manifests_too(tmp_path: Path) -> None:
    put(tmp_path / "git", more="version: 1\n")
    (tmp_path / "nothing").symlink_to("gone")
    assert [d.code for d in load_catalog([tmp_path]).diagnostics] == ["broken-link", "unknown-key"]


def test_a_diagnostic_is_shown_with_its_place(tmp_path: Path) -> None:
    path = put(tmp_path / "git", more="version: 1\n")
    [diagnostic] = load_catalog([tmp_path]).diagnostics
    assert str(diagnostic) == f"{path}:4: info: the format has no key 'version' [unknown-key]"


# Looking up


def test_an_unknown_name_is_answered_with_close_ones(tmp_path: Path) -> None:
    put(tmp_path / "git-commit")
    put(tmp_path / "cooking")
    with pytest.raises(UnknownSkill) as caught:
        load_catalog([tmp_path]).get("git-comit")
    assert caught.value.suggestions == ("git-commit",)


def test_a_skill_kept_from_routing_is_loaded_but_not_routable(tmp_path: Path) -> None:
    put(tmp_path / "hidden", more="disable-model-invocation: true\n")
    put(tmp_path / "shown")
    catalog = load_catalog([tmp_path])
    assert [skill.name for skill in catalog.routable] == ["shown"]
    assert catalog.get("hidden").disable_model_invocation is True


# The version

_CONTENT = st.dictionaries(st.text("abc-", min_size=1, max_size=4), st.sampled_from("123"))


def _catalog(content: dict[str, str]) -> Catalog:
    return Catalog({name: manifest(name, digest) for name, digest in content.items()})


@given(_CONTENT, _CONTENT)
@settings(max_examples=100, deadline=None)
def test_versions_are_equal_exactly_when_names_and_contents_are(
    one: dict[str, str], two: dict[str, str]
) -> None:
    assert (_catalog(one).version == _catalog(two).version) == (one == two)


def test_the_version_does_not_depend_on_where_the_skills_lie(tmp_path: Path) -> None:
    for name in ("a", "b"):
        put(tmp_path / "here" / name)
        put(tmp_path / "there" / "deep" / name)
    here, there = load_catalog([tmp_path / "here"]), load_catalog([tmp_path / "there"])
    assert here.version == there.version
    assert len(here.version) == 16


def test_the_version_depends_on_who_wins_a_name(tmp_path: Path) -> None:
    put(tmp_path / "one" / "git", text="one")
    put(tmp_path / "two" / "git", text="two")
    forth = load_catalog([tmp_path / "one", tmp_path / "two"])
    back = load_catalog([tmp_path / "two", tmp_path / "one"])
    assert forth.version != back.version


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


# What is left out


def test_a_hidden_name_is_left_out_whoever_has_it(tmp_path: Path) -> None:
    put(tmp_path / "project" / "git")
    put(tmp_path / "user" / "git")
    put(tmp_path / "user" / "sql")
    roots = [tmp_path / "project", tmp_path / "user"]
    catalog = load_catalog(roots, hidden=frozenset({"git"}))
    assert (list(catalog.skills), catalog.shadowed) == (["sql"], ())


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
