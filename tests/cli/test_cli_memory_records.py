"""``router memory``, over what is stored: one search, list, edit, profile, export, forget."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

Run = Callable[..., Result]


def parsed(result: Result) -> Any:
    return json.loads(result.stdout)


def ids(answer: dict[str, Any]) -> list[str]:
    return [item["id"] for item in answer["items"]]


def save(memory: Run, name: str, text: str, layer: str, *more: str) -> None:
    memory("save", text, "--layer", layer, "--name", name, *more)


def test_one_search_covers_layers_and_files(memory: Run) -> None:
    save(memory, "port", "Redis listens on port 6380.", "semantic")
    memory("save", "Redis is restarted with make redis.", "--name", "ops/redis")
    found = parsed(memory("search", "redis", "--json"))
    assert sorted(ids(found)) == ["ops/redis", "port"]
    assert (found["layers"]["status"], found["files"]["status"]) == ("ok", "ok")
    assert ids(parsed(memory("search", "redis", "--lexical-only", "--json"))) == ["ops/redis"]
    assert "port" in memory("search", "redis").stdout


def test_a_search_sees_what_its_scope_sees(memory: Run) -> None:
    save(memory, "port", "Redis listens on port 6380.", "semantic")
    assert parsed(memory("search", "redis", "--user", "bob", "--json"))["items"] == []


def test_what_a_thing_depends_on_is_told_with_the_second_hop(memory: Run) -> None:
    for entity, relations, text in (
        ("checkout", "depends on -> payment; uses -> cart", "Checkout calls payment and cart."),
        ("payment", "depends on -> ledger", "Payments are booked in the ledger."),
        ("search", "uses -> elastic", "Search asks Elasticsearch."),
    ):
        given = ("--attribute", f"entity={entity}", "--attribute", f"relations={relations}")
        save(memory, entity, text, "graph", *given)
    found = parsed(memory("recall", "What does checkout depend on?", "--json"))
    assert ids(found)[:2] == ["checkout", "payment"]
    assert "search" not in ids(found)


def test_a_relation_without_a_target_is_refused(memory: Run, run: Run) -> None:
    result = run(
        *("memory", "save", "x", "--layer", "graph"),
        *("--attribute", "entity=a", "--attribute", "relations=uses Redis"),
    )
    assert result.exit_code == 2
    assert "write verb -> Target" in result.stderr


def test_yesterday_is_a_day_where_the_asker_is(memory: Run, run: Run) -> None:
    memory("recall", "What did I do yesterday?", "--time-zone", "Asia/Tokyo")
    memory("context", "What did I do yesterday?", "--time-zone", "Asia/Tokyo")
    result = run("memory", "recall", "What?", "--time-zone", "Atlantis")
    assert (result.exit_code, "time_zone: 'Atlantis'" in result.stderr) == (2, True)


def test_pages_are_listed_newest_first_and_go_on(memory: Run) -> None:
    for day in ("2026-01-01", "2026-01-03", "2026-01-02"):
        save(memory, day, f"What happened on {day}.", "episodic", "--created", day)
    first = parsed(memory("list", "--limit", "2", "--json"))
    assert ids(first) == ["2026-01-03", "2026-01-02"]
    rest = parsed(memory("list", "--limit", "2", "--after", first["next"], "--json"))
    assert (ids(rest), rest["next"]) == (["2026-01-01"], None)
    shown = memory("list", "--limit", "2", "--layer", "episodic")
    assert "2026-01-03" in shown.stdout
    assert "--after" in shown.stderr


def test_an_edit_changes_what_it_names_and_nothing_else(memory: Run) -> None:
    save(memory, "t", "Renew the domain.", "prospective", "--attribute", "due=2026-12-01")
    changed = parsed(
        memory(
            *("edit", "t", "--layer", "prospective", "--tag", "ops", "--json"),
            *("--attribute", "status=complete", "--attribute", "due="),
        )
    )
    assert (changed["content"], changed["tags"]) == ("Renew the domain.", ["ops"])
    assert parsed(memory("get", "t", "--layer", "prospective", "--json"))["attributes"] == {
        "status": "done"
    }


def test_a_profile_is_what_holds_now(memory: Run) -> None:
    save(memory, "diet", "I am allergic to peanuts.", "user", "--created", "2026-01-01")
    save(memory, "old", "I live in Graz.", "user", "--created", "2026-01-01")
    new = ("--supersede", "old", "--created", "2026-03-01")
    save(memory, "new", "I live in Linz now.", "user", *new)
    assert {item["id"] for item in parsed(memory("profile", "--json"))} == {"diet", "new"}


def test_what_is_exported_is_imported_elsewhere(
    memory: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(memory, "diet", "I am allergic to peanuts.", "user")
    save(memory, "port", "Redis listens on port 6380.", "semantic", "--user", "bob")
    lines = memory("export", "--user", "ada").stdout
    assert [json.loads(line)["id"] for line in lines.splitlines()] == ["diet"]
    (tmp_path / "ada.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setenv("ROUTER_MEMORY__DIRECTORY", str(tmp_path / "elsewhere"))
    assert memory("import", tmp_path / "ada.jsonl").stdout == "imported 1 memories\n"
    assert ids(parsed(memory("recall", "What can't I eat?", "--json"))) == ["diet"]


def test_forgetting_leaves_nothing_and_says_so(memory: Run, run: Run) -> None:
    save(memory, "diet", "I am allergic to peanuts.", "user")
    assert run("memory", "forget", "--user", "ada").exit_code == 2
    report = parsed(memory("forget", "--user", "ada", "--yes", "--json"))
    assert (report["items"], report["left"], report["vectors"], report["waiting"]) == (1, 0, 0, 0)
    assert parsed(memory("list", "--json"))["items"] == []
