"""Items and queries for the tests of memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from router.memory.model import LayerQuery, MemoryItem, Period, Scope
from router.memory.query.time_expressions import find_period
from router.text import STOPWORDS, tokens

NOW = datetime(2024, 5, 15, 10, 30, tzinfo=UTC)
"""A Wednesday."""


def day(text: str) -> datetime:
    """The beginning of a day, in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def item(
    name: str,
    content: str,
    *,
    layer: str = "semantic",
    age: float = 1.0,
    scope: Scope = Scope(),  # noqa: B008 - it is immutable
    **values: Any,
) -> MemoryItem:
    """An item, ``age`` days old."""
    created = NOW - timedelta(days=age)
    return MemoryItem(id=name, layer=layer, content=content, created=created, scope=scope, **values)


def ask(text: str, *, now: datetime = NOW) -> LayerQuery:
    """A query as the router rewrites it."""
    found = find_period(text, now)
    rest = text if found is None else found.removed_from(text)
    words = dict.fromkeys(word for word in tokens(rest) if word not in STOPWORDS)
    return LayerQuery(text, tuple(words), period_of(text, now), now)


def period_of(text: str, now: datetime) -> Period | None:
    """The period that a text speaks of."""
    found = find_period(text, now)
    return None if found is None else found.period


def ids(found: Any) -> list[str]:
    return [one.id for one in found]
