"""``router cache``."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli.results import Run


def cache_stats(run: Run) -> dict[str, Any]:
    stats: dict[str, Any] = json.loads(run("cache", "stats", "--json").stdout)
    return stats


def test_the_cache_is_counted_and_cleared(run: Run, route: Run) -> None:
    assert route("commit my changes and push them").exit_code == 0
    assert cache_stats(run)["entries"] == 1
    assert run("cache", "clear", "--yes").stderr == "forgot 1 cached route\n"
    assert cache_stats(run)["entries"] == 0
    assert json.loads(run("cache", "clear", "--yes", "--json").stdout) == {"forgotten": 0}


def test_the_cache_is_kept_unless_the_question_is_answered_with_yes(run: Run, route: Run) -> None:
    assert route("commit my changes and push them").exit_code == 0
    assert run("cache", "clear", stdin="n\n").exit_code == 1
    assert cache_stats(run)["entries"] == 1
    assert run("cache", "clear", stdin="y\n").exit_code == 0
    assert cache_stats(run)["entries"] == 0


@pytest.mark.parametrize("arguments", [("stats",), ("clear", "--yes")])
def test_a_cache_that_cannot_be_opened_is_an_error(
    run: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "state").write_text("a file where a folder should be")
    done = run("cache", *arguments)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "fuzzy.sqlite3: cannot be used" in done.stderr
    assert "forgot" not in done.stderr


def test_routes_that_could_not_be_forgotten_are_an_error(
    run: Run, route: Run, tmp_path: Path
) -> None:
    assert route("commit my changes and push them").exit_code == 0
    with closing(sqlite3.connect(tmp_path / "state" / "fuzzy.sqlite3")) as other:
        other.execute("BEGIN IMMEDIATE")
        done = run("cache", "clear", "--yes")
    assert done.exit_code == 1
    assert "fuzzy.sqlite3: the routes are still there" in done.stderr
    assert cache_stats(run)["entries"] == 1
