"""``router memory``, over what is stored: list, edit, profile, export, import, forget."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from router.cli import output
from router.cli.memory_changes import pair
from router.cli.memory_options import Project, Session, User, run
from router.cli.options import AsJson

if TYPE_CHECKING:
    from collections.abc import Iterable

    from router.memory.model import MemoryItem

MAX_SHOWN = 100
"""Characters of a content in a table."""


def list_memories(
    layer: Annotated[list[str] | None, typer.Option("--layer", help="Of this layer.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000)] = 20,
    after: Annotated[
        str | None, typer.Option("--after", help="Where the page before ended.")
    ] = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """List what the layers hold, newest first, a page at a time."""
    page = run(
        lambda memory, scope: memory.list(
            scope=scope,
            layers=layer,
            limit=limit,
            after=after,
        ),
        (user, project, session),
    )
    if as_json:
        output.print_json(page.to_dict())
        return
    _print(page.items)
    if page.next is not None:
        output.warn(f"there are more: --after {page.next}")


def edit_memory(
    name: Annotated[str, typer.Argument(metavar="ID", help="Of the item.")],
    layer: Annotated[str, typer.Option("--layer", help="That holds it.")],
    content: Annotated[str | None, typer.Option("--content", help="Its new text.")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="Its new labels.")] = None,
    attributes: Annotated[
        list[str] | None,
        typer.Option("--attribute", metavar="KEY=VALUE", help="KEY= removes the attribute."),
    ] = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Change an item that is stored in exactly this scope."""
    given = {key: value or None for key, value in map(pair, attributes or ())}
    item = run(
        lambda memory, scope: memory.edit(
            name,
            layer=layer,
            scope=scope,
            content=content,
            tags=tags,
            attributes=given,
        ),
        (user, project, session),
    )
    if as_json:
        output.print_json(item.to_dict())
    else:
        typer.echo(f"changed {output.plain(item.id)}")


def show_profile(
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Show what is known of a user and holds now."""
    items = run(lambda memory, scope: memory.profile(scope=scope), (user, project, session))
    if as_json:
        output.print_json([item.to_dict() for item in items])
    else:
        _print(items)


def export_memories(
    user: User = None,
    project: Project = None,
    session: Session = None,
    everybody: Annotated[
        bool, typer.Option("--everybody", help="All memories, whoever owns them.")
    ] = False,
) -> None:
    """Print all items of a user or project as JSON Lines."""
    if not everybody and (user, project, session) == (None, None, None):
        raise typer.BadParameter("name --user, --project or --session, or say --everybody")
    owner = {"user": user, "project": project, "session": session}
    for line in run(lambda memory, _: memory.export(owner=owner)):
        sys.stdout.write(line + "\n")


def import_memories(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="JSON Lines.")
    ],
    user: User = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Store exported items, in place of those of the same id. The options say whose they may be."""
    lines = output.decoded(file.read_bytes(), str(file)).splitlines()
    owner = {"user": user, "project": project, "session": session}
    count = run(lambda memory, _: memory.import_lines(lines, owner=owner))
    typer.echo(f"imported {count} memories")


def forget_memories(
    user: User = None,
    project: Project = None,
    session: Session = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; there is no way back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Remove all memories of a user or project for good, and show that nothing is left."""
    if not yes:
        raise typer.BadParameter("there is no way back: export first, then say --yes")
    owner = {"user": user, "project": project, "session": session}
    report = run(lambda memory, _: memory.forget(owner))
    if as_json:
        output.print_json(report.to_dict())
    else:
        typer.echo(
            f"forgot {report.items} items and {report.files} files; left: {report.left} items, "
            f"{report.vectors} vectors; the database was written anew"
        )
    if report.waiting:
        output.warn(f"the memory service has yet to be told of {report.waiting} files: sync")


def _print(items: Iterable[MemoryItem]) -> None:
    table = output.table("id", "layer", "date", "content")
    for item in items:
        table.add_row(
            output.plain(item.id),
            item.layer,
            item.created.date().isoformat(),
            output.plain(item.content[:MAX_SHOWN]),
        )
    output.screen().print(table)
