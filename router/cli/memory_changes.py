"""``router memory``, the commands that change what is remembered."""

from __future__ import annotations

import asyncio
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from router.cli import output
from router.cli.commands import Whose, Work, memory_command
from router.cli.options import or_standard_input

if TYPE_CHECKING:
    from router.memory.contexts.documents import IngestReport
    from router.memory.memory import Memory
    from router.memory.model import Scope
    from router.memory.records import ForgetReport
    from router.memory.services.delivery import SyncReport
    from router.memory.services.unified import SaveReport

Name: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a file, or id of an item.")
]
HeldBy: TypeAlias = Annotated[
    str | None, typer.Option("--layer", help="The layer that holds it; left out for a file.")
]
Tags: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A label; may be repeated.")
]
Attributes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--attribute",
        metavar="KEY=VALUE",
        help="Such as due=2026-12-01; may be repeated. In an edit, KEY= removes the attribute.",
    ),
]


def _show_saved(saved: SaveReport) -> None:
    from router.skills.diagnostics import short

    told = "" if saved.service == "off" else f"; service: {saved.service.value}"
    where = f" to {saved.layer}" if saved.layer else ""
    typer.echo(f"saved {output.plain(saved.name)}{where}{told}")
    for old in saved.supersedes:
        output.warn(
            f"it may replace {old.id}, {short(old.content)} "
            f"(save it again with --supersede {old.id} to mark that)"
        )


@memory_command(_show_saved, scoped=False)
def save_memory(
    content: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help="The text; - reads standard input.", callback=or_standard_input
        ),
    ],
    name: Annotated[
        str | None, typer.Option(help="Of the file, such as auth/login, or the item.")
    ] = None,
    tags: Tags = None,
    layer: Annotated[
        str | None,
        typer.Option(help="Save to this layer, not to a memory file. What follows needs it."),
    ] = None,
    kind: Annotated[str, typer.Option("--type", help="Such as fact, event, task.")] = "note",
    created: Annotated[str | None, typer.Option(metavar="ISO", help="When it happened.")] = None,
    attributes: Attributes = None,
    supersede: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="An item that this one replaces.")
    ] = None,
    questions: Annotated[
        list[str] | None,
        typer.Option(
            "--question",
            metavar="TEXT",
            help="A question that it answers, in other words than its own; may be repeated.",
        ),
    ] = None,
    *,
    whose: Whose,
) -> Work:
    """Remember something: in a memory file, or with --layer in a memory layer."""
    given = dict(map(_pair, attributes or ()))
    of_layer = layer is not None or whose != Whose()
    return lambda memory, _: memory.save(
        content,
        name=name,
        tags=tags or (),
        layer=layer,
        scope=_stored_scope(memory, whose, layer) if of_layer else None,
        type=kind,
        created=created,
        attributes=given,
        supersede=supersede or (),
        questions=questions or (),
    )


def _stored_scope(memory: Memory, whose: Whose, layer: str | None) -> Scope:
    """The scope in which an item of a layer is stored, unless the caller names another."""
    from router.service.memory import scope_of

    return scope_of(memory.settings, *astuple(whose), layer=layer)


def _pair(text: str) -> tuple[str, str]:
    """An attribute as the command line gives it."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"--attribute {text}: write KEY=VALUE")
    return key, value


@memory_command(lambda item: typer.echo(f"changed {output.plain(item.id)}"), scoped=False)
def edit_memory(
    name: Annotated[str, typer.Argument(metavar="ID", help="Id of the item.")],
    layer: Annotated[str, typer.Option(help="The layer that holds it.")],
    content: Annotated[str | None, typer.Option(help="Its new text.")] = None,
    tags: Tags = None,
    attributes: Attributes = None,
    *,
    whose: Whose,
) -> Work:
    """Change an item that is stored in exactly this scope."""
    if content is None and not tags and not attributes:
        raise typer.BadParameter("name what to change: --content, --tag or --attribute")
    given = {key: value or None for key, value in map(_pair, attributes or ())}
    return lambda memory, _: memory.edit(
        name,
        layer=layer,
        scope=_stored_scope(memory, whose, layer),
        content=content,
        tags=tags,
        attributes=given,
    )


@memory_command(
    lambda done: typer.echo(f"deleted {output.plain(done['deleted'])}", err=True), scoped=False
)
def delete_memory(name: Name, layer: HeldBy = None, *, whose: Whose) -> Work:
    """Forget one memory: a file, or an item stored in exactly this scope."""

    async def delete(memory: Memory, _: Scope) -> dict[str, str]:
        await memory.delete(name, layer=layer, scope=_stored_scope(memory, whose, layer))
        return {"deleted": name}

    return delete


def _show_synced(report: SyncReport) -> None:
    counts = report.to_dict()
    fault = counts.pop("fault")
    typer.echo(", ".join(f"{number} {what}" for what, number in counts.items()))
    if fault:
        output.warn(fault)


@memory_command(_show_synced, failed=lambda report: report.fault, scoped=False)
def sync_memories(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be done.")
    ] = False,
) -> Work:
    """Bring the service to the state of the memory files; never the other way round."""
    return lambda memory, _: memory.sync(dry_run=dry_run)


def _show_ingested(report: IngestReport) -> None:
    typer.echo(
        f"files: {report.files}; chunks: {report.added} added, {report.kept} kept, "
        f"{report.removed} removed"
    )
    for problem in report.problems:
        output.warn(problem)


@memory_command(_show_ingested, failed=lambda report: report.problems)
def ingest_documents(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="Folder of documents, or one file; one that is gone is taken out."
        ),
    ],
) -> Work:
    """Make text and Markdown documents part of contexts; run it again after changes."""

    async def ingest(memory: Memory, scope: Scope) -> IngestReport:
        with output.progress("ingesting") as show:
            return await memory.ingest(folder, scope=scope, progress=show)

    return ingest


def _show_noted(noted: dict[str, str | None]) -> None:
    layer = noted["layer"]
    said = "forgot all feedback" if layer is None else f"noted for {output.plain(layer)}"
    typer.echo(said, err=True)


@memory_command(_show_noted, scoped=False)
def give_feedback(
    layer: Annotated[
        str | None, typer.Argument(metavar="LAYER", help="The layer that was read.")
    ] = None,
    query: Annotated[
        str | None, typer.Option(help="What was asked; queries of its kind learn from it.")
    ] = None,
    useful: Annotated[
        bool | None, typer.Option("--useful/--useless", help="Whether the layer helped.")
    ] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Forget all feedback.")] = False,
) -> Work:
    """Say whether a layer helped with a query, so that such queries weigh it accordingly."""

    async def note(memory: Memory, _: Scope) -> dict[str, str | None]:
        if reset:
            await memory.reset_feedback()
            return {"layer": None}
        if layer is None or query is None or useful is None:
            raise typer.BadParameter("give LAYER, --query, and --useful or --useless; or --reset")
        await memory.feedback(layer, useful=useful, query=query)
        return {"layer": layer}

    return note


@memory_command(configured=False)
def export_memories(
    everybody: Annotated[
        bool, typer.Option("--everybody", help="All memories, whoever owns them.")
    ] = False,
) -> Work:
    """Print all items of a user, project or session as JSON Lines."""

    async def export(memory: Memory, owner: Scope) -> None:
        if everybody == bool(owner.to_dict()):
            raise typer.BadParameter("name --user, --project or --session, or say --everybody")
        for line in await memory.export(owner=owner):
            output.print_ready_json(line)

    return export


def _show_imported(done: dict[str, int]) -> None:
    typer.echo(f"imported {output.counted(done['imported'], 'memory', 'memories')}")


@memory_command(_show_imported, configured=False)
def import_memories(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="JSON Lines.")
    ],
) -> Work:
    """Store exported items, in place of those of the same id. The options say whose they may be."""
    # Not splitlines: U+2028 and its like may stand in a line of JSON as they are.
    lines = output.decoded(file.read_bytes(), str(file)).split("\n")

    async def take(memory: Memory, owner: Scope) -> dict[str, int]:
        stored = 0
        left_out: list[str] = []
        with output.progress("importing") as show:

            def note(done: int, total: int) -> None:
                nonlocal stored
                stored = done
                show(done, total)

            try:
                imported = await memory.import_lines(
                    lines, owner=owner, progress=note, left_out=left_out.append
                )
            except asyncio.CancelledError:
                kept = output.counted(stored, "memory is", "memories are")
                output.warn(f"stopped: {kept} stored; import the file again for the rest")
                raise
        if left_out:
            lost = output.counted(len(left_out), "memory has", "memories have")
            output.warn(f"{lost} expired and not been stored; the first is {left_out[0]}")
        return {"imported": imported}

    return take


def _forgotten(report: ForgetReport) -> str:
    return (
        f"forgot {output.counted(report.items, 'item')} and "
        f"{output.counted(report.files, 'file')}; left: {output.counted(report.left, 'item')}, "
        f"{output.counted(report.vectors, 'vector')}; the database was written anew"
    )


def _show_forgotten(report: ForgetReport) -> None:
    typer.echo(_forgotten(report))
    if report.waiting:
        waiting = output.counted(report.waiting, "file")
        output.warn(f"the memory service has yet to be told of {waiting}: sync")


@memory_command(_show_forgotten, configured=False)
def forget_memories(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; there is no way back.")] = False,
) -> Work:
    """Remove all memories of a user, project or session for good, and show that nothing is left."""
    if not yes:
        raise typer.BadParameter("there is no way back: export first, then say --yes")

    async def forget(memory: Memory, owner: Scope) -> ForgetReport:
        forgetting = asyncio.ensure_future(memory.forget(owner))
        try:
            return await asyncio.shield(forgetting)
        except asyncio.CancelledError:
            output.warn("forgetting goes on: stopped halfway, it would leave texts on the disk")
            output.warn(_forgotten(await forgetting))
            raise

    return forget
