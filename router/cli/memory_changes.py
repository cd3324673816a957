"""``router memory``, the commands that change something: save, delete, ingest, sync, feedback."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from router.cli import output
from router.cli.memory_options import Project, Session, User, run
from router.cli.options import AsJson

if TYPE_CHECKING:
    from router.memory.memory import Memory
    from router.memory.model import Scope

Tags: TypeAlias = Annotated[
    list[str] | None, typer.Option("--tag", metavar="TAG", help="A label; may be repeated.")
]


def save_memory(
    content: Annotated[
        str, typer.Argument(metavar="TEXT", help="The text; - reads standard input.")
    ],
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
    supersede: Annotated[
        list[str] | None,
        typer.Option("--supersede", metavar="ID", help="An item that this one replaces."),
    ] = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Remember something: in a memory file, or with --layer in a memory layer."""
    text = _read_input() if content == "-" else content
    when = None if created is None else _time(created)
    given = dict(pair(each) for each in attributes or ())
    if layer is None and (given or when or user or project or session or kind != "note"):
        raise typer.BadParameter(
            "--type, --created, --attribute, --user, --project and --session need --layer"
        )

    async def save(memory: Memory, scope: Scope) -> dict[str, Any]:
        if layer is None:
            return (await memory.save(text, name=name, tags=tags or ())).to_dict()
        report = await memory.save(
            text,
            name=name,
            tags=tags or (),
            layer=layer,
            scope=scope,
            type=kind,
            created=when,
            attributes=given,
            supersede=supersede or (),
        )
        return report.to_dict()

    saved = run(save, (user, project, session))
    if as_json:
        output.print_json(saved)
        return
    told = "" if saved["service"] == "off" else f"; service: {saved['service']}"
    where = f" to {saved['layer']}" if saved["layer"] else ""
    typer.echo(f"saved {output.plain(saved['name'])}{where}{told}")
    for old in saved["supersedes"]:
        output.warn(f"it may replace {output.plain(old['id'])} (save with --supersede to mark it)")


def _read_input() -> str:
    """A content from standard input, whatever the locale, without the line break at its end."""
    from router.memory.model import MAX_CONTENT_CHARACTERS

    most = 4 * MAX_CONTENT_CHARACTERS  # bytes; what is longer cannot be few enough characters
    data = typer.get_binary_stream("stdin").read(most + 1)
    return output.decoded(data, "content").removesuffix("\n").removesuffix("\r")


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(
            f"--created {text}: write a date or a time, as 2026-12-01 or 2026-12-01T09:30"
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def pair(text: str) -> tuple[str, str]:
    """An attribute as the command line gives it."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"--attribute {text}: write KEY=VALUE")
    return key, value


def delete_memory(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a file, or id of an item.")],
    layer: Annotated[str | None, typer.Option("--layer", help="Of this layer.")] = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Forget one memory: a file, or an item stored in exactly this scope."""
    run(
        lambda memory, scope: memory.delete(name, layer=layer, scope=scope),
        (user, project, session),
    )
    typer.echo(f"deleted {output.plain(name)}", err=True)


def sync_memories(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count what would be done.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the service to the state of the memory files; never the other way round."""
    report = run(lambda memory, _: memory.sync(dry_run=dry_run)).to_dict()
    if as_json:
        output.print_json(report)
    else:
        counts = ", ".join(f"{value} {key}" for key, value in report.items() if key != "fault")
        typer.echo(counts)
    if report["fault"]:
        output.warn(report["fault"])
        raise typer.Exit(1)


def ingest_documents(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="Folder of documents, or one file; one that is gone is taken out."
        ),
    ],
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Make text and Markdown documents part of contexts; again, to take up what changed."""

    async def ingest(memory: Memory, scope: Scope) -> dict[str, Any]:
        with output.progress("ingesting") as show:
            return (await memory.ingest(folder, scope=scope, progress=show)).to_dict()

    report = run(ingest, (user, project, session))
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


def give_feedback(
    layer: Annotated[
        str | None, typer.Argument(metavar="LAYER", help="The layer that was read.")
    ] = None,
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
        run(lambda memory, _: memory.reset_feedback())
        typer.echo("forgot all feedback", err=True)
        return
    if layer is None or query is None or useful is None:
        raise typer.BadParameter("give LAYER, --query, and --useful or --useless; or --reset")
    run(lambda memory, _: memory.feedback(layer, useful=useful, query=query))
    typer.echo(f"noted for {output.plain(layer)}", err=True)
