"""All items of an owner: in pages, expired, or forgotten for good.

An owner is a scope whose open dimensions stand for any: ``Scope(user="ada")`` owns what is stored
with the user ada, whatever its project and session. That is not what a query of ada sees, which
includes what belongs to everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from router.memory.model import Scope
from router.memory.stores.database import Connection, placeholders
from router.memory.stores.spaces import Space, parse_scope

FOREVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: after the item of this time and row, newest first."""

    created: float = FOREVER
    row: int = 2**62


def owned_spaces(db: Connection, owner: Scope) -> list[Space]:
    """The spaces of an owner; some may be empty."""
    rows = db.execute("SELECT id, layer, scope, items, words, written, removed FROM spaces")
    spaces = (Space(row[0], row[1], parse_scope(row[2]), *row[3:]) for row in rows)
    return [space for space in spaces if owns(owner, space.scope)]


def owns(owner: Scope, scope: Scope) -> bool:
    """Whether what is stored in ``scope`` belongs to the owner."""
    pairs = (
        (owner.user, scope.user),
        (owner.project, scope.project),
        (owner.session, scope.session),
    )
    return all(wanted is None or wanted == held for wanted, held in pairs)


def page_of(
    db: Connection, spaces: Sequence[Space], after: Place, limit: int
) -> list[tuple[int, Place]]:
    """The rows of one page, newest first, and the place after each."""
    found: list[tuple[float, int]] = []
    for space in spaces:  # one at a time, so that the index gives them in order
        found += db.execute(
            "SELECT created, row FROM items WHERE space = ? "
            "AND (created < ? OR (created = ? AND row < ?)) "
            "ORDER BY created DESC, row DESC LIMIT ?",
            (space.id, after.created, after.created, after.row, limit),
        )
    return [(row, Place(created, row)) for created, row in sorted(found, reverse=True)[:limit]]


def expired(db: Connection, now: float) -> list[tuple[int, str]]:
    """Space and id of every item whose attribute ``expires_at`` is not after ``now``, in seconds
    since the epoch."""
    return db.execute("SELECT space, id FROM items WHERE expires <= ?", (now,)).fetchall()


def ids_in(db: Connection, spaces: Sequence[int]) -> list[tuple[int, str]]:
    """Space and id of every item of some spaces."""
    return db.execute(
        f"SELECT space, id FROM items WHERE space IN ({placeholders(len(spaces))})",  # noqa: S608
        spaces,
    ).fetchall()
