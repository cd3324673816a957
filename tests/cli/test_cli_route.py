"""``router route`` for one request, and the cache that it leaves behind."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from typer.testing import Result

from router.result import RoutingResult

Run = Callable[..., Result]


@pytest.fixture
def route(run: Run, skills: Path) -> Callable[..., Result]:
    """Routes over the five skills."""

    def invoke(*arguments: object, stdin: str | bytes | None = None) -> Result:
        return run("route", *arguments, "--skills", skills, stdin=stdin)

    return invoke


def parsed(result: Result) -> RoutingResult:
    assert result.exit_code == 0, result.stderr
    return RoutingResult.from_json(result.stdout)


def test_json_is_the_whole_result(route: Run) -> None:
    answer = parsed(route("commit my changes and push them", "--json"))
    assert answer.selected_skills == ("git",)
    assert len(answer.trace) == 4


def test_people_see_the_decision_and_the_skill(route: Run) -> None:
    lines = route("commit my changes and push them").stdout.splitlines()
    assert lines[0].split() == ["decision", "route"]
    assert lines[1].split() == ["load", "git"]


def test_a_dash_reads_the_request_from_standard_input(route: Run) -> None:
    answer = parsed(route("-", "--json", stdin="commit my changes\nand push them\n"))
    assert answer.selected_skills == ("git",)


def test_available_skills_alone_may_be_chosen(route: Run) -> None:
    answer = parsed(route("commit my changes", "--available", "writer, testing", "--json"))
    assert {*answer.selected_skills, *answer.suggested_skills} <= {"writer", "testing"}


def test_an_available_skill_that_is_not_installed_is_reported(route: Run) -> None:
    result = route("commit my changes", "--available", "git,gti")
    assert result.exit_code == 0
    assert result.stderr == "warning: --available: no skill named 'gti' is installed\n"


def test_a_later_process_finds_the_answer_in_the_fuzzy_cache_of_its_scope_only(route: Run) -> None:
    request = "commit my changes and push them"
    first = parsed(route(request, "--scope", "ann", "--json"))
    again = parsed(route(request, "--scope", "ann", "--json"))
    other = parsed(route(request, "--scope", "bob", "--json"))
    left_out = parsed(route(request, "--scope", "ann", "--no-semantic-cache", "--json"))
    assert [a.stage.value for a in (first, again, other, left_out)] == [
        "vector",
        "fuzzy",
        "vector",
        "vector",
    ]


def test_no_llm_leaves_a_configured_llm_alone(route: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    answer = parsed(route("commit my changes and push them", "--no-llm", "--json"))
    assert answer.stage.value == "vector"
    assert answer.trace[2].outcome.value == "skipped"


LONG = "commit my changes and push them " + "with a good message " * 30


def test_an_llm_that_fails_is_told_of_once(
    route: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ROUTER_LLM__MAX_RETRIES", "0")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    result = route("commit my changes")
    assert result.exit_code == 0
    assert result.stderr.count("Connection error") == 1
    assert caplog.messages == []


@pytest.mark.parametrize(
    "request_text",
    ["commit my changes and push them", LONG, "zxcv qwer", "提交我的更改 commit" * 50],
)
def test_the_explanation_fits_on_one_screen(
    route: Run, monkeypatch: pytest.MonkeyPatch, request_text: str
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = route(request_text, "--explain").stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(cell_len, lines)) <= 100


def test_the_explanation_sets_the_winner_against_the_runner_up(route: Run) -> None:
    shown = route("commit my changes and push them", "--explain").stdout
    words = shown.split()
    assert "git (selected)" in shown
    assert shown.count("ahead of") == 1
    assert all(stage in words for stage in ("fuzzy", "exact", "llm", "vector"))


def test_an_answer_from_the_cache_is_explained_too(route: Run) -> None:
    request = "commit my changes and push them"
    assert route(request).exit_code == 0
    shown = route(request, "--explain").stdout
    assert "fuzzy in" in shown
    assert "git (selected)" in shown


def test_one_skill_alone_is_explained_without_a_runner_up(route: Run) -> None:
    result = route("commit my changes", "--available", "git", "--explain")
    assert result.exit_code == 0
    assert "ahead of" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((" ",), "request: empty"),
        (("bell \x07",), "request: control character U+0007"),
        (("x" * 20_001,), "request: 20,001 characters"),
        (("fix it", "--scope", " "), "scope: empty"),
        ((), "name a REQUEST, or a file with --batch"),
        (("fix it", "--batch", "-"), "--batch goes without REQUEST"),
        (("--batch", "no-such-file"), "--batch no-such-file: there is no such file"),
    ],
)
def test_wrong_input_is_refused_with_its_name(
    route: Run, arguments: tuple[str, ...], message: str
) -> None:
    result = route(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff", "error: standard input: not UTF-8: byte 1\n"),
        (b"x" * 100_000, "error: standard input: over 20,000 characters\n"),
        (b"", "error: request: empty\n"),
    ],
)
def test_wrong_standard_input_is_refused(route: Run, data: bytes, message: str) -> None:
    result = route("-", stdin=data)
    assert (result.exit_code, result.stderr) == (2, message)


def cache_stats(run: Run) -> dict[str, Any]:
    stats: dict[str, Any] = json.loads(run("cache", "stats", "--json").stdout)
    return stats


def test_the_cache_is_counted_and_cleared(run: Run, route: Run) -> None:
    assert route("commit my changes and push them").exit_code == 0
    assert cache_stats(run)["entries"] == 1
    assert run("cache", "clear", "--yes").stderr == "forgot 1 cached route\n"
    assert cache_stats(run)["entries"] == 0


def test_the_cache_is_kept_unless_the_question_is_answered_with_yes(run: Run, route: Run) -> None:
    assert route("commit my changes and push them").exit_code == 0
    assert run("cache", "clear", stdin="n\n").exit_code == 1
    assert cache_stats(run)["entries"] == 1
    assert run("cache", "clear", stdin="y\n").exit_code == 0
    assert cache_stats(run)["entries"] == 0
