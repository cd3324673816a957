"""The command tree, and what every command does with an error."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from router.cli import (
    cache,
    config,
    demo,
    enrich,
    evaluate,
    keys,
    learn,
    lint,
    mcp,
    memory,
    output,
    route,
    serve,
    skills,
    tools,
    trust,
    watch,
)
from router.cli.options import EXIT_CODES
from router.errors import (
    ConfigurationError,
    InvalidRequest,
    ReadOnlyMemory,
    RouterError,
    UnknownMemory,
    UnknownSkill,
)

_INPUT_FAULTS = (
    ConfigurationError,
    InvalidRequest,
    ReadOnlyMemory,
    UnknownMemory,
    UnknownSkill,
)


class _Commands(TyperGroup):
    """Reports the router's own errors in one line; anything else is a bug and keeps its trace."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except RouterError as error:
            output.error(error)
            raise typer.Exit(2 if isinstance(error, _INPUT_FAULTS) else 1) from error
        except BrokenPipeError:
            raise  # the reader has gone: nobody is there to be told
        except OSError as error:  # a full disk above all
            output.error(error)
            raise typer.Exit(1) from error


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
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("cascade-router")
        except PackageNotFoundError:
            number = "(a source tree that is not installed)"
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


app.command("route", epilog=EXIT_CODES)(route.route)
skills.app.command("lint", epilog=lint.EXIT_CODES)(lint.lint_skills)
skills.app.command("new", epilog=EXIT_CODES)(lint.new_skill)
skills.app.command("enrich", epilog=EXIT_CODES)(enrich.enrich_skills)
skills.app.command("watch", epilog=EXIT_CODES)(watch.watch_skills)
app.add_typer(skills.app, name="skills", help="List, show, search, check, lint and write skills.")
app.add_typer(tools.app, name="tools", help="List, search and check the tools of an agent.")
app.add_typer(cache.app, name="cache", help="Look at the cached routes, or forget them.")
app.add_typer(memory.app, name="memory", help="Classify, search, recall, assemble, remember.")
app.command("config", epilog=EXIT_CODES)(config.show_config)
app.command("trust", epilog=EXIT_CODES)(trust.trust_folder)
app.command("feedback", epilog=EXIT_CODES)(learn.give_feedback)
app.command("calibrate", epilog=EXIT_CODES)(learn.calibrate)
app.add_typer(learn.app, name="learn", help="Look at what was learnt, export, import, forget.")
app.command("eval", epilog=EXIT_CODES)(evaluate.evaluate_file)
app.command("mcp", epilog=EXIT_CODES)(mcp.mcp)
app.command("serve", epilog=EXIT_CODES)(serve.serve)
app.add_typer(keys.app, name="keys", help="Make, list and revoke keys of router serve.")
app.command("demo", epilog=EXIT_CODES)(demo.demo)
