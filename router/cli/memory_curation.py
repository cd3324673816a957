"""``router memory``, changes that somebody has to accept: consolidate, extract, proposals."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from router.cli import output
from router.cli.memory_options import Project, Session, User, run
from router.cli.options import AsJson
from router.errors import InvalidRequest

if TYPE_CHECKING:
    from router.memory.curation.proposals import Proposal
    from router.memory.memory import Memory
    from router.memory.model import Scope


def consolidate_memories(
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", metavar="KIND", help="Accept these at once: merge, update, …"),
    ] = None,
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Propose merges, updates, contradictions and stale tasks, with the evidence."""
    from router.memory.curation.proposals import ChangeKind

    kinds = frozenset(accept or ())
    if unknown := sorted(kinds - set(ChangeKind)):
        raise typer.BadParameter(f"--accept {unknown[0]}: none of {', '.join(ChangeKind)}")
    new = run(
        lambda memory, scope: memory.consolidate(
            scope=scope,
            policy=lambda proposal: proposal.kind in kinds,
        ),
        (user, project, session),
        with_models=True,
    )
    _show(new, as_json=as_json)


def extract_memories(
    conversation: Annotated[
        str,
        typer.Argument(
            metavar="CONVERSATION",
            help="A file of JSON Lines with role and content, or of plain text; - reads standard "
            "input.",
        ),
    ],
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Have an LLM propose what to remember of a conversation; nothing is saved by that."""
    source = "standard-input" if conversation == "-" else Path(conversation).stem
    try:
        data = sys.stdin.buffer.read() if conversation == "-" else Path(conversation).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{conversation}: {error.strerror or error}") from error
    text = output.decoded(data, conversation)
    found = run(
        lambda memory, scope: memory.extract(text, scope=scope, source=source),
        (user, project, session),
        with_models=True,
    )
    _show(found.proposals, as_json=as_json)
    for reason in found.refused:
        output.warn(f"left out: {output.plain(reason)}")


def show_proposals(
    user: User = None,
    project: Project = None,
    session: Session = None,
    as_json: AsJson = False,
) -> None:
    """Show what waits to be accepted or rejected."""
    waiting = run(lambda memory, scope: memory.proposals(scope=scope), (user, project, session))
    _show(waiting, as_json=as_json)


def accept_proposals(
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="Or the beginning of each.")],
    user: User = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Make the changes that proposals name; what is replaced is kept as history."""

    async def accept(memory: Memory, scope: Scope) -> None:
        for one in ids:
            done = await memory.accept(one, scope=scope)
            typer.echo(f"accepted {done.id}: {done.kind}")

    run(accept, (user, project, session))


def reject_proposals(
    ids: Annotated[list[str], typer.Argument(metavar="ID…", help="Or the beginning of each.")],
    user: User = None,
    project: Project = None,
    session: Session = None,
) -> None:
    """Leave everything as it is; the same is not proposed again."""

    async def reject(memory: Memory, scope: Scope) -> None:
        for one in ids:
            done = await memory.reject(one, scope=scope)
            typer.echo(f"rejected {done.id}: {done.kind}")

    run(reject, (user, project, session))


def _show(proposals: Iterable[Proposal], *, as_json: bool) -> None:
    shown = list(proposals)
    if as_json:
        output.print_json([proposal.to_dict() for proposal in shown])
        return
    if not shown:
        typer.echo("nothing is proposed", err=True)
        return
    table = output.table("id", "kind", "layer", "content", "evidence")
    for one in shown:
        evidence = " | ".join([*one.evidence, one.reason])
        table.add_row(
            one.id, one.kind, one.layer, output.plain(one.content), output.plain(evidence)
        )
    output.screen().print(table)
