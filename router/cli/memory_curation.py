"""``router memory``, changes that somebody has to accept: consolidate, extract, proposals."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from router.bounded.files import Unreadable, read_bounded
from router.cli import output
from router.cli.commands import Work, memory_command
from router.cli.options import read_standard_input
from router.errors import InvalidRequest

if TYPE_CHECKING:
    from router.memory.curation.proposals import Proposal
    from router.memory.memory import Memory
    from router.memory.model import Scope

Ids: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="ID…", help="Ids of proposals, or the beginning of each.")
]


def _show(proposals: Iterable[Proposal]) -> None:
    if not proposals:
        typer.echo("nothing is proposed", err=True)
        return
    rows = (
        (
            each.id,
            each.kind,
            each.layer,
            ", ".join(f"{part} {name}" for part, name in each.scope.to_dict().items())
            or "everybody",
            each.content,
            " | ".join([*each.evidence, each.reason]),
        )
        for each in proposals
    )
    output.print_rows("id", "kind", "layer", "scope", "content", "evidence", rows=rows)


@memory_command(_show, with_models=True)
def consolidate_memories(
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Accept these at once: merge, update, …"),
    ] = None,
) -> Work:
    """Propose merges, updates, contradictions and stale tasks, with the evidence."""
    from router.memory.curation.proposals import ChangeKind

    kinds = frozenset(accept or ())
    if unknown := sorted(kinds - set(ChangeKind)):
        raise typer.BadParameter(f"--accept {unknown[0]}: none of {', '.join(ChangeKind)}")
    return lambda memory, scope: memory.consolidate(
        scope=scope, policy=lambda proposal: proposal.kind in kinds
    )


@memory_command(_show, with_models=True)
def extract_memories(
    conversation: Annotated[
        str,
        typer.Argument(
            metavar="CONVERSATION",
            help="A file of JSON Lines with role and content, or of plain text; - reads standard "
            "input.",
        ),
    ],
) -> Work:
    """Have an LLM propose what to remember of a conversation; nothing is saved by that."""
    from router.memory.curation.extraction import MAX_CHARACTERS

    source = "standard-input" if conversation == "-" else Path(conversation).stem
    if conversation == "-":
        text = read_standard_input("standard input", MAX_CHARACTERS)
    else:
        try:
            data = read_bounded(Path(conversation), most=4 * MAX_CHARACTERS, pipes=True)
        except Unreadable as error:
            raise InvalidRequest(f"{conversation}: {error}") from error
        text = output.decoded(data, conversation)

    async def extract(memory: Memory, scope: Scope) -> tuple[Proposal, ...]:
        found = await memory.extract(text, scope=scope, source=source)
        for reason in found.refused:
            output.warn(f"left out: {reason}")
        return found.proposals

    return extract


@memory_command(_show)
def show_proposals() -> Work:
    """Show what waits to be accepted or rejected."""
    return lambda memory, scope: memory.proposals(scope=scope)


@memory_command()
def accept_proposals(ids: Ids) -> Work:
    """Make the changes that proposals name; what is replaced is kept as history."""

    async def accept(memory: Memory, scope: Scope) -> None:
        for one in ids:
            done = await memory.accept(one, scope=scope)
            typer.echo(f"accepted {done.id}: {done.kind}")

    return accept


@memory_command()
def reject_proposals(ids: Ids) -> Work:
    """Leave everything as it is; the same is not proposed again."""

    async def reject(memory: Memory, scope: Scope) -> None:
        for one in ids:
            done = await memory.reject(one, scope=scope)
            typer.echo(f"rejected {done.id}: {done.kind}")

    return reject
