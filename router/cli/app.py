"""The command tree, and what every command does with an error."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_group

from router.cli import output
from router.errors import (
    ConfigurationError,
    InvalidRequest,
    ReadOnlyMemory,
    RouterError,
    UnknownMemory,
    UnknownSkill,
)

EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 it ran and something is wrong (a skill that cannot be loaded, a bad "
    "batch line, a store that cannot be opened); 2 the command line, a setting or the input is "
    "wrong; 130 interrupted."
)

_INPUT_FAULTS = (
    ConfigurationError,
    InvalidRequest,
    ReadOnlyMemory,
    UnknownMemory,
    UnknownSkill,
)


_COMMANDS: Final = {
    "route": "route:route",
    "skills": "skills:app",
    "tools": "tools:app",
    "cache": "cache:app",
    "memory": "memory:app",
    "config": "config:show_config",
    "trust": "trust:trust_folder",
    "feedback": "learn:give_feedback",
    "calibrate": "learn:calibrate",
    "learn": "learn:app",
    "eval": "evaluate:evaluate_file",
    "mcp": "mcp:mcp",
    "serve": "serve:serve",
    "keys": "keys:app",
    "demo": "demo:demo",
}
"""The commands and groups of commands, each with its module in ``router.cli`` and its name there,
in the order in which they are listed."""


class _Commands(TyperGroup):
    """Imports a command when it is asked for, because describing all of them to typer takes longer
    than routing a request. Reports the router's own errors in one line; anything else is a bug and
    keeps its trace."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: dict[str, Any] = dict.fromkeys(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = _load(cmd_name)
        return super().get_command(ctx, cmd_name)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RouterError as error:
            output.error(error)
            raise typer.Exit(2 if isinstance(error, _INPUT_FAULTS) else 1) from error
        except BrokenPipeError:
            raise  # the reader has gone: nobody is there to be told
        except OSError as error:  # a full disk above all
            # Only the working directory is asked for without a name.
            gone = isinstance(error, FileNotFoundError) and error.filename is None
            output.error("the working directory has been deleted" if gone else error)
            raise typer.Exit(1) from error
        except (MemoryError, RuntimeError) as error:
            # A thread's stack is memory, too; Python says so in no other way.
            if isinstance(error, RuntimeError) and str(error) != "can't start new thread":
                raise
            output.error("out of memory or threads: this process may take no more")
            raise typer.Exit(1) from error


def _load(name: str) -> Any:
    module, attribute = _COMMANDS[name].split(":")
    found = getattr(import_module(f"router.cli.{module}"), attribute)
    parent = typer.Typer(rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        parent.add_typer(found, name=name)
    else:
        parent.command(name)(found)
    command = get_group(parent).commands[name]
    for one in getattr(command, "commands", {name: command}).values():
        one.epilog = one.epilog or EXIT_CODES
    return command


app = typer.Typer(
    cls=_Commands,
    help="Decides which skills an agent should load and which memories it should read.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    # Plain help: a third of the time of rich's, and it takes no brackets for markup.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from router.version import package_version

        number = package_version() or "(a source tree that is not installed)"
        typer.echo(f"cascade-router {number}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass
