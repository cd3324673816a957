"""What all commands share: where output goes, and in which form.

Data goes to standard output, everything about the run (progress, warnings, errors) to standard
error, so that output can be piped. Requests, skill texts and paths come from strangers: before a
terminal sees them, ``plain`` takes the power out of control characters, and rich's markup is off.
JSON is always UTF-8, whatever the locale.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from router.errors import ConfigurationError, InvalidRequest
from router.plain_json import plain_json

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console
    from rich.table import Table

    from router.result import RoutingResult

PIPED_WIDTH: Final = 100
"""Columns of a table that no terminal shows; the variable COLUMNS overrides it."""

_ACTIVE: Final = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
"""Unicode categories that act on the display instead of showing: controls, direction marks,
halves of surrogate pairs, line and paragraph separators."""
_JOINERS: Final = frozenset("\u200c\u200d")
"""Format characters that scripts and emoji need; they join what stands beside them, no more."""


def plain(text: object) -> str:
    """Any value as one line of text that is safe to print: control characters become escapes."""
    line = " ".join(str(text).split())
    if line.isprintable():
        return line
    return "".join(
        character.encode("unicode_escape", "surrogatepass").decode("ascii")
        if unicodedata.category(character) in _ACTIVE and character not in _JOINERS
        else character
        for character in line
    )


def screen(*, to_stderr: bool = False) -> Console:
    """A console on standard output or standard error as they are now."""
    from rich.console import Console

    stream = sys.stderr if to_stderr else sys.stdout
    piped = not stream.isatty() and "COLUMNS" not in os.environ
    return Console(
        stderr=to_stderr,
        width=PIPED_WIDTH if piped else None,
        highlight=False,
        markup=False,
        emoji=False,
    )


def table(*columns: str, right: tuple[str, ...] = (), one_line: str = "") -> Table:
    """An empty table.

    Args:
        columns: their headings.
        right: the columns that are aligned right.
        one_line: the column that takes the room that is left; every row is then one line long, and
            what does not fit is cut.
    """
    from rich import box
    from rich.table import Table

    made = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        header_style="bold",
        expand=bool(one_line),
    )
    for column in columns:
        made.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="ellipsis" if one_line else "fold",
            no_wrap=bool(one_line),
            ratio=1 if column == one_line else None,
        )
    return made


def decoded(data: bytes, what: str) -> str:
    """The text of some input, which an error calls ``what``. It may begin with a mark.

    Raises:
        InvalidRequest: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{what}: not UTF-8: byte {error.start + 1}") from error


def print_rows(
    *columns: str, rows: Iterable[Iterable[object]], right: tuple[str, ...] = (), one_line: str = ""
) -> None:
    """Print a table, see ``table``. What a cell holds is shown as ``plain`` shows it."""
    shown = table(*columns, right=right, one_line=one_line)
    for row in rows:
        shown.add_row(*map(plain, row))
    screen().print(shown)


def print_json(value: object) -> None:
    """Print one indented JSON document on standard output; the router's own types are told as
    ``plain_json`` tells them."""
    print_ready_json(json.dumps(plain_json(value), ensure_ascii=False, allow_nan=False, indent=2))


def print_json_line(value: object) -> None:
    """One line of JSON on standard output, at once."""
    print_ready_json(json.dumps(value, ensure_ascii=False, allow_nan=False))


def print_ready_json(text: str) -> None:
    """A text that is JSON already, on standard output, at once."""
    # Bytes, because JSON is UTF-8 in every locale; a lone surrogate (in a path) stays readable.
    typer.echo(text.encode("utf-8", "backslashreplace"))


@contextmanager
def writing(option: str, file: Path) -> Iterator[None]:
    """While the block runs, it writes the file that an option names.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    try:
        yield
    except OSError as fault:
        raise ConfigurationError(f"{option}: cannot write {file}: {fault.strerror}") from fault


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number of things, as "1 item" or "2,000 items"; ``many`` where an s is not enough."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def warn(message: object) -> None:
    """A warning, as one line on standard error."""
    typer.echo(f"warning: {plain(message)}", err=True)


def note(message: object) -> None:
    """What a person should know while something takes long, as one line on standard error."""
    typer.echo(plain(message), err=True)


def error(message: object) -> None:
    """An error, as one line on standard error."""
    typer.echo(f"error: {plain(message)}", err=True)


@contextmanager
def progress(label: str, *, hidden: bool = False) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on standard error while the block runs, where a person watches and it is not hidden.

    The block gets the callback that moves it: (done, total), total None while nobody knows.
    """
    if hidden or not sys.stderr.isatty():
        yield lambda done, total: None  # noqa: ARG005
        return

    from rich.progress import Progress

    with Progress(
        console=screen(to_stderr=True), transient=True, redirect_stdout=False, redirect_stderr=False
    ) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def confidence(result: RoutingResult) -> str:
    """The confidence, and whether it was fitted on outcomes."""
    return f"{result.confidence:.2f}{'' if result.calibrated else ' (not calibrated)'}"


def answered_by(result: RoutingResult) -> str:
    """The stage that answered, and the time that all stages took."""
    milliseconds = sum(entry.microseconds for entry in result.trace) / 1000
    return f"{result.stage.value} in {milliseconds:.2f} ms"
