"""What Serena's own files say about the memories of a project is kept to."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.errors import ReadOnlyMemory, UnknownMemory
from router.memory.files.serena import Serena
from router.memory.files.store import FileStore


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    for name in ("adr/1", "draft/a", "style"):
        put(folder / ".serena" / "memories" / f"{name}.md", "Tokens.")
    return folder


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def store(project: Path) -> FileStore:
    return FileStore(project, serena_home=project.parent / "home")


def test_the_patterns_of_project_yml_protect_and_hide(project: Path) -> None:
    put(
        project / ".serena" / "project.yml",
        "# Serena's own comments\nproject_name: shop\nlanguages:\n- python\n"
        "read_only_memory_patterns: ['adr/.*']\nignored_memory_patterns:\n- 'draft/.*'\n",
    )
    files = store(project)
    assert files.names() == ("adr/1", "style")
    with pytest.raises(ReadOnlyMemory, match="read_only_memory_patterns"):
        files.save("adr/1", "Overwritten.")
    with pytest.raises(UnknownMemory):
        files.get("draft/a")
    hidden = project / ".serena" / "memories" / "draft" / "a.md"
    assert files.problems() == (f"{hidden}: hidden by ignored_memory_patterns",)


def test_an_edit_of_project_yml_counts_from_the_next_call(project: Path) -> None:
    files = store(project)
    files.save("adr/1", "Written.")
    put(project / ".serena" / "project.yml", "read_only_memory_patterns: ['adr/.*']\n")
    with pytest.raises(ReadOnlyMemory):
        files.save("adr/1", "Overwritten.")
    put(project / ".serena" / "project.local.yml", "read_only_memory_patterns: []\n")
    files.save("adr/1", "Mine.")
    assert files.get("adr/1").content == "Mine."


def test_the_users_own_patterns_hold_in_every_project(project: Path) -> None:
    put(
        project.parent / "home" / "serena_config.yml",
        "projects: []\nread_only_memory_patterns: ['global/.*']\n",
    )
    with pytest.raises(ReadOnlyMemory):
        store(project).save("global/editor", "Vim.")


@pytest.mark.parametrize(
    ("location", "folder"),
    [("$projectDir/docs/serena", "shop/docs/serena"), ("{top}/all/$projectFolderName", "all/shop")],
)
def test_the_folders_of_all_projects_may_lie_elsewhere(
    tmp_path: Path, location: str, folder: str
) -> None:
    where = location.format(top=tmp_path)
    put(tmp_path / "home/serena_config.yml", f"project_serena_folder_location: {where}\n")
    store(tmp_path / "shop").save("style", "Tabs.")
    assert (tmp_path / folder / "memories" / "style.md").read_text(encoding="utf-8") == "Tabs."


def test_memories_that_lie_at_the_default_place_are_used_where_they_are(project: Path) -> None:
    put(project.parent / "home/serena_config.yml", "project_serena_folder_location: /nowhere/x\n")
    assert Serena(project, project.parent / "home").memories == project / ".serena" / "memories"


@pytest.mark.parametrize(
    "text",
    [
        *("read_only_memory_patterns: ['(a+)+']", "read_only_memory_patterns: adr", "[", "- a"),
        *("a: &a [x]\nb: *a", "x: " + "[" * 5000, "#" * 200_000),
    ],
)
def test_rules_that_cannot_be_used_are_reported_and_nothing_is_written(
    project: Path, text: str
) -> None:
    rules = put(project / ".serena" / "project.yml", text)
    files = store(project)
    assert files.names() == ("adr/1", "draft/a", "style")
    assert [problem.split(": ")[0] for problem in files.problems()] == [str(rules)]
    with pytest.raises(ReadOnlyMemory, match="mend"):
        files.save("style", "Spaces.")


def test_a_location_that_cannot_be_understood_is_reported(project: Path) -> None:
    put(project.parent / "home/serena_config.yml", "project_serena_folder_location: $home/x\n")
    files = store(project)
    assert [problem for problem in files.problems() if "$home" in problem]
    with pytest.raises(ReadOnlyMemory):
        files.save("style", "Spaces.")


def test_the_parts_of_a_monorepo_are_linked(project: Path) -> None:
    part = project / "packages" / "pay" / ".serena" / "memories"
    put(part / "refunds.md", "Refunds take two days.")
    (project / ".serena" / "memories" / "pay").symlink_to(part)
    files = store(project)
    assert [item.id for item in files.search("refunds", k=3)] == ["pay/refunds"]
    files.save("pay/fees", "None.")
    assert (part / "fees.md").read_text(encoding="utf-8") == "None."


def test_names_that_serena_lists_and_we_do_not_are_reported(project: Path) -> None:
    put(project / ".serena" / "memories" / ".old" / "x.md", "Old.")
    put(project / ".serena" / "memories" / "global" / "x.md", "Old.")
    whys = sorted(problem.split(": ", 1)[1] for problem in store(project).problems())
    assert whys == ["its name begins with a dot", "names in it would mean the global memories"]
