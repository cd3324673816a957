"""``router cache``: the routes that the fuzzy cache on disk holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli import output
from router.cli.commands import prints
from router.cli.options import read_settings
from router.errors import StoreError

if TYPE_CHECKING:
    from router.settings.settings import Settings
    from router.stages.fuzzy import FuzzyCache

app = typer.Typer(help="Look at the cached routes, or forget them.", no_args_is_help=True)


def _show(values: dict[str, Any]) -> None:
    rows = ((key.replace("_", " "), value) for key, value in values.items())
    output.print_rows("fuzzy cache", "value", rows=rows)


@app.command("stats")
@prints(_show)
def show_stats() -> dict[str, Any]:
    """Show what the fuzzy cache on disk holds. The exact cache lives in a process only."""
    settings = read_settings()
    with _fuzzy_cache(settings) as cache:
        return {
            "state_dir": str(settings.state_dir),
            "entries": len(cache),
            "max_entries": settings.fuzzy.max_entries,
            "similarity_threshold": settings.fuzzy.similarity_threshold,
            "ttl_seconds": settings.fuzzy.ttl_seconds,
        }


def _show_forgotten(done: dict[str, int]) -> None:
    typer.echo(f"forgot {output.counted(done['forgotten'], 'cached route')}", err=True)


@app.command("clear")
@prints(_show_forgotten)
def clear_cache(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> dict[str, int]:
    """Forget every cached route. The index of the skills is kept."""
    settings = read_settings()
    with _fuzzy_cache(settings) as cache:
        number = len(cache)
        if not yes:
            where = output.plain(settings.state_dir)
            counted = output.counted(number, "cached route")
            typer.confirm(f"Forget {counted} in {where}?", abort=True, err=True)
        if not cache.clear():
            raise _unusable(settings, "the routes are still there (the log says why)")
    return {"forgotten": number}


def forget_corrections(settings: Settings) -> None:
    """Drop the cached routes that a person said. Raises StoreError when they cannot be dropped."""
    from router.stages.validation import DecidedBy

    with _fuzzy_cache(settings) as cache:
        for text, context, kept, _ in cache.latest(len(cache)):
            if kept.basis is not None and kept.basis.decided_by is DecidedBy.PERSON:
                cache.discard(text, context)
        if not cache.flush():
            raise _unusable(settings, "corrected answers are still there (the log says why)")


@contextmanager
def _fuzzy_cache(settings: Settings) -> Iterator[FuzzyCache]:
    """The cache of a router with these settings. Raises StoreError when its file cannot be used."""
    from router.stages.answers import LocalAnswers

    cache = LocalAnswers.configured(settings).fuzzy
    cache.open()
    try:
        if cache.diagnostics and not cache.flush():
            raise _unusable(settings, "cannot be used (the log says why)")
        yield cache
    finally:
        cache.close()


def _unusable(settings: Settings, reason: str) -> StoreError:
    return StoreError(settings.state_dir / "fuzzy.sqlite3", reason)
