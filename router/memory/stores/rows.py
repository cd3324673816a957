"""Converts items to rows of the database, and rows to items."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self, TypeVar

from router.errors import InvalidRequest
from router.memory.model import (
    MAX_CONTENT_CHARACTERS,
    MAX_ID_CHARACTERS,
    TASK_LAYER,
    AttributeValue,
    MemoryItem,
    ScoreKind,
    TaskStatus,
    moment_of,
)
from router.memory.stores.database import Connection, batched, placeholders
from router.memory.stores.graph import checked_relations, edges_of
from router.memory.stores.lexical import index_terms, indexed
from router.memory.stores.spaces import Space, scope_key
from router.memory.texts.questions import QUESTIONS, kept_questions, questions_of
from router.plain_json import ReadOnly

T = TypeVar("T")

REQUIRED_SCOPE: Final[Mapping[str, str]] = {"user": "user", "project": "project"}
"""Layers whose items must have a user (or a project) in their scope."""
NAMED_ATTRIBUTES: Final = ("title", "entity", "relations", "actor", "action", "subject")
"""Attributes whose words are indexed, in addition to the content and the questions."""
_READ_ATTRIBUTES: Final = {*NAMED_ATTRIBUTES, QUESTIONS, "status", "due", "expires_at"}
"""Attributes that are read here. They are stored under these names however they are written:
``Status`` would be a second attribute beside ``status``, which nothing reads."""
TAG_MARK: Final = "#"
"""The first character of a counted term that is a whole tag; no term of a text begins with it."""

_COLUMNS: Final = (
    "row, space, id, created, accessed, usefulness, type, tags, provenance, attributes, content"
)


def read_names(attributes: Mapping[str, T]) -> dict[str, T]:
    """Attributes with those that are read under the names by which they are read."""
    return {
        name.lower() if name.lower() in _READ_ATTRIBUTES else name: value
        for name, value in attributes.items()
    }


def checked(item: MemoryItem) -> MemoryItem:
    """An item as it is stored.

    Raises:
        InvalidRequest: it lacks a scope that its layer requires, or a value cannot be stored.
    """
    needed = REQUIRED_SCOPE.get(item.layer)
    if needed is not None and getattr(item.scope, needed) is None:
        raise InvalidRequest(
            f"layer {item.layer}: an item needs scope.{needed}: "
            f"name one; commands and MCP take it from the setting memory.{needed}"
        )
    for what, label in (("type", item.type), *(("tag", tag) for tag in item.tags)):
        if len(label) > MAX_ID_CHARACTERS:
            raise InvalidRequest(f"{what}: {len(label):,} characters; at most {MAX_ID_CHARACTERS}")
    size = sum(len(name) + len(str(value)) for name, value in item.attributes.items())
    size += sum(map(len, item.provenance))
    if size > MAX_CONTENT_CHARACTERS:
        raise InvalidRequest(
            f"attributes and provenance: {size:,} characters; at most {MAX_CONTENT_CHARACTERS:,}"
        )
    attributes = read_names(item.attributes)
    if item.layer == TASK_LAYER and "status" in attributes:
        attributes["status"] = TaskStatus.parse(attributes["status"]).value
    if "expires_at" in attributes:
        expires = _seconds(moment_of("attributes.expires_at", attributes["expires_at"]))
        attributes["expires_at"] = datetime.fromtimestamp(expires, UTC).isoformat()
    if "due" in attributes:
        _due(attributes["due"])
    if "relations" in attributes:
        attributes["relations"] = checked_relations(attributes["relations"])
    if QUESTIONS in attributes:
        attributes[QUESTIONS] = kept_questions(attributes[QUESTIONS])
    return item if attributes == item.attributes else replace(item, attributes=attributes)


@dataclass(frozen=True, slots=True)
class Draft:
    """An item that is about to be written. Times are in seconds since the epoch.

    Attributes:
        key: its scope as text.
        terms: its indexed terms in order.
        status: for filters: ``open`` for every task that is still to be done, else the task's
            status; None if it is not a task.
        due: the attribute ``due``; for a date without a time, the last second of that day.
        expires: the attribute ``expires_at``.
    """

    item: MemoryItem
    key: str
    created: float
    terms: Sequence[str]
    status: str | None
    due: float | None
    expires: float | None

    @classmethod
    def of(cls, item: MemoryItem) -> Self:
        """Check and prepare an item; raises as ``checked``."""
        item = checked(item)
        status: str | None = None
        if item.layer == TASK_LAYER:
            parsed = TaskStatus.parse(item.attributes.get("status", TaskStatus.OPEN))
            status = TaskStatus.OPEN.value if parsed.is_open else parsed.value
        due = item.attributes.get("due")
        expires = item.attributes.get("expires_at")
        named = [item.attributes.get(name) for name in NAMED_ATTRIBUTES]
        texts = [item.content, *item.tags, *questions_of(item)]
        for value in named:
            texts += (
                value if isinstance(value, tuple) else [value] if isinstance(value, str) else []
            )
        return cls(
            item,
            scope_key(item.scope),
            _seconds(item.created),
            [term for text in texts for term in index_terms(text)],
            status,
            None if due is None else _due(due),
            None if expires is None else _seconds(moment_of("attributes.expires_at", expires)),
        )

    def values(self, space: int) -> tuple[Any, ...]:
        """The columns of its row, from ``space`` to ``words``."""
        item = self.item
        return (
            space,
            item.id,
            self.created,
            None if item.accessed is None else _seconds(item.accessed),
            item.usefulness,
            item.type,
            json.dumps(item.tags),
            json.dumps(item.provenance),
            _dumped(item.attributes),
            self.status,
            self.due,
            self.expires,
            item.content,
            len(self.terms),
            indexed(space, self.terms),
        )

    @property
    def counted(self) -> set[str]:
        """The terms that are counted for this item: its terms, and its tags as a whole."""
        return {*self.terms, *(f"{TAG_MARK}{tag.casefold()}" for tag in self.item.tags)}


@dataclass(slots=True)
class Changes:
    """What one transaction changes in the spaces: how many rows are new in each, and which rows are
    gone. The counts of the spaces are written once, at the end of the transaction (``write``)."""

    added: Counter[int] = field(default_factory=Counter)
    removed: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    _words: Counter[int] = field(default_factory=Counter)
    _terms: Counter[tuple[int, str]] = field(default_factory=Counter)

    def insert(self, db: Connection, drafts: Mapping[tuple[int, str], Draft]) -> list[int]:
        """Add rows for items, given by space and id, that are not stored; returns the row
        numbers."""
        rows: dict[tuple[int, str], int] = {}
        keys = list(drafts)
        for batch in batched(keys):
            line = f"({placeholders(15)})"
            found = db.execute(
                "INSERT INTO items (space, id, created, accessed, usefulness, type, tags, "  # noqa: S608
                "provenance, attributes, status, due, expires, content, length, words) "
                f"VALUES {', '.join([line] * len(batch))} RETURNING space, id, row",
                [value for key in batch for value in drafts[key].values(key[0])],
            )
            rows |= {(space, item_id): row for space, item_id, row in found}
        db.executemany(
            "INSERT INTO edges (space, source, target, row) VALUES (?, ?, ?, ?)",
            [
                (key[0], source, target, rows[key])
                for key, draft in drafts.items()
                for source, target in edges_of(draft.item)
            ],
        )
        for (space, _), draft in drafts.items():
            self.added[space] += 1
            self._words[space] += len(draft.terms)
            self._terms.update((space, term) for term in draft.counted)
        return [rows[key] for key in keys]

    def remove(self, db: Connection, items: Iterable[tuple[int, str]]) -> None:
        """Remove the rows of items, given by space and id, if there are any."""
        by_space: dict[int, dict[str, None]] = defaultdict(dict)
        for space, item_id in items:
            by_space[space][item_id] = None
        for space, ids in by_space.items():
            for batch in batched(list(ids)):
                self._remove(db, space, batch)

    def _remove(self, db: Connection, space: int, ids: Sequence[str]) -> None:
        found = db.execute(
            f"DELETE FROM items WHERE space = ? AND id IN ({placeholders(len(ids))}) "  # noqa: S608
            "RETURNING row, length, words, tags",
            (space, *ids),
        ).fetchall()
        for row, length, words, tags in found:
            self.removed[space].append(row)
            self._words[space] -= length
            terms = {word.partition(":")[2] for word in words.split()}
            terms |= {f"{TAG_MARK}{tag.casefold()}" for tag in json.loads(tags)}
            self._terms.subtract((space, term) for term in terms)

    def write(self, db: Connection, generation: int) -> None:
        """Write the counts of the changed spaces, with the generation of this change."""
        for space in {*self.added, *self.removed}:
            removed = len(self.removed.get(space, ()))
            db.execute(
                "UPDATE spaces SET items = items + ?, words = words + ?, written = ?, "
                "removed = CASE WHEN ? > 0 THEN ? ELSE removed END WHERE id = ?",
                (
                    self.added[space] - removed,
                    self._words[space],
                    generation,
                    removed,
                    generation,
                    space,
                ),
            )
        db.executemany(
            "INSERT INTO terms (space, term, items) VALUES (?, ?, ?) "
            "ON CONFLICT (space, term) DO UPDATE SET items = terms.items + excluded.items",
            [(*key, change) for key, change in self._terms.items() if change],
        )
        db.executemany(
            "DELETE FROM terms WHERE space = ? AND term = ? AND items = 0",
            [key for key, change in self._terms.items() if change < 0],
        )


def find_space(db: Connection, layer: str, key: str) -> int | None:
    """The number of a space; None if nothing was ever saved in it."""
    found = db.execute("SELECT id FROM spaces WHERE layer = ? AND scope = ?", (layer, key))
    return next((int(number) for (number,) in found), None)


def make_space(db: Connection, layer: str, key: str) -> int:
    """The number of a space; it is created if there is none."""
    found = find_space(db, layer, key)
    if found is not None:
        return found
    # It may get the number of a space that was forgotten. ``removed`` tells other processes that
    # what they have read of that one is out of date.
    made = db.execute(
        "INSERT INTO spaces (layer, scope, removed) "
        "SELECT ?, ?, generation FROM memory_store RETURNING id",
        (layer, key),
    )
    return int(made.fetchone()[0])


def read_item(db: Connection, space: Space, item_id: str) -> MemoryItem | None:
    """One item of a space, without a score."""
    found = db.execute(
        f"SELECT {_COLUMNS} FROM items WHERE space = ? AND id = ?",  # noqa: S608
        (space.id, item_id),
    ).fetchone()
    return None if found is None else _item(found, space)


def read_rows(db: Connection, spaces: Sequence[Space], rows: Sequence[int]) -> list[MemoryItem]:
    """The items of some rows of these spaces, in the order of the rows, without scores."""
    by_id = {space.id: space for space in spaces}
    found = _records(db, rows)
    return [_item(found[row], by_id[found[row][1]]) for row in rows if row in found]


def load(
    db: Connection,
    spaces: Sequence[Space],
    scores: Mapping[int, float],
    kind: ScoreKind,
    k: int,
) -> dict[int, MemoryItem]:
    """The items of the best ``k`` rows, by row.

    If items of several scopes have the same id, only the one of the most particular scope is given.
    ``spaces`` are ordered with the most particular first, ``scores`` with the best first.
    """
    by_id = {space.id: space for space in spaces}
    rows = list(scores) if len(spaces) > 1 else list(scores)[: k + _SPARE]
    places = {
        row: (space, item_id)
        for row, space, item_id in db.execute(
            f"SELECT row, space, id FROM items WHERE row IN ({placeholders(len(rows))})",  # noqa: S608
            rows,
        )
        if space in by_id
    }
    order = {space.id: place for place, space in enumerate(spaces)}
    most_particular: dict[str, int] = {}  # of each id, the place of its scope in ``spaces``
    for space, item_id in places.values():
        most_particular[item_id] = min(most_particular.get(item_id, len(spaces)), order[space])
    chosen = [
        row
        for row in rows
        if row in places and order[places[row][0]] == most_particular[places[row][1]]
    ][:k]
    found = _records(db, chosen)
    return {
        row: _item(found[row], by_id[found[row][1]], score=scores[row], score_kind=kind)
        for row in chosen
    }


def _records(db: Connection, rows: Sequence[int]) -> dict[int, tuple[Any, ...]]:
    return {
        record[0]: record
        for record in db.execute(
            f"SELECT {_COLUMNS} FROM items WHERE row IN ({placeholders(len(rows))})",  # noqa: S608
            rows,
        )
    }


_SPARE: Final = 20
"""Rows that are read beyond the best ``k``, in case some of these have been deleted meanwhile."""


_LATEST: Final = math.nextafter(datetime.max.replace(tzinfo=UTC).timestamp(), 0)


def read_moment(seconds: float) -> datetime:
    """A stored time. Earlier versions stored times that were rounded up into the year 10000, which
    no ``datetime`` can hold; they are read as the last moment before it."""
    return datetime.fromtimestamp(min(seconds, _LATEST), UTC)


def _item(record: tuple[Any, ...], space: Space, **score: Any) -> MemoryItem:
    _, _, item_id, created, accessed, usefulness, kind, tags, provenance, attributes, content = (
        record
    )
    return MemoryItem(
        id=item_id,
        layer=space.layer,
        content=content,
        created=read_moment(created),
        type=kind,
        tags=_texts(tags),
        accessed=None if accessed is None else read_moment(accessed),
        usefulness=usefulness,
        scope=space.scope,
        provenance=_texts(provenance),
        attributes=_NO_ATTRIBUTES
        if attributes == "{}"
        else {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in json.loads(attributes).items()
        },
        **score,
    )


_NO_ATTRIBUTES: Final[Mapping[str, AttributeValue]] = ReadOnly()


def _texts(stored: str) -> tuple[str, ...]:
    return () if stored == "[]" else tuple(json.loads(stored))


def _seconds(moment: datetime) -> float:
    """The time as it is stored. Raises InvalidRequest for the last microseconds of the year 9999:
    they are rounded up into the next year, and could not be read again."""
    try:
        seconds = moment.astimezone(UTC).timestamp()
        datetime.fromtimestamp(seconds, UTC)
        return seconds
    except (OverflowError, ValueError):
        raise InvalidRequest(f"{moment}: out of the range of times") from None


def is_day(moment: str) -> bool:
    """Whether a text in ISO 8601 is a date without a time."""
    return len(moment) <= len("2024-05-02")


def _due(value: AttributeValue) -> float:
    moment = moment_of("attributes.due", value)
    if isinstance(value, str) and is_day(value):
        moment += timedelta(days=1, seconds=-1)
    return _seconds(moment)


def _dumped(attributes: Mapping[str, AttributeValue]) -> str:
    try:
        return json.dumps(dict(attributes))
    except TypeError as error:
        raise InvalidRequest(f"attributes: {error}") from None
