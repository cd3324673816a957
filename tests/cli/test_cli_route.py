"""``router route``: one request."""

from __future__ import annotations

import pytest
from cli.results import Run
from typer.testing import Result

from router.result import RoutingResult


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


def test_what_was_said_before_is_read_with_a_follow_up(route: Run) -> None:
    said = ("--history", "squash my last commits", "--history", "and push them")
    answer = parsed(route("and now?", *said, "--json"))
    assert (answer.selected_skills, "; read with" in answer.reasoning) == (("git",), True)
    assert "git (selected)" in route("and now?", *said, "--explain").stdout


def test_a_pasted_terminal_log_is_read_as_it_is_seen(route: Run) -> None:
    said = ("--history", "\x1b[1msquash\x1b[0m my last commits")
    answer = parsed(route("\x1b[31mand push them\x07", *said, "--no-semantic-cache", "--json"))
    assert answer.selected_skills == ("git",)
    assert answer.mission_brief == "Use git: and push them"


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
    ("arguments", "message"),
    [
        ((" ",), "request: empty"),
        (("\x07",), "request: empty"),
        (("x" * 20_001,), "request: 20,001 characters"),
        (("fix it", "--scope", " "), "scope: empty"),
        ((), "name a REQUEST, or a file with --batch"),
        (("fix it", "--batch", "-"), "--batch goes without REQUEST"),
        (("--batch", "no-such-file"), "--batch no-such-file: there is no such file"),
        (("--batch", "."), "--batch .: it is a folder"),
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
