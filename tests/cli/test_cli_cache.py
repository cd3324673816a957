"""``router cache``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from typer.testing import Result

Run = Callable[..., Result]


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
