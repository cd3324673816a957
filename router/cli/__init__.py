"""The command line: ``router``, also ``python -m router``.

Nothing is imported here before ``main`` is called, so that ``import router`` never pulls typer or
rich. The command groups import the library inside the commands, so that ``router --help`` and
shell completion answer at once.
"""

from __future__ import annotations

import io
import os
import signal
import sys

INTERRUPTED = 130
"""What a shell says of a command that Ctrl-C ended."""


def main() -> None:
    """The console script's entry point."""
    # While libraries are imported, an exception could come out of any line of any of them, and some
    # make another exception of it. There is nothing to be tidied up yet.
    usual = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))

    from router.cli.process import before_numpy

    before_numpy()

    from router.cli.app import app

    signal.signal(signal.SIGINT, usual)

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale that cannot show a character shows its escape; it does not end the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(prog_name="router")
    except KeyboardInterrupt:  # before the command could take it
        sys.exit(INTERRUPTED)
