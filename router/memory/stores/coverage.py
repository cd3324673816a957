"""Counts how much is remembered about a subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from router.memory.stores.database import Connection, placeholders
from router.memory.stores.rows import read_moment
from router.memory.stores.spaces import Filter, Space, ids_of

COUNTED: Final = 5_000
"""Items of one layer that are counted at most, if words or a filter choose them."""
TOP_TAGS: Final = 10


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much one layer holds about something.

    Attributes:
        items: how many items, at least 1. If words or a filter chose them, ``COUNTED`` means that
            many or more.
        oldest: when the first was created; ``newest`` is when the last was.
        tags: the commonest tags with their number of items, unless words or a filter chose items.
    """

    layer: str
    items: int
    oldest: datetime
    newest: datetime
    tags: tuple[tuple[str, int], ...] = ()


def cover(
    db: Connection, spaces: Sequence[Space], terms: Sequence[str], where: Filter
) -> Coverage | None:
    """The count of the items in spaces of one layer that contain all terms; None if there is
    none."""
    if terms or where:
        items, oldest, newest = _chosen(db, spaces, terms, where)
        tags: tuple[tuple[str, int], ...] = ()
    else:
        items = sum(space.items for space in spaces)
        oldest, newest = _ends(db, spaces)
        tags = _tags(db, spaces)
    if not items:
        return None
    return Coverage(spaces[0].layer, items, read_moment(oldest), read_moment(newest), tags)


def _chosen(
    db: Connection, spaces: Sequence[Space], terms: Sequence[str], where: Filter
) -> tuple[int, float, float]:
    condition, values = where.sql()
    if terms:
        match = db.match(ids_of(spaces), terms, every=True)
        source, values = match.items, (*match.values, *values)
    else:
        source = f"items WHERE space IN ({placeholders(len(spaces))})"
        values = (*ids_of(spaces), *values)
    items, oldest, newest = db.execute(
        "SELECT count(*), min(created), max(created) FROM "  # noqa: S608
        f"(SELECT items.created FROM {source} AND {condition} LIMIT {COUNTED}) AS counted",
        values,
    ).fetchone()
    return items, oldest, newest


def _ends(db: Connection, spaces: Sequence[Space]) -> tuple[float, float]:
    ends = [
        db.execute(
            "SELECT (SELECT min(created) FROM items WHERE space = ?), "
            "(SELECT max(created) FROM items WHERE space = ?)",
            (space.id, space.id),
        ).fetchone()
        for space in spaces
    ]
    return min(oldest for oldest, _ in ends), max(newest for _, newest in ends)


def _tags(db: Connection, spaces: Sequence[Space]) -> tuple[tuple[str, int], ...]:
    found = db.execute(
        "SELECT substr(term, 2), sum(items) AS held FROM terms "  # noqa: S608
        f"WHERE space IN ({placeholders(len(spaces))}) AND term >= '#' AND term < '$' "
        f"GROUP BY term ORDER BY held DESC, term LIMIT {TOP_TAGS}",
        ids_of(spaces),
    )
    return tuple(found.fetchall())
