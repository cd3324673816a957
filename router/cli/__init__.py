"""The command line: ``router``, also ``python -m router``.

Nothing that takes time is imported before ``main`` is called, so that Ctrl-C is taken from the
first moment, and ``import router`` never pulls typer or rich. The command groups import the library
inside the commands, so that ``router --help`` and shell completion answer at once.
"""

import io
import os
import sys

INTERRUPTED = 130
"""What a shell says of a command that Ctrl-C ended."""


def main() -> None:
    """The console script's entry point."""
    try:
        _run()
    except KeyboardInterrupt:  # before or after the command could take it
        sys.exit(INTERRUPTED)
    except RuntimeError as error:
        # Ctrl-C while a class is being defined: Python 3.11 raises it inside a RuntimeError.
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        sys.exit(INTERRUPTED)


def _run() -> None:
    import signal

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started the command, such as a scheduler
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - pathlib takes time

    # While libraries are imported, Ctrl-C would raise an exception in the middle of one of them,
    # and some turn it into another exception. Nothing has to be tidied up yet, so the process just
    # ends.
    usual = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))

    from router.cli.process import start_quickly

    start_quickly()  # before numpy is imported

    from router.cli.app import app

    signal.signal(signal.SIGINT, usual)

    if isinstance(sys.stdout, io.TextIOWrapper):
        # A locale that cannot show a character shows its escape; it does not end the command.
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="router")
