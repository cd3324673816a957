"""``router route --explain``: why one skill won and another did not."""

from __future__ import annotations

import pytest
from cli.results import Run
from rich.cells import cell_len

LONG = "commit my changes and push them " + "with a good message " * 30


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


def test_a_narrow_screen_still_says_what_the_figures_are(
    route: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = route("commit my changes and push them", "--explain").stdout.splitlines()
    assert max(map(cell_len, lines)) <= 40
    assert {"words in common", "wording", "meaning", "examples"} <= {
        line[: len("words in common")].strip() for line in lines
    }


def test_the_explanation_sets_the_winner_against_the_runner_up(route: Run) -> None:
    shown = route("commit my changes and push them", "--explain").stdout
    words = shown.split()
    assert "git (selected)" in shown
    assert shown.count("ahead of") == 1
    assert all(stage in words for stage in ("fuzzy", "exact", "llm", "vector"))


def test_the_explanation_says_what_each_clause_asks_for(route: Run) -> None:
    shown = route("squash the last commits and write unit tests", "--explain").stdout
    assert "Clauses" in shown and "write unit tests: testing" in shown
    assert "Clauses" not in route("squash the last commits", "--explain").stdout


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
