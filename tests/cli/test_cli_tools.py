"""``router tools``: list, search and check, with pins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.results import Run
from servers.tool_folders import WEATHER, ToolFolders

TOOLS: list[dict[str, Any]] = [
    {"name": "get_weather", "description": "Tells the weather forecast of a city."},
    {"name": "send_email", "description": "Sends an email message."},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return path


def test_list_gives_names_and_descriptions(run: Run, file: Path) -> None:
    listed = json.loads(run("tools", "list", "--from", file, "--json").stdout)
    assert [(tool["name"], tool["source"]) for tool in listed] == [
        ("get_weather", "tools.json"),
        ("send_email", "tools.json"),
    ]
    assert "send_email" in run("tools", "list", "--from", file).stdout


def test_search_ranks_and_says_what_would_be_decided(run: Run, file: Path) -> None:
    result = run("tools", "search", "weather forecast", "--from", file, "--json")
    found = json.loads(result.stdout)
    assert [tool["name"] for tool in found["tools"]] == ["get_weather", "send_email"]
    assert found["decision"] in ("route", "clarify", "abstain")
    assert "get_weather" in run("tools", "search", "weather", "--from", file).stdout


def test_check_fails_for_a_tool_that_cannot_be_used(run: Run, file: Path) -> None:
    assert run("tools", "check", "--from", file).exit_code == 0
    file.write_text(json.dumps([*TOOLS, {"description": "x"}]))
    result = run("tools", "check", "--from", file)
    assert result.exit_code == 1
    assert "tool 3: the definition has no name" in result.stdout
    (fault,) = json.loads(run("tools", "check", "--from", file, "--json").stdout)["faults"]
    assert (fault["path"], fault["message"]) == (str(file), "tool 3: the definition has no name")


def test_check_fails_for_tools_that_are_not_what_was_pinned(run: Run, file: Path) -> None:
    pin = file.parent / "pinned.json"
    first, second = (run("tools", "check", "--from", file, "--pin", pin) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert f"{pin} was not there" in first.stderr
    assert "was not there" not in second.stderr
    nowhere = run("tools", "check", "--from", file, "--pin", "no/a")
    assert (nowhere.exit_code, "--pin: cannot write no/a" in nowhere.stderr) == (2, True)
    file.write_text(
        json.dumps(
            [
                {**TOOLS[0], "inputSchema": {"type": "object", "properties": {"cc": {}}}},
                {"name": "new"},
            ]
        )
    )
    result = run("tools", "check", "--from", file, "--pin", pin)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "get_weather: changed since the tools were pinned",
        "new: new since the tools were pinned",
        "send_email: gone since the tools were pinned",
    ]


def test_requests_that_an_llm_has_written_for_tools_are_imported_and_used(
    run: Run, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = file.parent / "enrichment.jsonl"
    questions, answers = file.parent / "questions.jsonl", file.parent / "answers.jsonl"
    enrich = ("tools", "enrich", "--from", file, "--to", to)
    plan = json.loads(run(*enrich, "--dry-run", "--json").stdout)
    assert plan["skills"] == ["get_weather", "send_email"]
    assert run(*enrich, "--export", questions).exit_code == 0
    asked = [json.loads(line) for line in questions.read_text().splitlines()]
    assert [question["skill"] for question in asked] == ["get_weather", "send_email"]
    written = [
        {
            "skill": "get_weather",
            "digest": asked[0]["digest"],
            "requests": ["should I take an umbrella along today?"],
        }
    ]
    answers.write_text("".join(json.dumps(line) + "\n" for line in written))
    run(*enrich, "--import", answers)
    assert "umbrella" in to.read_text()
    plan = json.loads(run(*enrich, "--dry-run", "--json").stdout)
    assert plan["skills"] == ["send_email"]
    monkeypatch.setenv("ROUTER_ENRICHMENT", str(to))
    found = run("tools", "search", "is an umbrella needed today", "--from", file, "--json")
    assert json.loads(found.stdout)["tools"][0]["name"] == "get_weather"


def test_a_server_that_hangs_is_waited_for_by_name_and_no_longer_than_asked(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "servers").mkdir()
    servers = ToolFolders(tmp_path / "servers")
    servers.put("slow", WEATHER, mode="hang")
    config = tmp_path / "servers.json"
    config.write_text(json.dumps(servers.config()))
    listed = run("tools", "list", "--mcp", config, "--mcp-timeout", "2", "--json")
    assert json.loads(listed.stdout) == []
    assert "waiting for slow, at most 2 s\n" in listed.stderr
    checked = run("tools", "check", "--mcp", config, "--mcp-timeout", "2")
    assert "slow: error: the server cannot be reached: no answer within 2 s" in checked.stdout


def test_without_a_source_the_way_out_is_named(run: Run) -> None:
    result = run("tools", "list")
    assert (result.exit_code, result.stderr) == (
        2,
        "error: name the tools: --from, --openapi or --mcp\n",
    )
