"""The command line: ``router``, also ``python -m router``.

Nothing is imported here before ``main`` is called, so that ``import router`` never pulls typer or
rich. The command groups import the library inside the commands, so that ``router --help`` and
shell completion answer at once.
"""

from __future__ import annotations

import io
import sys

INTERRUPTED = 130
"""What a shell says of a command that Ctrl-C ended."""


def main() -> None:
    """The console script's entry point."""
    try:
        _run()
    except KeyboardInterrupt:  # before there is a command that could take it
        sys.exit(INTERRUPTED)


def _run() -> None:
    from router.cli.process import before_numpy

    before_numpy()

    from router.cli.app import app

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale that cannot show a character shows its escape; it does not end the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="router")
