"""What one step from a snapshot to the next is said to have changed."""

from __future__ import annotations

import shutil
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from manifest_texts import put

from router.skills.catalog import Catalog, load_catalog
from router.skills.changes import CatalogChange
from router.skills.manifest import SkillManifest


def catalog(content: dict[str, str]) -> Catalog:
    """Skills from name to digest."""
    return Catalog(
        {
            name: SkillManifest(
                name=name, description="x", body="y", path=Path(name) / "SKILL.md", digest=digest
            )
            for name, digest in content.items()
        }
    )


_CONTENT = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from("123"))


@given(_CONTENT, _CONTENT)
@settings(max_examples=150, deadline=None)
def test_a_change_applied_to_what_was_before_gives_what_is_after(
    old: dict[str, str], new: dict[str, str]
) -> None:
    change = CatalogChange.between(catalog(old), catalog(new))
    applied = {name: digest for name, digest in old.items() if name not in change.removed}
    applied |= {name: new[name] for name in (*change.added, *change.changed)}
    assert applied == new
    assert len(set(change.names)) == len(change.names)
    assert change.is_empty == (old == new)


@given(_CONTENT, _CONTENT, st.sets(st.sampled_from("abcdefg")))
@settings(max_examples=150, deadline=None)
def test_touched_names_are_told_even_when_nothing_differs(
    old: dict[str, str], new: dict[str, str], touched: set[str]
) -> None:
    change = CatalogChange.between(catalog(old), catalog(new), touched=touched)
    assert touched <= set(change.names)
    assert {name for name in touched if name not in new} <= set(change.removed)


def test_the_same_content_at_another_place_has_moved(tmp_path: Path) -> None:
    put(tmp_path / "old", name="git")
    before = load_catalog([tmp_path])
    (tmp_path / "old").rename(tmp_path / "new")
    change = CatalogChange.between(before, load_catalog([tmp_path], previous=before))
    assert (change.moved, change.changed, change.is_empty) == (("git",), (), False)


def test_a_skill_that_loses_its_name_is_told_as_shadowed_once(tmp_path: Path) -> None:
    put(tmp_path / "user" / "git", text="weak")
    roots = [tmp_path / "project", tmp_path / "user"]
    (tmp_path / "project").mkdir()
    before = load_catalog(roots)
    put(tmp_path / "project" / "git", text="strong")
    between = load_catalog(roots, previous=before)
    change = CatalogChange.between(before, between)
    assert (change.changed, change.shadowed) == (("git",), ("git",))
    put(tmp_path / "project" / "git", text="stronger")
    change = CatalogChange.between(between, load_catalog(roots, previous=between))
    assert (change.changed, change.shadowed) == (("git",), ())


def test_a_failure_is_told_once_and_its_end_too(tmp_path: Path) -> None:
    path = put(tmp_path / "git")
    good = load_catalog([tmp_path])
    path.write_text("---\nname: git\n---\n")
    broken = load_catalog([tmp_path], previous=good)
    change = CatalogChange.between(good, broken)
    assert [(failure.path, failure.line) for failure in change.failed] == [(path, 0)]
    assert (change.names, change.mended, change.is_empty) == ((), (), False)
    still = load_catalog([tmp_path], previous=broken)
    assert CatalogChange.between(broken, still).is_empty is True
    put(tmp_path / "git", text="y")
    change = CatalogChange.between(still, load_catalog([tmp_path], previous=still))
    assert (change.changed, change.failed, change.mended) == (("git",), (), (path,))


def test_a_broken_file_that_is_deleted_is_not_mended(tmp_path: Path) -> None:
    path = put(tmp_path / "git")
    path.write_text("broken")
    before = load_catalog([tmp_path])
    shutil.rmtree(tmp_path / "git")
    change = CatalogChange.between(before, load_catalog([tmp_path], previous=before))
    assert (change.mended, change.is_empty) == ((), False)


def test_a_change_is_shown_in_one_line() -> None:
    before = catalog({"a": "1", "b": "1"})
    after = catalog({"b": "2"} | {f"n{number}": "1" for number in range(7)})
    change = CatalogChange.between(before, after)
    assert str(change) == ("7 added (n0, n1, n2, n3, n4, ...); 1 changed (b); 1 removed (a)")
    assert str(CatalogChange.between(after, after)) == "no skill changed"
