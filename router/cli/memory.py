"""``router memory``: what a query is about, what memory holds on it, and remembering."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

import typer

from router.cli import classify, output
from router.cli.options import EXIT_CODES, AsJson, read_settings
from router.errors import InvalidRequest

if TYPE_CHECKING:
    from router.memory.answers import RecallResult
    from router.memory.memory import Memory
    from router.memory.model import MemoryItem, Scope
    from router.memory.stores.unified import UnifiedAnswer
    from router.settings import Settings

T = TypeVar("T")

MAX_SHOWN: Final = 300
"""Characters of a content in a table; ``--json`` and ``get`` show all of it."""

app = typer.Typer(
    help="Classify queries, search and recall memories, assemble contexts, remember.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Query: TypeAlias = Annotated[str, typer.Argument(help="What is asked.")]
User: TypeAlias = Annotated[str | None, typer.Option("--user", help="Whose memories.")]
Project: TypeAlias = Annotated[str | None, typer.Option("--project", help="Of which project.")]
Session: TypeAlias = Annotated[str | None, typer.Option("--session", help="Of which session.")]
Tags: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A label; may be repeated.")
]


def _run(work: Callable[[Memory, Settings], Awaitable[T]]) -> T:
    """Do something with an open memory, and close it whatever happens."""

    async def run() -> T:
        from router.memory.memory import Memory

        settings = read_settings()
        async with Memory(settings) as memory:
            return await work(memory, settings)

    return asyncio.run(run())


def _scope(settings: Settings, user: str | None, project: str | None, session: str | None) -> Scope:
    """Who asks: what the command line says, else the settings."""
    from router.memory.model import Scope

    given = settings.memory
    return Scope(
        given.user if user is None else user,
        given.project if project is None else project,
        given.session if session is None else session,
    )


app.command("classify", epilog=EXIT_CODES)(classify.classify_query)


@app.command("search", epilog=EXIT_CODES)
def search_memories(
    query: Query,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 10,
    lexical_only: Annotated[
        bool, typer.Option("--lexical-only", help="Search the files alone.")
    ] = False,
    semantic_only: Annotated[
        bool, typer.Option("--semantic-only", help="Search the service alone.")
    ] = False,
    strategy: Annotated[
        str, typer.Option("--strategy", help="primary_first, union or weighted.")
    ] = "primary_first",
    as_json: AsJson = False,
) -> None:
    """Search the project's memory files and the service beside them."""

    async def search(memory: Memory, settings: Settings) -> tuple[UnifiedAnswer, bool]:
        found = await memory.search(
            query,
            limit=limit,
            lexical_only=lexical_only,
            semantic_only=semantic_only,
            strategy=strategy,
        )
        is_wanted = semantic_only or (settings.memory.service.url and not lexical_only)
        return found, bool(is_wanted)

    found, service_is_wanted = _run(search)
    if as_json:
        output.print_json(found.to_dict())
        return
    _print_items(found.items)
    if service_is_wanted and found.service.reason:
        output.warn(f"the service gave nothing: {found.service.reason}")


@app.command("recall", epilog=EXIT_CODES)
def recall_memories(
    query: Query,
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="Items at most.")] = 5,
    cascade: Annotated[
        bool, typer.Option("--cascade/--no-cascade", help="Turn to secondary layers if needed.")
    ] = True,
    threshold: Annotated[
        float,
        typer.Option("--threshold", min=0, max=1, help="Confidence below which it does."),
    ] = 0.5,
    depth: Annotated[int, typer.Option("--depth", min=0, max=10, help="How often at most.")] = 2,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Answer a query from the memory layers, with a confidence and the reasons."""
    found = _run(
        lambda memory, settings: memory.recall(
            query,
            _scope(settings, user, project, session),
            k=k,
            cascade=cascade,
            confidence_threshold=threshold,
            max_cascade_depth=depth,
        )
    )
    if as_json:
        output.print_json(found.to_dict())
        return
    _print_recall(found)


def _print_recall(found: RecallResult) -> None:
    table = output.table("relevance", "level", "layer", "created", "content", right=("relevance",))
    for answer in found.items:
        item = answer.item
        level = "" if answer.confidence is None else answer.confidence.level.value
        table.add_row(
            f"{answer.relevance:.2f}",
            level,
            item.layer,
            item.created.date().isoformat(),
            output.plain(item.content[:MAX_SHOWN]),
        )
    screen = output.screen()
    if found.items:
        screen.print(table)
    screen.print(f"confidence {found.confidence:.2f}, {found.milliseconds:.1f} ms")
    for reason in found.reasoning:
        screen.print(f"- {output.plain(reason)}")


@app.command("context", epilog=EXIT_CODES)
def assemble_context(
    query: Query,
    strategy: Annotated[
        str, typer.Option("--strategy", help="lexical, episodic, hybrid or rag.")
    ] = "hybrid",
    budget: Annotated[int, typer.Option("--budget", min=1, help="Tokens at most.")] = 2000,
    weights: Annotated[
        str, typer.Option("--weights", help="balanced, rag_focused or memory_focused.")
    ] = "memory_focused",
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Print what memory and documents say about a query, within a budget of tokens."""
    found = _run(
        lambda memory, settings: memory.assemble(
            query,
            strategy,
            budget,
            scope=_scope(settings, user, project, session),
            weights=weights,
        )
    )
    if as_json:
        output.print_json(found.to_dict())
        return
    if found.text:
        _print_content(found.text)
    for note in found.notes:
        output.warn(note)
    typer.echo(
        f"pieces: {len(found.chunks)}; left out: {len(found.left_out)}; "
        f"tokens: {found.tokens} of {found.budget}",
        err=True,
    )


@app.command("save", epilog=EXIT_CODES)
def save_memory(
    content: Annotated[str, typer.Argument(help="The text; - reads standard input.")],
    name: Annotated[
        str | None, typer.Option("--name", help="Of the file, such as auth/login, or the item.")
    ] = None,
    tags: Tags = None,
    layer: Annotated[
        str | None, typer.Option("--layer", help="Save to this layer, not to a memory file.")
    ] = None,
    kind: Annotated[str, typer.Option("--type", help="Such as fact, event, task.")] = "note",
    created: Annotated[
        str | None, typer.Option("--created", metavar="ISO", help="When it happened.")
    ] = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="KEY=VALUE", help="Such as due=2026-12-01."),
    ] = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Remember something: in a memory file, or with --layer in a memory layer."""
    text = _read_input() if content == "-" else content
    when = None if created is None else _time(created)
    given = dict(_pair(each) for each in attributes or ())
    if layer is None and (given or when or user or project or session or kind != "note"):
        raise typer.BadParameter(
            "--type, --created, --attribute, --user, --project and --session need --layer"
        )

    async def save(memory: Memory, settings: Settings) -> dict[str, Any]:
        if layer is None:
            return (await memory.save(text, name=name, tags=tags or ())).to_dict()
        item = await memory.save(
            text,
            name=name,
            tags=tags or (),
            layer=layer,
            scope=_scope(settings, user, project, session),
            type=kind,
            created=when,
            attributes=given,
        )
        return item.to_dict()

    saved = _run(save)
    if as_json:
        output.print_json(saved)
        return
    if "service" in saved:
        told = "" if saved["service"] == "off" else f"; service: {saved['service']}"
        typer.echo(f"saved {output.plain(saved['name'])}{told}")
    else:
        typer.echo(f"saved {output.plain(saved['id'])} to {saved['layer']}")


def _read_input() -> str:
    """A content from standard input, whatever the locale, without the line break at its end."""
    from router.memory.model import MAX_CONTENT_CHARACTERS

    most = 4 * MAX_CONTENT_CHARACTERS  # bytes; what is longer cannot be few enough characters
    data = typer.get_binary_stream("stdin").read(most + 1)
    try:
        return data.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"content: not UTF-8: byte {error.start + 1}") from error


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f"--created: {error}") from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"--attribute {text}: write KEY=VALUE")
    return key, value


@app.command("get", epilog=EXIT_CODES)
def get_memory(
    name: Annotated[str, typer.Argument(help="Name of a file, or id of an item.")],
    layer: Annotated[str | None, typer.Option("--layer", help="Of this layer.")] = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Print one memory."""
    item = _run(
        lambda memory, settings: memory.get(
            name, layer=layer, scope=_scope(settings, user, project, session)
        )
    )
    if as_json:
        output.print_json(item.to_dict())
    else:
        _print_content(item.content)


@app.command("delete", epilog=EXIT_CODES)
def delete_memory(
    name: Annotated[str, typer.Argument(help="Name of a file, or id of an item.")],
    layer: Annotated[str | None, typer.Option("--layer", help="Of this layer.")] = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Forget one memory: a file, or an item stored in exactly this scope."""
    _run(
        lambda memory, settings: memory.delete(
            name, layer=layer, scope=_scope(settings, user, project, session)
        )
    )
    typer.echo(f"deleted {output.plain(name)}", err=True)


@app.command("status", epilog=EXIT_CODES)
def show_status(as_json: AsJson = False) -> None:
    """Show layers, weights, caches, memory files and the service."""
    status = _run(lambda memory, _: memory.status())
    if as_json:
        output.print_json(status)
        return
    table = output.table("layer", "state", "holds")
    for state in status["layers"]:
        table.add_row(state["name"], state["breaker"], output.plain(state["description"]))
    screen = output.screen()
    screen.print(table)
    for kind, factors in status["weight_factors"].items():
        learned = ", ".join(f"{layer} x{factor:.2f}" for layer, factor in factors.items())
        screen.print(f"by feedback, {kind} queries weigh {output.plain(learned)}")
    unified = status["unified"]
    screen.print(f"stored in {output.plain(status['directory'])}")
    screen.print(f"memory files: {unified['files']}; service: {unified['service']}")
    if unified["reason"] and unified["service"] != "off":
        output.warn(unified["reason"])
    if unified["waiting"]:
        screen.print(f"changes that wait for the service: {unified['waiting']}")
    for problem in unified["problems"]:
        output.warn(problem)


@app.command("sync", epilog=EXIT_CODES)
def sync_memories(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be done.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the service to the state of the memory files; never the other way round."""
    report = _run(lambda memory, _: memory.sync(dry_run=dry_run)).to_dict()
    if as_json:
        output.print_json(report)
    else:
        counts = ", ".join(f"{value} {key}" for key, value in report.items() if key != "fault")
        typer.echo(counts)
    if report["fault"]:
        output.warn(report["fault"])
        raise typer.Exit(1)


@app.command("ingest", epilog=EXIT_CODES)
def ingest_documents(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder of documents, or one file; one that is gone is taken out."),
    ],
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Make text and Markdown documents part of contexts; again, to take up what changed."""

    async def ingest(memory: Memory, settings: Settings) -> dict[str, Any]:
        whose = _scope(settings, user, project, session)
        with output.progress("ingesting") as show:
            return (await memory.ingest(folder, scope=whose, progress=show)).to_dict()

    report = _run(ingest)
    if as_json:
        output.print_json(report)
    else:
        typer.echo(
            f"files: {report['files']}; chunks: {report['added']} added, {report['kept']} kept, "
            f"{report['removed']} removed"
        )
    for problem in report["problems"]:
        output.warn(problem)
    if report["problems"]:
        raise typer.Exit(1)


@app.command("feedback", epilog=EXIT_CODES)
def give_feedback(
    layer: Annotated[str | None, typer.Argument(help="The layer that was read.")] = None,
    query: Annotated[
        str | None, typer.Option("--query", help="What was asked; its kind learns.")
    ] = None,
    useful: Annotated[
        bool | None, typer.Option("--useful/--useless", help="Whether the layer helped.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Forget all feedback.")] = False,
) -> None:
    """Say whether a layer helped with a query, so that such queries weigh it accordingly."""
    if reset:
        _run(lambda memory, _: memory.reset_feedback())
        typer.echo("forgot all feedback", err=True)
        return
    if layer is None or query is None or useful is None:
        raise typer.BadParameter("give LAYER, --query, and --useful or --useless; or --reset")
    _run(lambda memory, _: memory.feedback(layer, useful=useful, query=query))
    typer.echo(f"noted for {output.plain(layer)}", err=True)


def _print_content(text: str) -> None:
    """A text as it is, in UTF-8, where a program reads it. A person sees it with the power taken
    out of control characters, line breaks and tabs apart."""
    if sys.stdout.isatty():
        typer.echo("".join(_harmless(sign) for sign in text))
    else:
        typer.echo(text.encode("utf-8", "backslashreplace"))


def _harmless(sign: str) -> str:
    if sign.isprintable() or sign in "\n\t":
        return sign
    return output.plain(sign) or " "  # some white space is no more than that to plain


def _print_items(items: tuple[MemoryItem, ...]) -> None:
    table = output.table("name", "found in", "content")
    for item in items:
        table.add_row(
            output.plain(item.id),
            output.plain(", ".join(item.provenance)),
            output.plain(item.content[:MAX_SHOWN]),
        )
    if items:
        output.screen().print(table)
    else:
        typer.echo("nothing found", err=True)
