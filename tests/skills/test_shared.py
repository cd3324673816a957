"""The process's shared registry."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from manifest_texts import put

from router.errors import ConfigurationError, UnknownSkill
from router.settings.settings import Settings
from router.skills.discovery import shipped_skills_root
from router.skills.shared import get_skill_manifest, get_skill_registry, list_available_skills


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project and an empty home; the shipped skills are left out."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ROUTER_SHIPPED_SKILLS", "false")
    monkeypatch.delenv("ROUTER_SKILLS", raising=False)
    return work


def test_it_holds_the_skills_of_the_configured_roots(project: Path) -> None:
    hints = "metadata:\n  routing-keywords: ship\n  intents: release\n  examples: ship it now\n"
    put(project / "skills" / "deploy", more=hints)
    put(project / "skills" / "quiet", more="disable-model-invocation: true\n")
    assert list_available_skills() == ("deploy",)
    deploy = get_skill_manifest("deploy")
    assert (deploy.routing_keywords, deploy.intents, deploy.examples) == (
        ("ship",),
        ("release",),
        ("ship it now",),
    )
    assert get_skill_manifest("quiet").name == "quiet"
    with pytest.raises(UnknownSkill, match="did you mean deploy"):
        get_skill_manifest("deplyo")


def test_the_user_wins_over_the_project_and_the_project_over_the_shipped_skills(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTER_SHIPPED_SKILLS", "true")
    user = tmp_path / "home" / ".agents" / "skills"
    put(user / "git")
    put(project / ".claude" / "skills" / "git")
    put(project / ".claude" / "skills" / "writer")
    roots = [user, project / ".claude" / "skills", shipped_skills_root()]
    registry = get_skill_registry()
    assert [root for root in registry.roots if root.is_dir()] == roots
    assert get_skill_manifest("git").path.parents[1] == roots[0]
    assert get_skill_manifest("writer").path.parents[1] == roots[1]
    assert [
        (lost.manifest.name, lost.manifest.path.parents[1]) for lost in registry.catalog.shadowed
    ] == [("git", roots[1]), ("git", roots[2]), ("writer", roots[2])]


def test_the_same_roots_share_a_registry_however_they_are_written(project: Path) -> None:
    put(project / "skills" / "deploy")
    relative = get_skill_registry(Settings(skills=["skills"]))
    absolute = get_skill_registry(Settings(skills=[project / "skills"]))
    assert absolute is relative


def test_the_default_roots_share_a_registry_before_and_after_they_appear(project: Path) -> None:
    before = get_skill_registry()
    put(project / "skills" / "deploy")
    assert get_skill_registry() is before
    assert before.reload().added == ("deploy",)


def test_another_project_has_another_registry(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(project / "skills" / "deploy")
    assert list_available_skills() == ("deploy",)
    put(tmp_path / "other" / "skills" / "paint")
    monkeypatch.chdir(tmp_path / "other")
    assert list_available_skills() == ("paint",)


def test_a_root_that_never_was_is_an_error_until_it_is_there(project: Path) -> None:
    settings = Settings(skills=[project / "mine"])
    with pytest.raises(ConfigurationError, match="does not exist"):
        get_skill_registry(settings)
    put(project / "mine" / "deploy")
    assert get_skill_registry(settings).list_available_skills() == ("deploy",)


def test_threads_that_ask_at_once_get_one_registry(project: Path) -> None:
    put(project / "skills" / "deploy")
    settings = Settings()
    barrier = threading.Barrier(8)

    def ask(_: int) -> object:
        barrier.wait()
        return get_skill_registry(settings)

    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(id, pool.map(ask, range(8))))) == 1
