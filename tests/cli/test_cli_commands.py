"""One way for a command to print what it found, and to open the memory."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from router.cli.commands import Work, memory_command, prints


def show(found: dict[str, int]) -> None:
    typer.echo(", ".join(f"{name}: {number}" for name, number in found.items()))


@prints(show, failed=lambda found: found["faults"])
def count(faults: Annotated[int, typer.Option("--faults", help="How many.")] = 0) -> dict[str, int]:
    """Count."""
    return {"faults": faults}


@memory_command(lambda found: typer.echo(found["who"]))
def whose(query: Annotated[str, typer.Argument(metavar="QUERY")]) -> Work:
    """Say who asks what."""

    async def tell(_memory: Any, scope: Any) -> dict[str, str]:
        return {"who": f"{scope.user} asks {query}", "project": scope.project}

    return tell


def invoke(command: Any, *arguments: str) -> tuple[int, str]:
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "printed"),
    [
        ((), 0, "faults: 0\n"),
        (("--faults", "2"), 1, "faults: 2\n"),
        (("--json",), 0, '{\n  "faults": 0\n}\n'),
        (("--json", "--faults", "2"), 1, '{\n  "faults": 2\n}\n'),
    ],
)
def test_what_was_found_is_printed_for_people_or_as_json_and_decides_the_exit_code(
    arguments: tuple[str, ...], code: int, printed: str
) -> None:
    assert invoke(count, *arguments) == (code, printed)


def test_help_shows_the_options_of_the_function_and_those_that_are_added() -> None:
    _, shown = invoke(whose, "--help")
    for said in ("Say who asks what.", "QUERY", "--user", "--project", "--session", "--json"):
        assert said in shown


def test_a_command_of_memory_gets_the_scope_that_is_said_or_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ROUTER_MEMORY__USER", "ada")
    assert invoke(whose, "what?") == (0, "ada asks what?\n")
    _, told = invoke(whose, "what?", "--user", "bob", "--project", "shop", "--json")
    assert json.loads(told) == {"who": "bob asks what?", "project": "shop"}
