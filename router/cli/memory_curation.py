"""``router memory``, changes that somebody has to accept: consolidate, extract, proposals."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from router.bounded.files import Unreadable, read_bounded
from router.cli import output
from router.cli.commands import Work, memory_command
from router.cli.options import read_standard_input
from router.errors import InvalidRequest, RouterError

if TYPE_CHECKING:
    from router.memory.curation.proposals import Proposal
    from router.memory.memory import Memory
    from router.memory.model import Scope

Ids: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="ID…", help="Ids of proposals, or the beginning of each.")
]


def _told(proposal: Proposal) -> list[str]:
    """The evidence of a proposal; before a quote the role of who said it."""
    who = f"{proposal.speaker}: " if proposal.speaker else ""
    return [f"{who}{text}" for text in proposal.evidence]


def _show(proposals: Iterable[Proposal]) -> None:
    if not proposals:
        typer.echo("nothing is proposed", err=True)
        return
    rows = (
        (
            each.id,
            f"{each.kind}, replaces {', '.join(each.replaces)}" if each.replaces else each.kind,
            each.layer,
            ", ".join(f"{part} {name}" for part, name in each.scope.to_dict().items())
            or "everybody",
            each.content,
            " | ".join([*_told(each), each.reason]),
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

    async def consolidate(memory: Memory, scope: Scope) -> tuple[Proposal, ...]:
        new = await memory.consolidate(scope=scope, policy=lambda proposal: proposal.kind in kinds)
        if not new and (waiting := await memory.proposals(scope=scope)):
            typer.echo(
                f"waiting to be accepted or rejected: {len(waiting)}; "
                "`router memory proposals` shows them",
                err=True,
            )
        return new

    return consolidate


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


async def _each(ids: Iterable[str], decide: Callable[[str], Awaitable[Proposal]]) -> list[Proposal]:
    """The proposals, decided one after the other. Where one fails, those before it are told of,
    because their decisions hold."""
    done: list[Proposal] = []
    for one in ids:
        try:
            decided = await decide(one)
        except RouterError:
            if done:
                output.warn(f"done before that: {', '.join(each.id for each in done)}")
            raise
        done.append(decided)
    return done


def _show_done(word: str, done: Iterable[Proposal]) -> None:
    for each in done:
        typer.echo(f"{word} {each.id}: {each.kind}")


@memory_command(partial(_show_done, "accepted"))
def accept_proposals(ids: Ids) -> Work:
    """Make the changes that proposals name; what is replaced is kept as history."""

    return lambda memory, scope: _each(ids, partial(memory.accept, scope=scope))


@memory_command(partial(_show_done, "rejected"))
def reject_proposals(ids: Ids) -> Work:
    """Leave everything as it is; the same is not proposed again."""

    return lambda memory, scope: _each(ids, partial(memory.reject, scope=scope))
