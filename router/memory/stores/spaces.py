"""Spaces: the items of one layer in one scope. Finds the spaces that a query sees or an owner
has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.memory.model import Period, Scope
from router.memory.stores.database import Connection, placeholders

_KEPT_SCOPES: Final = 4_096
_DUE: Final = "(items.due - CASE WHEN CAST(items.due AS BIGINT) % 86400 = 86399 THEN ? ELSE 0 END)"
"""When an item is due. ``rows`` stores a date without a time as the last second of that day in UTC;
such a task is due when the day ends in the time zone of who asks. The bound value is the offset of
that zone from UTC, in seconds."""
PROPOSALS: Final = "proposals"
"""The layer of proposals. A search sees it only if it names the layer."""


@dataclass(frozen=True, slots=True)
class Space:
    """The items of one layer in one stored scope.

    Attributes:
        items: how many there are.
        words: how many indexed words they have together.
        written: the generation of the store at the last change.
        removed: the generation at the last change that was more than new rows.
    """

    id: int
    layer: str
    scope: Scope
    items: int
    words: int
    written: int
    removed: int


@dataclass(frozen=True, slots=True)
class Filter:
    """Which items may be found: when they were created, their attribute ``status``, and the period
    in which they are due. It is applied before the best items are chosen."""

    period: Period | None = None
    status: str | None = None
    due: Period | None = None

    def __bool__(self) -> bool:
        return not (self.period is None and self.status is None and self.due is None)

    def sql(self) -> tuple[str, tuple[str | float, ...]]:
        """A condition on the table ``items``, and its values."""
        conditions = ["TRUE"]
        values: list[str | float] = []
        if self.period is not None:
            conditions.append("items.created >= ? AND items.created < ?")
            values += (self.period.start.timestamp(), self.period.end.timestamp())
        if self.due is not None:
            conditions.append(f"{_DUE} >= ? AND {_DUE} < ?")
            for moment in (self.due.start, self.due.end):
                values += ((moment.utcoffset() or timedelta()).total_seconds(), moment.timestamp())
        if self.status is not None:
            conditions.append("items.status = ?")
            values.append(self.status)
        return " AND ".join(conditions), tuple(values)


EVERYTHING: Final = Filter()
"""A filter that every item passes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: after the item of this time and row, newest first."""

    created: float = float("inf")
    row: int = 2**62


def visible_spaces(
    db: Connection, scope: Scope, layers: Sequence[str] | None = None
) -> list[Space]:
    """The spaces that a query in ``scope`` sees and that are not empty, the most particular scope
    first; of some layers, or of all but the proposals."""
    keys = {scope_key(stored): place for place, stored in enumerate(scope.visible())}
    among = " AND layer != ?" if layers is None else f" AND layer IN ({placeholders(len(layers))})"
    found = db.execute(
        f"{_SPACES} WHERE scope IN ({placeholders(len(keys))}) AND items > 0{among}",
        (*keys, *((PROPOSALS,) if layers is None else layers)),
    )
    return [_space(row) for row in sorted(found, key=lambda row: keys[row[2]])]


def owned_spaces(db: Connection, owner: Scope) -> list[Space]:
    """The spaces of an owner, also empty ones."""
    return [space for space in map(_space, db.execute(_SPACES)) if owner.owns(space.scope)]


_SPACES: Final = "SELECT id, layer, scope, items, words, written, removed FROM spaces"


def _space(row: tuple[Any, ...]) -> Space:
    return Space(row[0], row[1], parse_scope(row[2]), *row[3:])


@lru_cache(maxsize=_KEPT_SCOPES)
def scope_key(scope: Scope) -> str:
    """A scope as a text; different scopes have different texts."""
    return json.dumps([scope.user, scope.project, scope.session])


@lru_cache(maxsize=_KEPT_SCOPES)
def parse_scope(key: str) -> Scope:
    """The inverse of ``scope_key``."""
    return Scope(*json.loads(key))


def ids_of(spaces: Iterable[Space]) -> list[int]:
    return [space.id for space in spaces]


def newest_rows(
    db: Connection, spaces: Sequence[Space], where: Filter, limit: int
) -> NDArray[np.int64]:
    """The newest rows that pass a filter, newest first."""
    if not spaces:
        return np.array([], dtype=np.int64)
    condition, values = where.sql()
    # One part a space, so that the index gives the rows of each in order.
    part = (
        f"SELECT * FROM (SELECT created, row FROM items WHERE space = ? AND {condition} "  # noqa: S608
        "ORDER BY created DESC, row DESC LIMIT ?) AS part"
    )
    newest = " UNION ALL ".join([part] * len(spaces))
    return db.numbers(
        f"SELECT row FROM ({newest}) AS parts ORDER BY created DESC, row DESC LIMIT ?",  # noqa: S608
        [*(value for space in spaces for value in (space.id, *values, limit)), limit],
    )


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


def ids_in(db: Connection, spaces: Sequence[int]) -> list[tuple[int, str]]:
    """Space and id of every item of some spaces."""
    return db.execute(
        f"SELECT space, id FROM items WHERE space IN ({placeholders(len(spaces))})",  # noqa: S608
        spaces,
    ).fetchall()
