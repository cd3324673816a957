"""The command as a whole: help, version, start-up weight, what an error looks like."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from cli.results import Run
from click import Context
from typer.main import get_command

from router.cli.app import app


def every_command() -> Iterator[tuple[str, ...]]:
    """The names of each command, in the order of the help."""
    group: Any = get_command(app)
    context = Context(group)
    for name in group.list_commands(context):
        inside = getattr(group.get_command(context, name), "commands", None)
        yield from ((name, one) for one in inside) if inside else ((name,),)


def test_every_command_documents_itself_and_the_exit_codes(run: Run) -> None:
    commands = list(every_command())
    assert {("route",), ("skills", "lint"), ("memory", "recall")} < set(commands)
    for command in commands:
        result = run(*command, "--help")
        assert (command, result.exit_code) == (command, 0)
        usage, _, text = result.stdout.partition("\n\n")
        assert usage.startswith(f"Usage: root {' '.join(command)} "), usage
        assert text.strip(), command
        assert "Exit codes: 0" in text, command


def test_every_command_has_json_but_servers_and_those_that_print_nothing_else(run: Run) -> None:
    without = {("learn", "export"), ("memory", "export"), ("mcp",), ("serve",)}
    for command in every_command():
        has = "--json" in run(*command, "--help").stdout
        assert has == (command not in without), command


def test_the_version_is_shown(run: Run) -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout.startswith("cascade-router ")


def test_help_needs_neither_the_library_nor_rich() -> None:
    code = (
        "import sys\n"
        "from router.cli import main\n"
        "sys.argv = ['router', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print('exit', end.code)\n"
        "heavy = {'chromadb', 'numpy', 'openai', 'ollama', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("exit 0\n[]\n")


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "router", "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Usage: router ")


def test_an_unknown_command_is_a_usage_error(run: Run) -> None:
    assert run("rout").exit_code == 2


def test_an_error_of_the_router_is_one_line_on_standard_error(run: Run) -> None:
    result = run("skills", "check", "no-such-folder")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("error: the skills folder no-such-folder does not exist")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("fault", [MemoryError(), RuntimeError("can't start new thread")])
def test_too_little_memory_is_one_line_on_standard_error(
    run: Run, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def full(*_: object, **__: object) -> None:
        raise fault

    monkeypatch.setattr("router.bounded.files.os.fdopen", full)
    result = run("skills", "list")
    assert result.exit_code == 1
    assert result.stderr == "error: out of memory or threads: this process may take no more\n"


def test_ctrl_c_before_there_is_a_command_ends_without_a_traceback() -> None:
    code = (
        "import router.cli.app as loaded\n"
        "def interrupted(**_): raise KeyboardInterrupt\n"
        "loaded.app = interrupted\n"
        "from router.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (130, b"")
