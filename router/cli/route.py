"""``router route``: one request for a person, or a stream of them for a program."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

import typer

from router.cli import output
from router.cli.options import (
    AsJson,
    NoLLM,
    SkillFolders,
    open_router,
    read_secret,
    read_settings,
    read_standard_input,
)
from router.errors import ConfigurationError
from router.request import MAX_REQUEST_CHARACTERS, Request
from router.result import Outcome, RoutingResult, Stage

if TYPE_CHECKING:
    from router.service.explaining import Explanation
    from router.service.remote import RemoteRouter
    from router.settings.settings import Settings
    from router.skills.catalog import Catalog

SERVER_WINDOW: Final = 8
"""A server works on this many requests of a batch at the same time."""


def route(
    request: Annotated[
        str | None,
        typer.Argument(metavar="REQUEST", help="What the user asks; - reads standard input."),
    ] = None,
    folders: SkillFolders = None,
    available: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Only these skills may be chosen.")
    ] = None,
    history: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="What the user said before; may be repeated, oldest first."
        ),
    ] = None,
    as_json: AsJson = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show why the winner won and the runner-up did not.")
    ] = False,
    no_llm: NoLLM = False,
    scope: Annotated[
        str | None, typer.Option(help="Whose request it is; cached answers never cross scopes.")
    ] = None,
    no_semantic_cache: Annotated[
        bool, typer.Option("--no-semantic-cache", help="Leave the fuzzy cache out.")
    ] = False,
    batch: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Route a line at a time, plain or JSONL, and print JSONL; - is standard input.",
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ask a running router serve, and read no skills here."),
    ] = None,
    key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Variable that holds the key for the server.")
    ] = None,
) -> None:
    """Decide which skills to load for a request.

    With --server a running router serve decides, with its skills, LLMs and caches.

    With --batch every line of FILE is a request, or an object with "request" and optionally
    "id", "available", "scope" and "history". Each answer is one line, an object with "line",
    "request" and "result", or "error" in its place, in the order of the input and printed as soon
    as it is there. After an interruption, feed the lines behind the last one answered:
    tail -n +$((line + 1)) FILE | router route --batch -
    """
    options: dict[str, Any] = {
        "available_skills": None
        if available is None
        else [name.strip() for name in available.split(",") if name.strip()],
        "history": history or [],
        "scope": scope,
        "use_semantic_cache": not no_semantic_cache,
    }
    if server is not None:
        if folders or no_llm:
            raise typer.BadParameter("--server goes without --skills and --no-llm")
    elif key_env is not None:
        raise typer.BadParameter("--key-env goes with --server")
    if batch is not None:
        if request is not None or explain:
            raise typer.BadParameter("--batch goes without REQUEST and --explain")
        if not _is_standard_input(batch) and (batch.is_dir() or not batch.exists()):
            found = "it is a folder" if batch.is_dir() else "there is no such file"
            raise typer.BadParameter(f"--batch {batch}: {found}")
        if server is None:
            settings = read_settings(no_llm=no_llm)
            faults = asyncio.run(_route_here(batch, folders, settings, options))
        else:
            with _connected(server, key_env) as there:
                faults = asyncio.run(_route_file(batch, there.route, SERVER_WINDOW, options))
        if faults:
            raise typer.Exit(1)
        return
    text = _text_of(request, options)
    if server is None:
        settings = read_settings(no_llm=no_llm)
        result, why = asyncio.run(_route_one(text, folders, settings, options, explained=explain))
    else:
        with _connected(server, key_env) as there:
            if explain:
                result, why = there.explain(text, **options)
            else:
                result, why = asyncio.run(there.route(text, **options)), None
    _warn_of_llm(result)
    if as_json:
        output.print_json(result.to_dict())
    elif why is not None:
        from router.cli.explain import explanation

        output.screen().print(explanation(text, result, why))
    else:
        _print_result(result)


def _connected(url: str, key_variable: str | None) -> RemoteRouter:
    """A router serve; nothing is sent to it yet."""
    from router.service.remote import RemoteRouter

    return RemoteRouter(url, None if key_variable is None else read_secret(key_variable))


def _text_of(request: str | None, options: dict[str, Any]) -> str:
    """The text to route. It is checked before the skills are read, which takes a second."""
    if request is None:
        raise typer.BadParameter("name a REQUEST, or a file with --batch")
    text = request
    if request == "-":
        text = read_standard_input("standard input", MAX_REQUEST_CHARACTERS).strip()
    Request.parse(text, scope=options["scope"], history=options["history"])
    return text


async def _route_one(
    text: str,
    folders: Sequence[Path] | None,
    settings: Settings,
    options: dict[str, Any],
    *,
    explained: bool,
) -> tuple[RoutingResult, Explanation | None]:
    """The answer and, where it is wanted, the evidence behind it."""
    async with open_router(folders, settings) as router:
        _warn_of_unknown(options["available_skills"], router.catalog)
        with _silent_llm():
            result = await router.route(text, **options)
        if not explained:
            return result, None
        from router.service.service import Service
        from router.service.shapes import RouteArguments

        asked = RouteArguments(request=text, **options)
        return result, await Service(router).explain(asked, result)


async def _route_here(
    path: Path, folders: Sequence[Path] | None, settings: Settings, options: dict[str, Any]
) -> int:
    async with open_router(folders, settings) as router:
        _warn_of_unknown(options["available_skills"], router.catalog)
        return await _route_file(path, router.route, settings.max_concurrency, options)


async def _route_file(
    path: Path,
    route: Callable[..., Awaitable[RoutingResult]],
    window: int,
    options: dict[str, Any],
) -> int:
    from router.cli.batch import route_batch

    # Answers on the same screen would tear the bar apart.
    with output.progress("routing", hidden=sys.stdout.isatty()) as show:
        source = _open_input(path)
        size = _size(source)
        return await route_batch(
            route,
            source,
            options=options,
            window=window,
            emit=output.print_json_line,
            advance=lambda done: show(done, size),
        )


@contextmanager
def _silent_llm() -> Iterator[None]:
    """The stage of the LLM logs nothing meanwhile: the command reports the same fault itself."""
    log = logging.getLogger("router.stages.llm")
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False


def _warn_of_llm(result: RoutingResult) -> None:
    """Warn when the LLM failed: an expired key must not make every answer worse in silence."""
    for entry in result.trace:
        if entry.stage is Stage.LLM and entry.outcome is Outcome.FAILED:
            output.warn(f"the LLM was left out: {entry.reason}")


def _warn_of_unknown(names: Sequence[str] | None, catalog: Catalog) -> None:
    for name in names or ():
        if name not in catalog.skills:
            output.warn(f"--available: no skill named {name!r} is installed")


def _is_standard_input(path: Path) -> bool:
    return str(path) == "-"


def _open_input(path: Path) -> BinaryIO:
    if _is_standard_input(path):
        # Not sys.stdin: the thread that reads would hold its lock when the process ends.
        return open(0, "rb", closefd=False)
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigurationError(
            f"--batch {path}: {error.strerror}; name a readable file"
        ) from error


def _size(source: BinaryIO) -> int | None:
    """Bytes of input, where it is a file with an end."""
    status = os.fstat(source.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _print_result(result: RoutingResult) -> None:
    table = output.table("", "")
    table.show_header = False
    for label, value in (
        ("decision", result.decision.value),
        ("load", ", ".join(result.selected_skills)),
        ("perhaps", ", ".join(result.suggested_skills)),
        ("ask", result.question),
        ("memory", ", ".join(f"{m.name} {m.weight:.2f}" for m in result.memory_layers)),
        ("brief", result.mission_brief),
        ("why", result.reasoning),
        ("confidence", output.confidence(result)),
        ("answered by", output.answered_by(result)),
    ):
        if value:
            table.add_row(label, output.plain(value))
    output.screen().print(table)
