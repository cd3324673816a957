"""``router keys``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from router.cli.app import app
from router.cli.keys import key_file


def test_the_commands_make_list_and_revoke_keys() -> None:
    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["keys", *arguments])
        assert done.exit_code == 0, done.output
        return done.stdout

    bound = ("--scope", "shop", "--namespace", "crm")
    made = json.loads(run("new", "other", "--json"))
    assert key_file().find(made["key"]) == key_file().all()[0]
    assert json.loads(run("revoke", made["id"], "--json")) == {"id": made["id"], "keys_left": 0}
    secret = run("new", "agents", "--right", "route", *bound).strip()
    assert key_file().find(secret) is not None
    [listed] = json.loads(run("list", "--json"))
    assert (listed["name"], listed["rights"], listed["scopes"]) == ("agents", ["route"], ["shop"])
    assert listed["namespaces"] == ["crm"]
    assert "agents" in run("list")
    run("revoke", listed["id"])
    assert json.loads(run("list", "--json")) == []


def test_a_file_that_cannot_be_written_is_no_fault_of_the_command_line() -> None:
    folder = key_file().path.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("a file where a folder should be")
    done = CliRunner().invoke(app, ["keys", "new", "agents"])
    assert done.exit_code == 1
    assert "cannot be written" in done.stderr


def test_whoever_revokes_the_last_key_is_told_that_a_server_may_be_open_again() -> None:
    app_of_keys = CliRunner()
    for name in ("one", "two"):
        app_of_keys.invoke(app, ["keys", "new", name])
    first, last = (key.id for key in key_file().all())
    assert "the last one" not in app_of_keys.invoke(app, ["keys", "revoke", first]).stderr
    assert "the last one" in app_of_keys.invoke(app, ["keys", "revoke", last]).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["new", "x", "--right", "everything"],
            "is not one of 'route', 'feedback', 'manage', 'memory'",
        ),
        (["revoke", "nothing"], "no key has the id"),
        (["new", "x", "--right", "memory", "--scope", "shop"], "reaches all scopes"),
        (["new", "x", "--namespace", "A B"], "error: namespace 'A B': a namespace has"),
    ],
)
def test_what_cannot_be_done_with_keys_is_said(arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["keys", *arguments])
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())
