"""Entities and how they hang together, as items state it.

An item is about the entity in its attribute ``entity``; its attribute ``relations`` lists what that
entity has to do with others, each as ``"verb -> Target"`` (or ``"Source -> verb -> Target"``).
Entities are compared by the stems of their names, so "auth service" is "Auth-Services".
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from router.memory.model import MemoryItem
from router.memory.stores.items_db import marks
from router.memory.stores.lexical import index_terms
from router.memory.stores.spaces import Space, ids_of
from router.text import STOPWORDS, tokens

MAX_NAME_WORDS: Final = 6
MAX_QUERY_WORDS: Final = 200
MAX_STEP: Final = 500
"""Edges followed from one step to the next; beyond them an entity is a hub that relates all."""


def edges_of(item: MemoryItem) -> Iterator[tuple[str, str | None]]:
    """(source, target) of everything that an item states; without a target for what it is about."""
    entity = item.attributes.get("entity")
    about = _key(entity) if isinstance(entity, str) else ""
    if about:
        yield about, None
    relations = item.attributes.get("relations")
    for relation in relations if isinstance(relations, tuple) else ():
        parts = [part.strip() for part in relation.split("->")]
        source = _key(parts[0]) if len(parts) > 2 else about
        target = _key(parts[-1])
        if source and target and len(parts) > 1:
            yield source, target


def entities_in(db: sqlite3.Connection, spaces: Sequence[Space], text: str) -> set[str]:
    """The known entities that a text names."""
    words = tokens(text)[:MAX_QUERY_WORDS]
    names = {
        _key(" ".join(words[start : start + length]))
        for length in range(1, MAX_NAME_WORDS + 1)
        for start in range(len(words) - length + 1)
        if length > 1 or words[start] not in STOPWORDS
    }
    known: set[str] = set()
    for column in ("source", "target"):
        known |= {
            name
            for (name,) in db.execute(
                f"SELECT DISTINCT {column} FROM edges "  # noqa: S608
                f"WHERE space IN ({marks(len(spaces))}) AND {column} IN ({marks(len(names))})",
                (*ids_of(spaces), *names),
            )
        }
    return known


def walk(
    db: sqlite3.Connection, spaces: Sequence[Space], start: set[str], depth: int
) -> dict[int, int]:
    """The rows about entities at most ``depth`` relations away, with how many; nearest first."""
    rows: dict[int, int] = {}
    seen = set(start)
    frontier = list(start)
    for hop in range(depth + 1):
        if not frontier:
            break
        reached: set[str] = set()
        for _, target, row in _edges(db, spaces, "source", frontier):
            rows.setdefault(row, hop)
            if target is not None:
                reached.add(target)
        reached |= {source for source, _, _ in _edges(db, spaces, "target", frontier)}
        frontier = sorted(reached - seen)[:MAX_STEP]
        seen |= reached
    return rows


def _edges(
    db: sqlite3.Connection, spaces: Sequence[Space], column: str, names: Sequence[str]
) -> list[tuple[str, str | None, int]]:
    return db.execute(
        f"SELECT source, target, row FROM edges WHERE space IN ({marks(len(spaces))}) "  # noqa: S608
        f"AND {column} IN ({marks(len(names))}) LIMIT {MAX_STEP}",
        (*ids_of(spaces), *names),
    ).fetchall()


def _key(name: str) -> str:
    return " ".join(index_terms(name))
