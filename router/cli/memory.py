"""``router memory``: what a query is about, and what memory holds on it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from router.cli import classify, memory_changes, memory_curation, output
from router.cli.commands import Work, memory_command
from router.cli.memory_changes import HeldBy, Name
from router.cli.options import or_standard_input
from router.concurrency.breaker import STATE_WORDS

if TYPE_CHECKING:
    from router.memory.contexts.context import AssembledContext
    from router.memory.memory import Memory
    from router.memory.model import MemoryItem, Scope
    from router.memory.recall.answers import RecallResult
    from router.memory.records import Page
    from router.memory.services.unified import UnifiedAnswer

MAX_SHOWN: Final = 300
"""A table shows this many characters of a content, a recall those that answer best; ``--json`` and
``get`` show all of it."""

Query: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="QUERY", help="What is asked; - reads standard input.", callback=or_standard_input
    ),
]
TimeZone: TypeAlias = Annotated[
    str | None,
    typer.Option("--time-zone", metavar="ZONE", help='Such as Europe/Berlin, for "yesterday".'),
]
PageSize: TypeAlias = Annotated[
    int, typer.Option("--limit", "-n", min=1, max=1000, help="Memories at most.")
]
After: TypeAlias = Annotated[str | None, typer.Option(help="Where the page before ended.")]


def _show_found(found: UnifiedAnswer) -> None:
    if not found.items:
        typer.echo("nothing found", err=True)
        return
    rows = (
        (item.id, ", ".join(item.provenance) or item.layer, item.content[:MAX_SHOWN])
        for item in found.items
    )
    output.print_rows("name", "found in", "content", rows=rows)


@memory_command(_show_found)
def search_memories(
    query: Query,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100, help="Memories at most.")
    ] = 10,
    lexical_only: Annotated[
        bool, typer.Option("--lexical-only", help="Search the files alone.")
    ] = False,
    semantic_only: Annotated[
        bool, typer.Option("--semantic-only", help="Search the service alone.")
    ] = False,
    strategy: Annotated[
        str, typer.Option(help="primary_first, union or weighted.")
    ] = "primary_first",
) -> Work:
    """Search memory layers, the project's memory files and the service beside them."""

    async def search(memory: Memory, scope: Scope) -> UnifiedAnswer:
        found = await memory.search(
            query,
            scope=scope,
            limit=limit,
            lexical_only=lexical_only,
            semantic_only=semantic_only,
            strategy=strategy,
        )
        if found.layers.reason and not (lexical_only or semantic_only):
            output.warn(found.layers.reason)
        wanted = semantic_only or (memory.settings.memory.service.url and not lexical_only)
        if wanted and found.service.reason:
            output.warn(f"the service gave nothing: {found.service.reason}")
        return found

    return search


def _show_recalled(found: RecallResult) -> None:
    from router.memory.model import COUNTING_LAYER
    from router.memory.recall.relevance import passage_of
    from router.memory.stores.graph import with_relations

    rows = [
        (
            f"{answer.relevance:.2f}",
            "" if answer.confidence is None else answer.confidence.level.value,
            answer.item.layer,
            answer.item.created.date(),
            passage_of(with_relations(answer.item), found.query, MAX_SHOWN),
        )
        for answer in found.items
        if answer.item.layer != COUNTING_LAYER
    ]
    if rows:
        columns = ("relevance", "level", "layer", "created", "content")
        output.print_rows(*columns, rows=rows, right=("relevance",))
    screen = output.screen()
    for answer in found.items:
        if answer.item.layer == COUNTING_LAYER:
            screen.print(f"counted in {output.plain(answer.item.content)}")
    screen.print(f"confidence {found.confidence:.2f}, {found.milliseconds:.1f} ms")
    for reason in found.reasoning:
        screen.print(f"- {output.plain(reason)}")


@memory_command(_show_recalled)
def recall_memories(
    query: Query,
    k: Annotated[int, typer.Option("-k", "--limit", min=1, max=100, help="Memories at most.")] = 5,
    time_zone: TimeZone = None,
) -> Work:
    """Answer a query from the memory layers, with a confidence and the reasons."""
    return lambda memory, scope: memory.recall(query, scope, k=k, time_zone=time_zone)


def _show_context(found: AssembledContext) -> None:
    if found.text:
        _print_content(found.text)
    for note in found.notes:
        output.warn(note)
    typer.echo(
        f"pieces: {len(found.chunks)}; left out: {len(found.left_out)}; "
        f"tokens: {found.tokens} of {found.budget}",
        err=True,
    )


@memory_command(_show_context)
def assemble_context(
    query: Query,
    strategy: Annotated[str, typer.Option(help="lexical, episodic, hybrid or rag.")] = "hybrid",
    budget: Annotated[int, typer.Option(min=1, help="Tokens at most.")] = 2000,
    weights: Annotated[
        str, typer.Option(help="balanced, rag_focused or memory_focused.")
    ] = "memory_focused",
    time_zone: TimeZone = None,
) -> Work:
    """Print what memory and documents say about a query, within a budget of tokens."""
    return lambda memory, scope: memory.assemble(
        query, strategy, budget, scope=scope, weights=weights, time_zone=time_zone
    )


@memory_command(lambda item: _print_content(item.content))
def get_memory(name: Name, layer: HeldBy = None) -> Work:
    """Print one memory."""
    return lambda memory, scope: memory.get(name, layer=layer, scope=scope)


def _show_status(status: dict[str, Any]) -> None:
    rows = (
        (layer["name"], STATE_WORDS[layer["breaker"]], layer["description"])
        for layer in status["layers"]
    )
    output.print_rows("layer", "state", "holds", rows=rows)
    screen = output.screen()
    for kind, factors in status["weight_factors"].items():
        learned = ", ".join(f"{layer} x{factor:.2f}" for layer, factor in factors.items())
        screen.print(f"by feedback, {kind} queries weigh {output.plain(learned)}")
    unified = status["unified"]
    elsewhere = "" if status["database"] == "SQLite" else "PostgreSQL (memory.url), the rest in "
    screen.print(f"stored in {elsewhere}{output.plain(status['directory'])}")
    screen.print(f"memory files: {unified['files']}; service: {unified['service']}")
    if unified["reason"] and unified["service"] != "off":
        output.warn(unified["reason"])
    if unified["waiting"]:
        screen.print(f"changes that wait for the service: {unified['waiting']}")
    for problem in unified["problems"]:
        output.warn(problem)


@memory_command(_show_status, scoped=False)
def show_status() -> Work:
    """Show the layers, what feedback taught, the memory files and the service."""
    return lambda memory, _: memory.status()


def _show_items(items: Iterable[MemoryItem]) -> None:
    from router.memory.stores.replacements import SUPERSEDED_BY

    rows = [
        (
            item.id,
            item.layer,
            item.created.date(),
            item.attributes.get(SUPERSEDED_BY, ""),
            item.content[:MAX_SHOWN],
        )
        for item in items
    ]
    if any(row[3] for row in rows):
        output.print_rows("id", "layer", "date", "replaced by", "content", rows=rows)
    elif rows:
        short = [(*row[:3], row[4]) for row in rows]
        output.print_rows("id", "layer", "date", "content", rows=short)
    else:
        hidden = "what was saved with a project or a session is seen with --project or --session"
        typer.echo(f"nothing is stored that this scope sees; {hidden}", err=True)


def _show_page(page: Page) -> None:
    _show_items(page.items)
    if page.next is not None:
        output.warn(f"there are more: --after {page.next}")


@memory_command(_show_page)
def list_memories(
    layer: Annotated[
        list[str] | None, typer.Option(help="Of this layer alone; may be repeated.")
    ] = None,
    limit: PageSize = 20,
    after: After = None,
) -> Work:
    """List what the layers hold, newest first, a page at a time."""
    return lambda memory, scope: memory.list(scope=scope, layers=layer, limit=limit, after=after)


@memory_command(_show_page)
def show_profile(
    limit: PageSize = 1000,
    after: After = None,
) -> Work:
    """Show what is known of a user and is not marked as replaced."""
    return lambda memory, scope: memory.profile(scope=scope, limit=limit, after=after)


def _print_content(text: str) -> None:
    """Print a text unchanged, in UTF-8, where a program reads it. On a terminal, control characters
    other than line breaks and tabs are shown as escapes."""
    if sys.stdout.isatty():
        typer.echo("".join(_harmless(sign) for sign in text))
    else:
        typer.echo(text.encode("utf-8", "backslashreplace"))


def _harmless(sign: str) -> str:
    if sign.isprintable() or sign in "\n\t":
        return sign
    return output.plain(sign) or " "  # plain makes nothing of some kinds of white space


app = typer.Typer(help="Save, find and manage memories.", no_args_is_help=True)
for name, command in (
    ("classify", classify.classify_query),
    ("search", search_memories),
    ("recall", recall_memories),
    ("context", assemble_context),
    ("save", memory_changes.save_memory),
    ("get", get_memory),
    ("delete", memory_changes.delete_memory),
    ("status", show_status),
    ("sync", memory_changes.sync_memories),
    ("ingest", memory_changes.ingest_documents),
    ("feedback", memory_changes.give_feedback),
    ("list", list_memories),
    ("edit", memory_changes.edit_memory),
    ("profile", show_profile),
    ("export", memory_changes.export_memories),
    ("import", memory_changes.import_memories),
    ("forget", memory_changes.forget_memories),
    ("consolidate", memory_curation.consolidate_memories),
    ("extract", memory_curation.extract_memories),
    ("proposals", memory_curation.show_proposals),
    ("accept", memory_curation.accept_proposals),
    ("reject", memory_curation.reject_proposals),
):
    app.command(name)(command)
