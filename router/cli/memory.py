"""``router memory``: what a query is about, and what memory holds on it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from router.cli import classify, memory_changes, memory_curation, memory_records, output
from router.cli.memory_options import Project, Session, TimeZone, User, run
from router.cli.options import EXIT_CODES, AsJson

if TYPE_CHECKING:
    from router.memory.memory import Memory
    from router.memory.model import MemoryItem, Scope
    from router.memory.recall.answers import RecallResult
    from router.memory.services.unified import UnifiedAnswer

MAX_SHOWN: Final = 300
"""Characters of a content in a table; ``--json`` and ``get`` show all of it."""
_STATES: Final = {"closed": "ok", "open": "failing", "half-open": "on trial"}
"""What a layer's circuit breaker means to a person, to whom a closed layer is one that is shut."""

Query: TypeAlias = Annotated[str, typer.Argument(metavar="QUERY", help="What is asked.")]


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
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Search memory layers, the project's memory files and the service beside them."""

    async def search(memory: Memory, scope: Scope) -> tuple[UnifiedAnswer, bool]:
        found = await memory.search(
            query,
            scope=scope,
            limit=limit,
            lexical_only=lexical_only,
            semantic_only=semantic_only,
            strategy=strategy,
        )
        is_wanted = semantic_only or (memory.settings.memory.service.url and not lexical_only)
        return found, bool(is_wanted)

    found, service_is_wanted = run(search, (user, project, session))
    if as_json:
        output.print_json(found.to_dict())
        return
    _print_items(found.items)
    if found.layers.reason and not (lexical_only or semantic_only):
        output.warn(found.layers.reason)
    if service_is_wanted and found.service.reason:
        output.warn(f"the service gave nothing: {found.service.reason}")


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
    time_zone: TimeZone = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Answer a query from the memory layers, with a confidence and the reasons."""
    found = run(
        lambda memory, scope: memory.recall(
            query,
            scope,
            k=k,
            cascade=cascade,
            confidence_threshold=threshold,
            max_cascade_depth=depth,
            time_zone=time_zone,
        ),
        (user, project, session),
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


def assemble_context(
    query: Query,
    strategy: Annotated[
        str, typer.Option("--strategy", help="lexical, episodic, hybrid or rag.")
    ] = "hybrid",
    budget: Annotated[int, typer.Option("--budget", min=1, help="Tokens at most.")] = 2000,
    weights: Annotated[
        str, typer.Option("--weights", help="balanced, rag_focused or memory_focused.")
    ] = "memory_focused",
    time_zone: TimeZone = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Print what memory and documents say about a query, within a budget of tokens."""
    found = run(
        lambda memory, scope: memory.assemble(
            query,
            strategy,
            budget,
            scope=scope,
            weights=weights,
            time_zone=time_zone,
        ),
        (user, project, session),
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


def get_memory(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a file, or id of an item.")],
    layer: Annotated[str | None, typer.Option("--layer", help="Of this layer.")] = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Print one memory."""
    item = run(
        lambda memory, scope: memory.get(name, layer=layer, scope=scope),
        (user, project, session),
    )
    if as_json:
        output.print_json(item.to_dict())
    else:
        _print_content(item.content)


def show_status(as_json: AsJson = False) -> None:
    """Show layers, weights, caches, memory files and the service."""
    status = run(lambda memory, _: memory.status())
    if as_json:
        output.print_json(status)
        return
    table = output.table("layer", "state", "holds")
    for state in status["layers"]:
        table.add_row(state["name"], _STATES[state["breaker"]], output.plain(state["description"]))
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
            output.plain(", ".join(item.provenance) or item.layer),
            output.plain(item.content[:MAX_SHOWN]),
        )
    if items:
        output.screen().print(table)
    else:
        typer.echo("nothing found", err=True)


app = typer.Typer(help="Classify, search, recall, assemble, remember.", no_args_is_help=True)
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
    ("list", memory_records.list_memories),
    ("edit", memory_records.edit_memory),
    ("profile", memory_records.show_profile),
    ("export", memory_records.export_memories),
    ("import", memory_records.import_memories),
    ("forget", memory_records.forget_memories),
    ("consolidate", memory_curation.consolidate_memories),
    ("extract", memory_curation.extract_memories),
    ("proposals", memory_curation.show_proposals),
    ("accept", memory_curation.accept_proposals),
    ("reject", memory_curation.reject_proposals),
):
    app.command(name, epilog=EXIT_CODES)(command)
