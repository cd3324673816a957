"""``router config``: effective values, their sources, and no secret anywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.results import Run

SECRET = "sk-something-secret"  # noqa: S105 - not a real one


def configuration(run: Run) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(run("config", "--json").stdout)
    return shown


def test_each_value_names_the_strongest_source_that_gives_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("pyproject.toml").write_text(
        "[tool.router]\nmax_concurrency = 3\n"
        "[tool.router.vector]\nmax_suggestions = 1\ncaution = 0.7\n"
    )
    Path("router.toml").write_text("shipped_skills = false\n[vector]\nmax_suggestions = 2\n")
    monkeypatch.setenv("ROUTER_VECTOR__CAUTION", "0.9")
    shown = configuration(run)
    assert {name: (shown[name]["value"], shown[name]["source"]) for name in _ASKED} == {
        "max_concurrency": (3, "pyproject.toml"),
        "shipped_skills": (False, "router.toml"),
        "vector.max_suggestions": (2, "router.toml"),
        "vector.caution": (0.9, "ROUTER_VECTOR__CAUTION"),
        "exact.max_entries": (1000, "default"),
    }


_ASKED = (
    "max_concurrency",
    "shipped_skills",
    "vector.max_suggestions",
    "vector.caution",
    "exact.max_entries",
)


def test_a_variable_that_holds_a_whole_section_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTER_EXACT", '{"max_entries": 5}')
    shown = configuration(run)
    assert shown["exact.max_entries"] == {"value": 5, "source": "ROUTER_EXACT"}
    assert shown["exact.ttl_seconds"]["source"] == "default"


@pytest.mark.parametrize(
    "variable",
    ["ROUTER_LLM__OPENAI__API_KEY", "OPENAI_API_KEY", "ROUTER_MEMORY__SERVICE__TOKEN"],
)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_keys_are_masked(
    run: Run, monkeypatch: pytest.MonkeyPatch, variable: str, options: tuple[str, ...]
) -> None:
    monkeypatch.setenv(variable, SECRET)
    result = run("config", *options)
    assert result.exit_code == 0
    assert variable in result.stdout
    assert SECRET not in result.output


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://host/v1", "https://host/v1"),
        (f"https://user:{SECRET}@host/v1", "https://********@host/v1"),
        (f"https://{SECRET}@host", "https://********@host"),
        (f"https://host/v1?key={SECRET}", "https://host/v1?********"),
        (f"{SECRET}@host:11434", "********@host:11434"),
    ],
)
def test_credentials_in_addresses_are_masked(
    run: Run, monkeypatch: pytest.MonkeyPatch, address: str, shown: str
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", address)
    monkeypatch.setenv("ROUTER_LLM__OPENAI__BASE_URL", address)
    found = configuration(run)
    assert found["llm.ollama.host"] == {"value": shown, "source": "OLLAMA_HOST"}
    assert found["llm.openai.base_url"]["value"] == shown
    if "://" in address:
        monkeypatch.setenv("ROUTER_VECTOR_STORE", address)
        assert configuration(run)["vector_store"]["value"] == shown


def test_a_malformed_setting_is_a_configuration_error(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTER_FUZZY__MAX_ENTRIES", "none")
    result = run("config")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: setting fuzzy.max_entries: ")


def test_it_works_where_the_files_of_the_folder_are_not_wanted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("router.toml").write_text("broken = [")
    result = run("config")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "ROUTER_FOLDER_SETTINGS=false" in result.stderr
    monkeypatch.setenv("ROUTER_FOLDER_SETTINGS", "false")
    assert configuration(run)["folder_settings"] == {
        "value": False,
        "source": "ROUTER_FOLDER_SETTINGS",
    }


@pytest.mark.parametrize(
    ("variables", "how", "why"),
    [
        ({}, "native", "this system"),
        ({"ROUTER_WATCH__POLLING": "true"}, "polling", "asked for"),
        ({"WATCHFILES_FORCE_POLLING": "1"}, "polling", "WATCHFILES_FORCE_POLLING is set"),
    ],
)
def test_it_says_whether_file_events_are_native_and_why_not(
    run: Run, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], how: str, why: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert configuration(run)["file events"] == {"value": how, "source": why}


def test_it_says_so_when_the_system_has_no_events_to_give(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_watches_left(*_: object, **__: object) -> None:
        raise OSError("no space left for watches")

    monkeypatch.setattr("watchfiles.watch", no_watches_left)
    assert configuration(run)["file events"] == {
        "value": "polling",
        "source": "no native events: no space left for watches",
    }
