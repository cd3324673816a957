"""``router trust``: what is shown, what is recorded, and what ``router config`` says of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.results import Run


@pytest.fixture
def clone() -> Path:
    """The working directory, with one setting that needs trust and one that does not."""
    Path("router.toml").write_text(
        'max_concurrency = 3\n[llm.openai]\nbase_url = "http://me:pw@127.0.0.1:9/v1"\n'
    )
    return Path.cwd()


def test_what_is_trusted_is_shown_without_credentials(run: Run, clone: Path) -> None:
    result = run("trust")
    assert result.exit_code == 0
    assert result.stdout == (
        f"trusted {clone}, until one of these changes:\n"
        "  router.toml: llm.openai.base_url = http://********@127.0.0.1:9/v1\n"
    )


def test_the_list_says_which_folders_are_still_trusted(run: Run, clone: Path) -> None:
    others = [clone / "changed", clone / "gone"]
    for folder in others:
        folder.mkdir()
        (folder / "router.toml").write_text('state_dir = "here"\n')
    for folder in (clone, *others):
        run("trust", folder)
    (others[0] / "router.toml").write_text('state_dir = "there"\n')
    (others[1] / "router.toml").unlink()
    others[1].rmdir()
    assert json.loads(run("trust", "--list", "--json").stdout) == [
        {"folder": str(clone), "state": "trusted"},
        {"folder": str(others[0]), "state": "changed since; trust it again"},
        {"folder": str(others[1]), "state": "gone"},
    ]
    assert run("trust", "--revoke", clone).stdout == f"{clone} is trusted no more\n"
    assert run("trust", "--revoke", clone).stdout == f"{clone} was not trusted\n"
    assert str(clone) not in [
        row["folder"] for row in json.loads(run("trust", "--list", "--json").stdout)
    ]


def test_a_folder_that_needs_no_trust_is_not_recorded(run: Run) -> None:
    Path("router.toml").write_text("max_concurrency = 3\n")
    assert run("trust").stdout == f"{Path.cwd()} sets nothing that needs trust\n"
    assert json.loads(run("trust", "--list", "--json").stdout) == []


@pytest.mark.parametrize("arguments", [("--list", "."), ("--list", "--revoke"), ("nowhere",)])
def test_a_wrong_command_line_is_refused(run: Run, arguments: tuple[str, ...]) -> None:
    assert run("trust", *arguments).exit_code == 2


def test_config_shows_what_is_not_trusted(run: Run, clone: Path) -> None:
    shown = json.loads(run("config", "--json").stdout)
    assert shown["llm.openai.base_url"] == {
        "value": None,
        "source": "default",
        "not_trusted": ["router.toml"],
    }
    assert shown["max_concurrency"] == {"value": 3, "source": "router.toml"}
    assert "default (router.toml: not trusted)" in run("config").stdout
    run("trust")
    assert json.loads(run("config", "--json").stdout)["llm.openai.base_url"] == {
        "value": "http://********@127.0.0.1:9/v1",
        "source": "router.toml",
    }


def test_config_names_the_users_own_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path("home").resolve()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    file = home / "cascade-router" / "router.toml"
    file.parent.mkdir(parents=True)
    file.write_text("max_concurrency = 7\n")
    shown = json.loads(run("config", "--json").stdout)
    assert shown["max_concurrency"] == {"value": 7, "source": str(file)}
