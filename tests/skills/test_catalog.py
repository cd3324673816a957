"""One snapshot: who gets a name, what the version stands for, and what is reported."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from manifest_texts import put

from router.skills.catalog import Catalog, load_catalog, merge_sources
from router.skills.diagnostics import Severity
from router.skills.folders import FolderSource
from router.skills.manifest import SkillManifest
from router.skills.memory_source import MemorySource
from router.skills.sources import SourceSnapshot


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


# One catalog after another

_GIVEN = [[manifest(name, digest) for name in "abc" for digest in "12"] for _source in range(2)]
_SOURCES = [MemorySource(name=name) for name in ("one", "two")]
_SNAPSHOTS = st.tuples(
    *(st.lists(st.sampled_from(some), max_size=4).map(tuple).map(SourceSnapshot) for some in _GIVEN)
)
_ORDERS = st.permutations([0, 1]).flatmap(
    lambda order: st.integers(0, 2).map(lambda count: order[:count])
)
_STEPS = st.tuples(_SNAPSHOTS, _ORDERS, st.frozensets(st.sampled_from("abc"), max_size=1))


@given(st.lists(_STEPS, min_size=1, max_size=6))
@settings(max_examples=200, deadline=None)
def test_a_catalog_that_follows_others_is_the_one_merged_from_nothing(
    steps: list[tuple[tuple[SourceSnapshot, ...], list[int], frozenset[str]]],
) -> None:
    before: Catalog | None = None
    for given_, order, hidden in steps:
        snapshots = [(_SOURCES[place], given_[place]) for place in order]
        after = merge_sources(snapshots, hidden=hidden, previous=before)
        anew = merge_sources(snapshots, hidden=hidden)
        assert list(after.skills) == list(anew.skills)
        assert all(after.skills[name] is one for name, one in anew.skills.items())
        assert (after.version, after.shadowed) == (anew.version, anew.shadowed)
        before = after


def test_new_skills_of_many_stand_in_the_order_of_the_names() -> None:
    held = [SkillManifest.in_memory(f"skill-{number:03}", "It does.") for number in range(200)]
    source = MemorySource(held[:199:2])
    catalog = merge_sources([(source, source.read())])
    for new in (held[1], held[199], held[99]):
        source.add(new)
        before, catalog = catalog, merge_sources([(source, source.read())], previous=catalog)
        assert list(catalog.skills) == sorted([*before.skills, new.name])
        assert all(catalog.skills[name].name == name for name in catalog.skills)
        assert catalog.version == merge_sources([(source, source.read())]).version
        assert new.name not in before.skills


# What is left out


def test_a_hidden_name_is_left_out_whoever_has_it(tmp_path: Path) -> None:
    put(tmp_path / "project" / "git")
    put(tmp_path / "user" / "git")
    put(tmp_path / "user" / "sql")
    roots = [tmp_path / "project", tmp_path / "user"]
    source = FolderSource(roots)
    catalog = merge_sources([(source, source.read())], hidden=frozenset({"git"}))
    assert (list(catalog.skills), catalog.shadowed) == (["sql"], ())
