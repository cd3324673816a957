"""``router route``: one request for a person, or a stream of them for a program."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

import typer

from router.cli import output
from router.cli.options import AsJson, NoLLM, SkillFolders, open_router, read_settings
from router.cli.server import KeyVariable, Server, ServerUrl
from router.errors import ConfigurationError, InvalidRequest
from router.request import MAX_REQUEST_CHARACTERS, Request
from router.result import Outcome, RoutingResult, Stage

if TYPE_CHECKING:
    from router.retrieval.index import Ranking
    from router.settings import Settings
    from router.skills.catalog import Catalog

_MAX_INPUT_BYTES: Final = 4 * MAX_REQUEST_CHARACTERS + 4
"""Read from standard input at most; the longest request, with its line break, is shorter."""


def route(
    request: Annotated[
        str | None,
        typer.Argument(metavar="REQUEST", help="What the user asks; - reads standard input."),
    ] = None,
    folders: SkillFolders = None,
    available: Annotated[
        str | None,
        typer.Option(metavar="NAME,...", help="Only these skills may be chosen."),
    ] = None,
    as_json: AsJson = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Show why the winner won and the runner-up did not."),
    ] = False,
    no_llm: NoLLM = False,
    scope: Annotated[
        str | None,
        typer.Option(help="Whose request it is; cached answers never cross scopes."),
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
    server: ServerUrl = None,
    key_env: KeyVariable = None,
) -> None:
    """Decide which skills to load for a request.

    With --server a running router serve decides, with its skills, LLMs and caches.

    With --batch every line of FILE is a request, or an object with "request" and optionally
    "id", "available", "scope" and "history". Each answer is one line, an object with "line",
    "request" and "result", or "error" in its place, in the order of the input and printed as soon
    as it is there. After an interruption, feed the lines behind the last one answered:
    tail -n +$((line + 1)) FILE | router route --batch -
    """
    options = {
        "available_skills": None if available is None else _names(available),
        "scope": scope,
        "use_semantic_cache": not no_semantic_cache,
    }
    if server is not None:
        if folders or no_llm or explain or batch is not None:
            raise typer.BadParameter(
                "--server goes without --skills, --no-llm, --explain and --batch"
            )
        _route_there(Server(server, key_env), request, options, as_json=as_json)
        return
    if key_env is not None:
        raise typer.BadParameter("--key-env goes with --server")
    settings = read_settings(no_llm=no_llm)
    if batch is not None:
        if request is not None or explain:
            raise typer.BadParameter("--batch goes without REQUEST and --explain")
        if not _is_standard_input(batch) and (batch.is_dir() or not batch.exists()):
            raise typer.BadParameter(f"--batch {batch}: there is no such file")
        if asyncio.run(_route_file(batch, folders, settings, options)):
            raise typer.Exit(1)
        return
    text = _text_of(request, options)  # before the skills are read, which takes a second
    result, ranking = asyncio.run(_route_one(text, folders, settings, options, rank=explain))
    if as_json:
        output.print_json(result.to_dict())
    elif ranking is not None:
        from router.cli.explain import explanation

        output.screen().print(explanation(text, result, ranking))
    else:
        _print_result(result)


def _text_of(request: str | None, options: dict[str, Any]) -> str:
    """The text to route, which can be routed as far as can be seen without skills."""
    if request is None:
        raise typer.BadParameter("name a REQUEST, or a file with --batch")
    text = _read_standard_input() if request == "-" else request
    Request.parse(text, scope=options["scope"])
    return text


def _route_there(
    server: Server, request: str | None, options: dict[str, Any], *, as_json: bool
) -> None:
    sent = {"request": _text_of(request, options), "trace": True, **options}
    result = server.routed(sent)
    _warn_of_llm(result)
    if as_json:
        output.print_json(result.to_dict())
    else:
        _print_result(result)


async def _route_one(
    text: str,
    folders: Sequence[Path] | None,
    settings: Settings,
    options: dict[str, Any],
    *,
    rank: bool,
) -> tuple[RoutingResult, Ranking | None]:
    """The answer and, where it is wanted, retrieval's ranking of all skills that may be chosen."""
    async with open_router(folders, settings) as router:
        installed = await router.open()
        _warn_of_unknown(options["available_skills"], installed.catalog)
        with _said_below("router.stages.llm"):
            result = await router.route(text, **options)
        _warn_of_llm(result)
        if not rank:
            return result, None
        everything = max(1, len(installed.catalog.routable))
        names = options["available_skills"]
        return result, await installed.index.rank(text, among=names, limit=everything)


async def _route_file(
    path: Path, folders: Sequence[Path] | None, settings: Settings, options: dict[str, Any]
) -> int:
    from router.cli.batch import route_batch

    async with open_router(folders, settings) as router:
        _warn_of_unknown(options["available_skills"], (await router.open()).catalog)
        # Answers on the same screen would tear the bar apart.
        with output.progress("routing", hidden=sys.stdout.isatty()) as show:
            source = _open_input(path)
            size = _size(source)
            return await route_batch(
                router,
                source,
                options=options,
                window=settings.max_concurrency,
                emit=output.print_json_line,
                advance=lambda done: show(done, size),
            )


@contextmanager
def _said_below(logger: str) -> Iterator[None]:
    """No log of what the command itself is about to tell."""
    log = logging.getLogger(logger)
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False


def _warn_of_llm(result: RoutingResult) -> None:
    """An expired key must not degrade every answer in silence."""
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


def _read_standard_input() -> str:
    data = typer.get_binary_stream("stdin").read(_MAX_INPUT_BYTES)
    if len(data) == _MAX_INPUT_BYTES:
        raise InvalidRequest(f"standard input: over {MAX_REQUEST_CHARACTERS:,} characters")
    try:
        return data.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"standard input: not UTF-8 at byte {error.start + 1}") from error


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


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
