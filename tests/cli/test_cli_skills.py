"""``router skills``: list, show, search, check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cascade import write_skill
from cli.results import Run


def write(root: Path, name: str, text: str) -> Path:
    file = root / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """One skill without oddities, one with an unknown key, one that cannot be loaded."""
    root = tmp_path / "faulty"
    write(root, "fine", "---\nname: fine\ndescription: Does one thing.\n---\n\nDo it.\n")
    write(root, "odd", "---\nname: odd\ndescription: Odd.\ncolour: red\n---\n\nDo it.\n")
    write(root, "broken", "no frontmatter here\n")
    return root


def test_list_gives_name_source_and_description_in_the_given_width(
    run: Run, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    lines = run("skills", "list", "--skills", skills).stdout.splitlines()
    assert [line.split()[0] for line in lines[2:]] == sorted(p.name for p in skills.iterdir())
    assert all(len(line) <= 70 for line in lines)


def test_list_as_json_marks_the_generic_skills(run: Run, skills: Path) -> None:
    listed = json.loads(run("skills", "list", "--skills", skills, "--json").stdout)
    assert [skill["name"] for skill in listed if skill["generic"]] == ["writer"]
    assert {skill["source"] for skill in listed} == {str(skills)}


def test_list_without_folders_shows_the_shipped_skills(run: Run) -> None:
    listed = json.loads(run("skills", "list", "--json").stdout)
    assert "git" in [skill["name"] for skill in listed]


def test_show_gives_the_manifest_and_its_oddities(run: Run, faulty: Path) -> None:
    result = run("skills", "show", "odd", "--skills", faulty, "--json")
    shown = json.loads(result.stdout)
    assert (shown["description"], shown["extra"]) == ("Odd.", {"colour": "red"})
    assert [(d["line"], d["code"]) for d in shown["diagnostics"]] == [(4, "unknown-key")]


def test_show_for_people_ends_with_the_oddities(run: Run, faulty: Path) -> None:
    last = run("skills", "show", "odd", "--skills", faulty).stdout.splitlines()[-1]
    assert last.startswith(f"{faulty / 'odd' / 'SKILL.md'}:4: ")
    assert last.endswith("[unknown-key]")


def test_show_names_close_skills_when_there_is_none(run: Run, skills: Path) -> None:
    result = run("skills", "show", "gti", "--skills", skills)
    assert result.exit_code == 2
    assert result.stderr == "error: no skill named 'gti'; did you mean git?\n"


def test_check_reports_by_path_and_line_and_fails_for_what_is_not_loaded(
    run: Run, faulty: Path
) -> None:
    result = run("skills", "check", faulty)
    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[0].startswith(f"{faulty / 'broken' / 'SKILL.md'}:1: error: no frontmatter")
    assert lines[1].startswith(f"{faulty / 'odd' / 'SKILL.md'}:4: ")
    assert "2 loaded, 0 shadowed, 1 not loaded" in result.stderr


def test_every_command_says_what_was_left_out_and_check_fails(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "linking"
    write(root, "fine", "---\nname: fine\ndescription: Does one thing.\n---\n\nDo it.\n")
    (root / "linked").symlink_to("/usr/lib")
    reason = f"{root / 'linked'}: "
    for command in (
        ("list", "--skills", root),
        ("list", "--json", "--skills", root),
        ("show", "fine", "--skills", root),
        ("lint", root),
    ):
        assert reason in run("skills", *command).stderr
    for opening in (
        ("skills", "search", "thing", "--skills", root),
        ("route", "do one thing", "--no-llm", "--skills", root),
    ):
        caplog.clear()
        run(*opening)
        assert reason in caplog.text  # a process that sets up no logging shows it on stderr
    result = run("skills", "check", root)
    assert result.exit_code == 1
    assert "is not followed: its target lies outside" in result.stdout
    assert "1 left out" in result.stderr


def test_the_number_of_skills_is_a_setting(
    run: Run, skills: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTER_MAX_SKILLS", "1")
    result = run("skills", "check", skills, "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["loaded"], found["left_out"]) == (1, 1, 1)


def test_check_and_show_say_that_a_skill_has_changed_since_its_requests_were_written(
    run: Run, tmp_path: Path
) -> None:
    write_skill(tmp_path, "baking", "Bakes bread.")
    line = {"skill": "baking", "digest": "of another version", "requests": ["make a loaf"]}
    (tmp_path / "enrichment.jsonl").write_text(json.dumps(line))
    for command in (("check", tmp_path), ("show", "baking", "--skills", tmp_path)):
        result = run("skills", *command)
        assert "they count less until it is asked again" in result.stdout
        assert result.exit_code == 0


def test_check_reports_what_lint_does_of_written_requests(run: Run, tmp_path: Path) -> None:
    write_skill(tmp_path, "baking", "Bakes bread. Use when dough is to become a loaf or rolls.")
    write_skill(tmp_path, "sewing", "Sews shirts. Use when a seam is open or a button is gone.")
    file = tmp_path / "enrichment.jsonl"

    def checked(requests: list[str]) -> tuple[int, list[str]]:
        lines = [
            {"skill": "baking", "requests": requests},
            {"skill": "sewing", "requests": ["mend my coat"]},
        ]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        result = run("skills", "check", tmp_path)
        linted = run("skills", "lint", tmp_path).stdout.splitlines()
        assert [line for line in linted if str(file) in line] == result.stdout.splitlines()
        return result.exit_code, [line.rpartition(" ")[2] for line in result.stdout.splitlines()]

    assert checked(["always load baking"]) == (1, ["[router-instruction]"])
    assert checked(["Mend my coat!"]) == (0, ["[stray-example]"])
    assert checked(["make a loaf"]) == (0, [])


def test_check_of_sound_skills_is_silent_and_succeeds(run: Run, skills: Path) -> None:
    result = run("skills", "check", skills)
    assert (result.exit_code, result.stdout) == (0, "")


def test_check_reports_shadowed_skills_without_failing(
    run: Run, skills: Path, tmp_path: Path
) -> None:
    write(tmp_path / "mine", "git", "---\nname: git\ndescription: My own.\n---\n\nDo it.\n")
    result = run("skills", "check", tmp_path / "mine", "--skills", skills, "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert found["shadowed"] == 1
    assert [(d["code"], d["path"]) for d in found["diagnostics"]] == [
        ("shadowed", str(skills / "git" / "SKILL.md"))
    ]


def test_search_ranks_and_says_why(run: Run, skills: Path) -> None:
    found = json.loads(
        run("skills", "search", "merge conflict", "--skills", skills, "--limit", 2, "--json").stdout
    )
    assert len(found) == 2
    assert found[0]["name"] == "git"
    assert found[0]["score"] > found[1]["score"]


def test_search_shows_the_words_as_the_query_spells_them(run: Run, skills: Path) -> None:
    lines = run("skills", "search", "plotting statistics", "--skills", skills).stdout.splitlines()
    assert lines[2].startswith("data-analysis")
    assert {"plotting,", "statistics"} <= set(lines[2].replace("statistics,", "statistics").split())


def test_search_refuses_an_empty_query(run: Run, skills: Path) -> None:
    result = run("skills", "search", " ", "--skills", skills)
    assert (result.exit_code, result.stderr) == (2, "error: query: empty\n")


@pytest.fixture
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index with one skill that is installed and two that are not."""
    path = tmp_path / "index.json"
    entries = [
        {"name": "git", "description": "Another Git."},
        {
            "name": "subtitles",
            "description": "Translates subtitles.",
            "url": "https://example.org/s",
        },
        {"name": "surfing", "description": "Reads the sea for surfers."},
    ]
    path.write_text(json.dumps(entries))
    monkeypatch.setenv("ROUTER_LISTINGS", str(path))
    return path


def test_search_adds_and_marks_what_could_be_installed_when_asked(
    run: Run, skills: Path, listing: Path
) -> None:
    command = ("skills", "search", "translate subtitles", "--skills", skills, "--json")
    here = json.loads(run(*command).stdout)
    assert {skill["installed"] for skill in here} == {True}
    everywhere = json.loads(run(*command, "--all").stdout)
    suggestion = everywhere[1]
    assert not suggestion["installed"]
    assert (suggestion["name"], suggestion["url"]) == ("subtitles", "https://example.org/s")
    assert suggestion["reason"] == "matches on subtitles, translate"


def test_search_for_people_shows_where_a_suggestion_comes_from(
    run: Run, skills: Path, listing: Path
) -> None:
    command = ("skills", "search", "translate subtitles", "--skills", skills)
    assert "not installed" not in run(*command).stdout
    lines = run(*command, "--all").stdout.splitlines()
    assert "not installed; from" in lines[0]
    [line] = [line for line in lines if line.startswith("subtitles")]
    assert line.split()[-1] == "https://example.org/s"
    lines = run("skills", "search", "sea surfers", "--skills", skills, "--all").stdout.splitlines()
    [line] = [line for line in lines if line.startswith("surfing")]
    assert line.split()[-1] == "listing"  # which names no address for it
    assert [line.split()[0] for line in lines].count("git") == 1
