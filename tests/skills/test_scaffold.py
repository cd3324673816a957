"""A new skill: valid, honest about what is a placeholder, and never written over another."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import ConfigurationError
from router.lint.manifest import lint_manifest
from router.skills.manifest import parse_manifest
from router.skills.scaffold import scaffold_skill


@pytest.mark.parametrize("name", ["pdf-forms", "a", "2024", "true", "null", "x" * 64])
def test_a_new_skill_carries_every_hint_and_lint_finds_its_placeholders_only(
    tmp_path: Path, name: str
) -> None:
    path = scaffold_skill(tmp_path / "skills", name)
    assert path == tmp_path / "skills" / name / "SKILL.md"
    data = path.read_bytes()
    skill = parse_manifest(data, path=path)
    assert skill.name == name
    found = [f"{each.line} {each.code}" for each in lint_manifest(skill, data)]
    assert (skill.diagnostics, found) == ((), ["3 placeholder", "10 placeholder", "11 placeholder"])
    assert skill.routing_keywords and skill.intents and len(skill.examples) == 2
    assert "Replace" in skill.description
    assert "Replace" in skill.body


@pytest.mark.parametrize(
    "name", ["", "PDF", "a_b", "-a", "a-", "a--b", "x" * 65, "../a", "a/b", "a b", " a", "a\0b"]
)
def test_a_name_that_breaks_the_rule_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="lower-case letters"):
        scaffold_skill(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=200, deadline=None)
@given(name=st.text(max_size=20))
def test_whatever_the_name_nothing_is_written_outside_the_folder(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    root = tmp_path_factory.mktemp("new")
    try:
        path = scaffold_skill(root, name)
    except ConfigurationError:
        assert list(root.iterdir()) == []
    else:
        assert path.parent.parent == root


def test_an_existing_skill_is_not_overwritten(tmp_path: Path) -> None:
    path = scaffold_skill(tmp_path, "mine")
    path.write_text("my work", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="exists already"):
        scaffold_skill(tmp_path, "mine")
    assert path.read_text(encoding="utf-8") == "my work"


def test_a_folder_that_cannot_be_made_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        scaffold_skill(tmp_path / "file", "mine")


def test_what_cannot_be_written_whole_is_not_left(tmp_path: Path) -> None:
    """As on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(ConfigurationError, match="cannot be written: File too large"):
            scaffold_skill(tmp_path, "notes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert scaffold_skill(tmp_path, "notes").is_file()
