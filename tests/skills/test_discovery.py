"""Which files under a root are skills, what is skipped, and which roots there are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from router.errors import ConfigurationError
from router.settings.settings import Settings
from router.skills.discovery import (
    FOLDERS_PER_SKILL,
    MAX_DEPTH,
    configured_roots,
    scan_root,
    shipped_skills_root,
)
from router.skills.folders import FolderSource


def put(folder: Path, name: str = "SKILL.md") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("---\ndescription: x\n---\ny")
    return path


def found(root: Path) -> list[str]:
    return [Path(file).relative_to(root).as_posix() for file in scan_root(root).files]


def reports(root: Path) -> list[tuple[str, str]]:
    return [(item.path.name, item.code) for item in scan_root(root).diagnostics]


def test_skills_are_found_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b", "a/deep/er", "c", "a"):
        put(tmp_path / name)
    assert found(tmp_path) == [
        "a/SKILL.md",
        "a/deep/er/SKILL.md",
        "b/SKILL.md",
        "c/SKILL.md",
    ]
    assert reports(tmp_path) == []


def test_a_root_may_be_the_folder_of_one_skill(tmp_path: Path) -> None:
    put(tmp_path)
    assert found(tmp_path) == ["SKILL.md"]


def test_folders_of_tools_are_not_searched(tmp_path: Path) -> None:
    for name in (".git", "node_modules", "__pycache__", ".venv"):
        put(tmp_path / name / "skill")
    put(tmp_path / ".curated" / "skill")
    assert found(tmp_path) == [".curated/skill/SKILL.md"]


def test_a_skills_own_material_is_not_searched_but_a_bundle_is(tmp_path: Path) -> None:
    put(tmp_path / "suite")
    put(tmp_path / "suite" / "skills" / "part")
    put(tmp_path / "suite" / "assets" / "template")
    put(tmp_path / "suite" / "references" / "example")
    put(tmp_path / "assets" / "skill")  # no skill's material
    assert found(tmp_path) == [
        "assets/skill/SKILL.md",
        "suite/SKILL.md",
        "suite/skills/part/SKILL.md",
    ]


def test_a_file_name_in_another_case_is_reported_and_not_taken(tmp_path: Path) -> None:
    put(tmp_path / "a", "skill.md")
    assert found(tmp_path) == []
    assert reports(tmp_path) == [("skill.md", "misnamed-file")]


# Bounds


def test_what_lies_too_deep_is_reported(tmp_path: Path) -> None:
    at_the_bound = tmp_path.joinpath(*"abcdef"[:MAX_DEPTH])
    put(at_the_bound)
    put(at_the_bound / "below")
    assert found(tmp_path) == ["a/b/c/d/e/f/SKILL.md"]
    assert reports(tmp_path) == [("below", "too-deep")]


def test_ten_thousand_skills_are_all_found(tmp_path: Path) -> None:
    for number in range(10_000):
        put(tmp_path / f"{number:05}")
    assert len(scan_root(tmp_path).files) == 10_000
    assert reports(tmp_path) == []


def test_skills_beyond_the_bound_are_counted_and_left_out(tmp_path: Path) -> None:
    for name in "abcd":
        put(tmp_path / name)
    scan = scan_root(tmp_path, max_skills=3)
    assert [Path(file).parent.name for file in scan.files] == ["a", "b", "c"]
    [diagnostic] = scan.diagnostics
    assert (diagnostic.path, diagnostic.code) == (tmp_path, "too-many-skills")
    assert diagnostic.message == (
        "1 skills are left out: there are more than the setting max_skills allows"
    )


def test_the_search_stops_at_the_bound_on_folders_and_says_so(tmp_path: Path) -> None:
    for number in range(FOLDERS_PER_SKILL + 1):
        (tmp_path / f"{number:04}").mkdir()
    put(tmp_path / "0001")
    scan = scan_root(tmp_path, max_skills=1)
    assert [Path(file).parent.name for file in scan.files] == ["0001"]
    [diagnostic] = scan.diagnostics
    assert (diagnostic.path, diagnostic.code) == (tmp_path, "too-many-folders")
    assert diagnostic.message == "10 folders searched; 2 or more others were not"


# Links


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


def linked_root(folder: Path, target: Path) -> Path:
    """A root with one link, to the target."""
    root = folder / ".agents" / "skills"
    root.mkdir(parents=True)
    (root / "foo").symlink_to(target)
    return root


def test_a_link_to_a_folder_of_the_same_project_is_followed(tmp_path: Path, home: Path) -> None:
    assert home.is_dir()
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    put(project / "repo" / "foo")
    root = linked_root(project, Path("../../repo/foo"))
    assert found(root) == ["foo/SKILL.md"]
    assert reports(root) == []
    assert scan_root(root).folders == (str(root), str(project / "repo" / "foo"))


def test_a_link_within_the_home_folder_is_followed(home: Path) -> None:
    put(home / "shared" / "git")
    put(home / "shared" / "sql")
    root = linked_root(home, home / "shared")
    assert found(root) == ["foo/git/SKILL.md", "foo/sql/SKILL.md"]
    assert reports(root) == []


def test_a_link_into_another_root_is_followed(tmp_path: Path, home: Path) -> None:
    put(tmp_path / "team" / "foo")
    root = linked_root(home, tmp_path / "team" / "foo")
    scan = scan_root(root, trusted=[root, tmp_path / "team"])
    assert [Path(file).parent.name for file in scan.files] == ["foo"]
    assert scan.diagnostics == ()


def test_a_link_to_another_users_folder_is_left_out(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(home / "shared" / "foo")
    root = linked_root(home, home / "shared" / "foo")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    [diagnostic] = scan_root(root).diagnostics
    assert scan_root(root).files == ()
    assert diagnostic.message.endswith(
        "its target belongs to another user; name it in the setting skills"
    )


def test_a_link_to_a_folder_around_the_root_is_left_out(home: Path) -> None:
    put(home / "project" / "foo")
    root = linked_root(home / "project", home / "project")
    assert found(root) == []
    assert reports(root) == [("foo", "link-leaves-root")]


def test_a_link_to_the_whole_home_folder_is_left_out(home: Path, tmp_path: Path) -> None:
    put(home / "foo")
    root = linked_root(tmp_path / "elsewhere", home)
    assert found(root) == []
    assert reports(root) == [("foo", "link-leaves-root")]


def test_a_link_inside_a_skill_does_not_lead_out_of_the_root(home: Path) -> None:
    put(home / "shared" / "foo")
    put(home / "skills" / "git")
    (home / "skills" / "git" / "more").symlink_to(home / "shared" / "foo")
    assert found(home / "skills") == ["git/SKILL.md"]
    [diagnostic] = scan_root(home / "skills").diagnostics
    assert diagnostic.message.endswith("is not followed: it is inside a skill")


def test_a_manifest_of_a_linked_skill_stays_within_its_target(home: Path) -> None:
    (home / "secret").write_text("x")
    (home / "repo" / "foo").mkdir(parents=True)
    (home / "repo" / "foo" / "SKILL.md").symlink_to(home / "secret")
    root = linked_root(home, home / "repo" / "foo")
    assert found(root) == []
    assert reports(root) == [("SKILL.md", "link-leaves-root")]


def test_two_links_to_one_folder_give_its_skill_once_and_a_loop_of_links_ends(home: Path) -> None:
    put(home / "repo" / "foo")
    root = linked_root(home, home / "repo")
    (root / "twin").symlink_to(home / "repo")
    (home / "repo" / "back").symlink_to(root)
    assert found(root) == ["foo/foo/SKILL.md"]


def test_a_file_link_that_leaves_the_root_is_reported_and_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "root" / "skill").mkdir(parents=True)
    (tmp_path / "root" / "skill" / "SKILL.md").symlink_to(tmp_path / "secret")
    assert found(tmp_path / "root") == []
    assert reports(tmp_path / "root") == [("SKILL.md", "link-leaves-root")]


def test_a_link_through_another_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "outside")
    root = tmp_path / "root"
    root.mkdir()
    (root / "one").symlink_to(tmp_path / "outside")
    (root / "two").symlink_to("one")
    assert found(root) == []
    assert reports(root) == [("one", "link-leaves-root"), ("two", "link-leaves-root")]


def test_links_to_other_files_are_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("x")
    put(tmp_path / "root")
    (tmp_path / "root" / "notes").symlink_to(tmp_path / "notes")
    assert reports(tmp_path / "root") == []


def test_a_linked_folder_inside_the_root_is_found_once_in_its_own_place(tmp_path: Path) -> None:
    put(tmp_path / "real")
    (tmp_path / "alias").symlink_to("real")
    assert found(tmp_path) == ["real/SKILL.md"]
    assert reports(tmp_path) == []


def test_a_manifest_may_be_a_link_inside_the_root(tmp_path: Path) -> None:
    put(tmp_path / "shared", "git.md")
    (tmp_path / "git").mkdir()
    (tmp_path / "git" / "SKILL.md").symlink_to("../shared/git.md")
    assert found(tmp_path) == ["git/SKILL.md"]


def test_a_loop_of_folders_ends(tmp_path: Path) -> None:
    put(tmp_path / "a")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    assert found(tmp_path) == ["a/SKILL.md"]
    assert reports(tmp_path) == []


def test_links_to_themselves_and_to_nothing_are_reported(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "nothing").symlink_to("gone")
    assert reports(tmp_path) == [("loop", "broken-link"), ("nothing", "broken-link")]


def test_the_lock_of_an_editor_is_no_oddity(tmp_path: Path) -> None:
    """Emacs makes such a link beside a file with changes that are not saved yet."""
    put(tmp_path / "git")
    (tmp_path / "git" / ".#SKILL.md").symlink_to("ada@example.com.4711:1790000000")
    assert found(tmp_path) == ["git/SKILL.md"]
    assert reports(tmp_path) == []


def test_a_root_may_itself_be_a_link(tmp_path: Path) -> None:
    put(tmp_path / "real" / "git")
    (tmp_path / "root").symlink_to("real")
    assert found(tmp_path / "root") == ["git/SKILL.md"]


# What cannot be read


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_an_unreadable_folder_is_reported_and_disturbs_nothing(tmp_path: Path) -> None:
    put(tmp_path / "good")
    put(tmp_path / "shut").parent.chmod(0)
    try:
        assert found(tmp_path) == ["good/SKILL.md"]
        assert reports(tmp_path) == [("shut", "unreadable-folder")]
    finally:
        (tmp_path / "shut").chmod(0o700)


def test_a_folder_whose_name_is_no_text_is_searched(tmp_path: Path) -> None:
    put(tmp_path / os.fsdecode(b"caf\xe9"))
    assert len(scan_root(tmp_path).files) == 1


# Roots


def test_a_missing_root_is_an_error_that_names_it_and_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        scan_root(tmp_path / "gone")
    assert str(caught.value) == (
        f"the skills folder {tmp_path / 'gone'} does not exist: create it, or correct or remove "
        "it where it is configured (setting skills, option --skills)"
    )


def test_a_root_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is a file, not a folder"):
        scan_root(put(tmp_path))


def test_a_root_that_can_be_no_path_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="cannot be used"):
        scan_root(Path("~nobody-of-this-name/skills"))


def test_a_root_may_start_with_the_users_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = put(tmp_path / "mine" / "git")
    assert scan_root(Path("~/mine")).files == (str(path),)


def test_the_default_roots_are_those_that_exist_strongest_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    for folder in (project / ".claude/skills", project / "skills", home / ".agents/skills"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    settings = Settings(shipped_skills=False)
    there = (home / ".agents/skills", project / "skills", project / ".claude/skills")
    assert configured_roots(settings) == there
    later_ones = configured_roots(settings, later_ones=True)
    assert later_ones == (*there[:2], project / ".agents/skills", there[2])


@pytest.mark.parametrize(("link", "below"), [("skills", ""), (".claude", "skills")])
def test_a_default_root_is_no_way_to_the_rest_of_the_disk(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    link: str,
    below: str,
) -> None:
    project, home, others = (tmp_path / name for name in ("project", "home", "others"))
    project.mkdir()
    home.mkdir()
    put(others / below / "theirs")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(home))
    settings = Settings(shipped_skills=False)
    source = FolderSource.configured(settings)
    root = project / link / below

    (project / link).symlink_to(others)
    assert configured_roots(settings) == ()
    assert root not in configured_roots(settings, later_ones=True)
    assert root not in source.roots
    assert source.read().skills == ()
    assert f"'{root}': the link to '{others / below}' is not followed" in caplog.text

    for own in (project / "own", home / "shared"):  # where a link in a root may lead, too
        (project / link).unlink()
        put(own / below / "mine")
        (project / link).symlink_to(own)
        assert [skill.path.parent.name for skill in source.read().skills] == ["mine"]


def test_the_shipped_skills_are_where_the_package_or_its_checkout_has_them() -> None:
    assert list(shipped_skills_root().glob("*/SKILL.md")) != []
