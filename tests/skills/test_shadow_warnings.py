"""Skills that lose their name across the border of the project are told of; others are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifest_texts import put

from router import SemanticRouter, Settings
from router.skills.catalog import load_catalog
from router.skills.shadow_warnings import MAX_WARNINGS, warn_of_shadowed


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_both_files_and_the_way_out_are_named_once(
    project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ours, theirs = put(tmp_path / "user" / "git"), put(project / "skills" / "git")
    for roots in ([tmp_path / "user", project / "skills"], [project / "skills", tmp_path / "user"]):
        catalog = load_catalog(roots)
        for _ in range(2):
            warn_of_shadowed(catalog)
    first, second = caplog.messages
    assert first.startswith(
        f"{theirs}: warning: not offered: the skill 'git' at {ours} is stronger"
    )
    assert second.startswith(f"{ours}: warning: not offered: the skill 'git' at {theirs} is strong")
    assert "rename one of them, or name the folders" in first


def test_what_has_one_name_on_one_side_is_not_told(
    project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for root in ("user", "shipped", "project/skills", "project/other"):
        put(tmp_path / root / root.replace("/", "-"))
    put(tmp_path / "user" / "git")
    put(tmp_path / "shipped" / "git")
    put(project / "skills" / "sql")
    put(project / "other" / "sql")
    roots = [tmp_path / "user", tmp_path / "shipped", project / "skills", project / "other"]
    catalog = load_catalog(roots)
    assert len(catalog.shadowed) == 2
    warn_of_shadowed(catalog)
    assert caplog.messages == []


def test_many_are_counted(project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(MAX_WARNINGS + 3):
        put(tmp_path / "user" / f"skill-{number}")
        put(project / "skills" / f"skill-{number}")
    warn_of_shadowed(load_catalog([tmp_path / "user", project / "skills"]))
    assert len(caplog.messages) == MAX_WARNINGS + 1
    assert caplog.messages[-1].startswith("3 more skills have the name of a stronger one")


async def test_a_skill_that_appears_later_is_told_at_the_reload(
    project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(tmp_path / "user" / "git")
    (project / "skills").mkdir()
    settings = Settings(state_dir=tmp_path / "state", llm={"enabled": False})
    roots = [tmp_path / "user", project / "skills"]
    async with SemanticRouter(settings, roots=roots) as router:
        assert caplog.messages == []
        theirs = put(project / "skills" / "git")
        await router.reload()
        await router.reload()
        [told] = caplog.messages
        assert told.startswith(str(theirs))


def test_a_working_directory_that_is_gone_has_no_border(
    project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The error kept observers from being told of a reload."""
    put(tmp_path / "user" / "git")
    put(tmp_path / "other" / "git")
    catalog = load_catalog([tmp_path / "user", tmp_path / "other"])
    project.rmdir()
    warn_of_shadowed(catalog)
    assert caplog.messages == []
