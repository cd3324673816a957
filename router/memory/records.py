"""Saving, listing, editing, exporting, importing and forgetting the items of the layers.

Every method takes a scope. ``page`` and ``profile`` show what the scope sees; ``export``,
``forget`` and ``importing`` are about what an owner has (``Scope.owns``).
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import BaseModel, Strict, TypeAdapter, ValidationError

from router.errors import InvalidRequest, UnknownMemory
from router.memory.contexts.documents import LAYER as DOCUMENTS
from router.memory.contexts.usage_patterns import QueryPatternTracker
from router.memory.layers import WRITABLE
from router.memory.model import (
    EVENT_LAYER,
    MAX_QUERY_CHARACTERS,
    AttributeValue,
    MemoryItem,
    Scope,
    moment_of,
)
from router.memory.recall.updates import LASTING_LAYERS, replaced_by, replaces
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.replacements import SUPERSEDED_AT, SUPERSEDED_BY
from router.memory.stores.rows import checked, is_day, read_names
from router.memory.stores.spaces import PROPOSALS, Place
from router.memory.texts.contents import content_key
from router.memory.texts.questions import QUESTIONS, checked_questions, inheriting
from router.plain_json import PlainJson, first_fault
from router.request import names_in

MAX_PAGE: Final = 1_000
DUE: Final = "due"
"""Attribute: when something is to be done, as a day or time in ISO 8601."""
EXPIRES_AT: Final = "expires_at"
"""Attribute: when an item is removed, in ISO 8601."""
_COMPARED: Final = 20
"""Stored items that a new one may replace and is compared with, at most."""
_EVENTS: Final = frozenset({EVENT_LAYER, "session"})
_ID_CHARACTERS: Final = 32
_IMPORT_BATCH: Final = 500
_ATTEMPTS: Final = 10
_STORED: Final = (*WRITABLE, DOCUMENTS)
_ITEM: Final = TypeAdapter(MemoryItem)


class _Values(BaseModel, allow_inf_nan=False):
    created: Annotated[datetime, Strict()] | None = None
    type: str = ""
    tags: tuple[str, ...] = ()
    usefulness: float = 0
    provenance: tuple[str, ...] = ()
    attributes: dict[str, AttributeValue | None] = {}


def checked_values(**fields: object) -> dict[str, Any]:
    """Fields of an item, ``attributes`` among them, converted to the types that are stored and
    exported. Attributes that are None are left out.

    Raises:
        InvalidRequest: one is of another type; the message names it.
    """
    try:
        values = _Values.model_validate(fields).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise InvalidRequest(first_fault(error)) from None
    attributes = {name: value for name, value in values["attributes"].items() if value is not None}
    return {**values, "attributes": attributes}


@dataclass(frozen=True, slots=True)
class Page(PlainJson):
    """Some memories, newest first, without scores. ``next`` is the argument ``after`` for the page
    that follows; None if this is the last one."""

    items: tuple[MemoryItem, ...]
    next: str | None


@dataclass(frozen=True, slots=True)
class ForgetReport(PlainJson):
    """What was forgotten.

    Attributes:
        items: items of layers, with their vectors.
        files: memory files.
        counts: counts of retrievals.
        left: items of the owner that a check afterwards still finds, which is 0.
        vectors: vectors of the owner that a check afterwards still finds, which is 0.
        waiting: files whose deletion the memory service must still be told of.
    """

    items: int
    files: int
    counts: int
    left: int
    vectors: int
    waiting: int


class Records:
    """The items of the layers, for people who look after their memories. All methods block.

    A method that is given an id without an item raises UnknownMemory.
    """

    def __init__(
        self,
        store: MemoryStore,
        tracker: QueryPatternTracker,
        *,
        ttl_days: Mapping[str, float],
        time_zone: tzinfo,
        clock: Callable[[], float],
    ) -> None:
        self._store = store
        self._tracker = tracker
        self._ttl_days = ttl_days
        self._time_zone = time_zone
        self._clock = clock

    def save(
        self,
        item: MemoryItem,
        *,
        supersede: Sequence[str | MemoryItem],
        unnamed: Collection[str] | None = None,
        is_named: bool = True,
    ) -> tuple[MemoryItem, tuple[MemoryItem, ...]]:
        """Store an item, and mark the items that it replaces as superseded. Returns the item, and
        others that it may replace. Without an ``expires_at`` of its own the item gets one from the
        time to live of its layer.

        An item that is not named gets an id that is made from its text. If ``edit`` has given the
        item with this id another text, that one stays, and is among those that the new item may
        replace.

        ``unnamed`` are the fields that the caller has not named: if the same text is stored under
        this id already, they stay as they are, and so do attributes that are not named. A caller
        that gives None names everything."""
        item = replace(item, attributes=self._read(item.attributes))
        self._check_time(item.attributes)
        days = self._ttl_days.get(item.layer)
        if days is not None and EXPIRES_AT not in item.attributes:
            expires = datetime.fromtimestamp(self._clock(), UTC) + timedelta(days=days)
            attributes = {**item.attributes, EXPIRES_AT: expires.isoformat()}
            item = replace(item, attributes=attributes)
        layers = {old.id: old.layer for old in supersede if isinstance(old, MemoryItem)}
        stored = self._replace(
            names_in("supersede", _ids(supersede)),
            lambda: item if is_named else self._under_free_id(item)[0],
            layers,
            unnamed,
        )
        if item.layer not in LASTING_LAYERS:
            return stored, ()
        edited = [] if is_named else self._under_free_id(stored)[1]
        others = (
            old for old in replaced_by(stored, self._near(item)) if old.id not in _ids(edited)
        )
        return stored, tuple(
            old
            for old in (*edited, *others)
            # To mark what a wider scope sees would hide it from others, who do not see the new one.
            if old.scope == item.scope and SUPERSEDED_BY not in old.attributes
        )

    def _check_time(self, attributes: Mapping[str, AttributeValue]) -> None:
        """Raise InvalidRequest if an item with these attributes would be removed at once."""
        expires_at = attributes.get(EXPIRES_AT)
        if isinstance(expires_at, str):
            end = moment_of(f"attributes.{EXPIRES_AT}", expires_at, UTC)
            if end.timestamp() <= self._clock():
                raise InvalidRequest(f"attributes.{EXPIRES_AT}: {expires_at} is past")

    def _under_free_id(self, item: MemoryItem) -> tuple[MemoryItem, list[MemoryItem]]:
        """The item under the first of the ids made from its text that no other text is stored
        under, and the items with the ids before that."""
        others: list[MemoryItem] = []
        for attempt in itertools.count():
            text = f"{item.content}\n{attempt}" if attempt else item.content
            item = replace(item, id=content_key(text)[:_ID_CHARACTERS])
            try:
                stored = self._store.get_stored(item.layer, item.id, item.scope)
            except UnknownMemory:
                break
            if content_key(stored.content) == content_key(item.content):
                break
            others.append(stored)
        return item, others

    def _near(self, item: MemoryItem) -> list[MemoryItem]:
        """The items of lasting knowledge that are nearest to an item, those of its layer first."""
        text = item.content[:MAX_QUERY_CHARACTERS]
        return [
            old
            for layer in sorted(LASTING_LAYERS, key=lambda layer: layer != item.layer)
            for old in self._store.search(layer, text, scope=item.scope, k=_COMPARED)
        ]

    def _saved_again(
        self, item: MemoryItem, before: MemoryItem, unnamed: Collection[str]
    ) -> MemoryItem:
        """An item whose text is stored already, with what its caller has not named as it was. Its
        date is the new one if something else held in between, which it replaces again, and if it
        is an event, which has happened again."""
        attributes = {
            name: value
            for name, value in before.attributes.items()
            if name not in (QUESTIONS, SUPERSEDED_BY, SUPERSEDED_AT)  # ``_replace`` sees to these
        }
        is_said_anew = (
            item.layer in _EVENTS
            or SUPERSEDED_BY in before.attributes
            or any(
                replaces(other, before)
                or (other.created > before.created and replaces(item, other))
                for other in self._near(before)
            )
        )
        kept = {
            name: getattr(before, name)
            for name in unnamed
            if not (name == "created" and is_said_anew)
        }
        return replace(item, **kept, attributes={**attributes, **item.attributes})

    def mark(self, layer: str, older: Sequence[str], by: str, scope: Scope) -> None:
        """Mark stored items as superseded by another one, which is in this layer and scope."""
        self._replace(older, lambda: self._store.get_stored(layer, by, scope))

    def _replace(
        self,
        older: Sequence[str],
        get_newer: Callable[[], MemoryItem],
        layers: Mapping[str, str] = MappingProxyType({}),
        unnamed: Collection[str] | None = None,
    ) -> MemoryItem:
        """Store an item and mark those that it replaces; returns it as it is stored. It inherits
        the questions of the items that it replaces, and of one with its own id. ``layers`` are
        those of the replaced items, as far as they are known; ``unnamed`` is as in ``save``."""

        def marked() -> tuple[list[MemoryItem], list[MemoryItem]]:
            newer = get_newer()
            found = [self._replaced(name, newer, layers.get(name)) for name in older]
            with suppress(UnknownMemory):
                before = self._store.get_stored(newer.layer, newer.id, newer.scope)
                found.append(before)  # the same text saved again keeps its questions
                if unnamed is not None and before.content == newer.content:
                    newer = self._saved_again(newer, before, unnamed)
            marks = {SUPERSEDED_BY: newer.id, SUPERSEDED_AT: newer.created.isoformat()}
            replaced = [
                replace(old, attributes={**old.attributes, **marks})
                for old in found
                if (old.layer, old.id) != (newer.layer, newer.id)
            ]
            return found, [*replaced, inheriting(newer, found)]

        return self._save_over(marked)

    def _replaced(self, name: str, newer: MemoryItem, layer: str | None) -> MemoryItem:
        """The stored item that ``newer`` replaces: of that layer, else of its own layer, else of
        another one of lasting knowledge."""
        others = LASTING_LAYERS if newer.layer in LASTING_LAYERS else ()
        layers = (newer.layer, *others) if layer is None or layer not in others else (layer,)
        for each in layers:
            with suppress(UnknownMemory):
                return self._store.get_stored(each, name, newer.scope)
        for each in layers:
            with suppress(UnknownMemory):
                self._store.get(each, name, newer.scope)
                raise InvalidRequest(
                    f"supersede: {name!r} belongs to a wider scope; only what has the scope of "
                    "the new memory can be marked as replaced"
                )
        raise UnknownMemory(name)

    def _save_over(
        self, make: Callable[[], tuple[Sequence[MemoryItem], Sequence[MemoryItem]]]
    ) -> MemoryItem:
        """Store items that are made from stored ones; returns the last of them as it is stored.

        ``make`` gives the stored items that it read, and the new items. It is called again if
        somebody has changed the stored ones meanwhile; after ``_ATTEMPTS`` times that is no longer
        checked.
        """
        saved: list[MemoryItem] = []
        for is_last in (*[False] * _ATTEMPTS, True):
            found, items = make()
            if saved := self._store.save(items, over=() if is_last else found):
                break
        return saved[-1]

    def page(
        self, scope: Scope, *, layers: Sequence[str] | None, limit: int, after: str | None
    ) -> Page:
        """A page of what a scope sees, newest first: at most ``limit`` items, 1 to 1,000."""
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidRequest(f"limit: {limit} is not in 1 to {MAX_PAGE}")
        for layer in () if layers is None else names_in("layers", layers):
            check_stored(layer, "layers")
        items, place = self._store.page(scope, layers=layers, after=_place(after), limit=limit)
        following = None if place is None else f"{place.created!r}:{place.row}"
        return Page(tuple(items), following)

    def all_of(self, scope: Scope, layers: Sequence[str] | None = None) -> Iterator[MemoryItem]:
        """Everything that a scope sees in some layers, or in all, newest first."""
        return _pages(partial(self._store.page, scope, layers=layers))

    def edit(
        self,
        layer: str,
        name: str,
        scope: Scope,
        *,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        attributes: Mapping[str, AttributeValue | None] | None,
    ) -> MemoryItem:
        """Change an item that is stored in exactly this scope; returns it as it is stored.
        Arguments that are None change nothing; an attribute that is None is removed."""
        changes = self._read(attributes or {})
        if changes.get(QUESTIONS) is not None:
            checked_questions(changes[QUESTIONS])
        self._check_time(changes)

        def changed() -> tuple[list[MemoryItem], list[MemoryItem]]:
            item = self._store.get_stored(layer, name, scope)
            values = checked_values(
                tags=item.tags if tags is None else tags, attributes={**item.attributes, **changes}
            )
            text = item.content if content is None else content
            return [item], [replace(item, content=text, **values)]

        return self._save_over(changed)

    def _read(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes as a caller means them: under the names by which they are read, and a time
        that names no time zone is one of the user's. A day on which something is due stays as it
        is: it is that day wherever one asks."""
        read = read_names(attributes)
        for name in (EXPIRES_AT, DUE):
            value = read.get(name)
            if isinstance(value, str) and not (name == DUE and is_day(value)):
                read[name] = moment_of(f"attributes.{name}", value, self._time_zone).isoformat()
        return read

    def profile(self, scope: Scope, *, limit: int, after: str | None) -> Page:
        """A page of what is known of the user in the scope and is not marked as replaced, newest
        first: of at most ``limit`` stored items, 1 to 1,000. What may be replaced, but is not
        marked, is in it, because a guess must not hide an allergy. Raises InvalidRequest without a
        user."""
        if scope.user is None:
            raise InvalidRequest(
                "profile: name a user; commands and MCP take it from the setting memory.user"
            )
        while True:
            page = self.page(scope, layers=["user"], limit=limit, after=after)
            valid = tuple(item for item in page.items if SUPERSEDED_BY not in item.attributes)
            if valid or page.next is None:
                return Page(valid, page.next)
            after = page.next

    def export(self, owner: Scope) -> Iterator[str]:
        """Every item of an owner as one line of JSON, newest first. Proposals are left out, because
        they are no memories yet."""
        for item in _pages(partial(self._store.owned, owner)):
            if item.layer != PROPOSALS:
                row = item.to_dict()
                del row["score"], row["score_kind"]
                yield json.dumps(row, ensure_ascii=False)

    def importing(
        self,
        lines: Iterable[str],
        owner: Scope,
        progress: Callable[[int, int], None],
        left_out: Callable[[str], None],
    ) -> Iterator[int]:
        """Store exported items, in place of those with the same id. Each step reads some lines or
        stores some items, and gives the number of items that are stored; who takes no further step
        keeps these. An empty owner accepts the items of everybody.

        Nothing is stored until all lines have been read. A step raises InvalidRequest, which names
        the line, if one is not an exported item or does not belong to the owner. ``progress`` is
        called with (stored, total) items, within the step that has stored them. What has expired
        since it was exported is not stored; ``left_out`` is told the line and the reason.
        """
        items: list[MemoryItem] = []
        for number, line in enumerate(lines, 1):
            if line.strip():
                item = _item(line, number, owner)
                try:
                    self._check_time(item.attributes)
                except InvalidRequest as error:
                    left_out(f"line {number}: {item.id!r}: {error}")
                else:
                    items.append(item)
            if number % _IMPORT_BATCH == 0:
                yield 0
        for start in range(0, len(items), _IMPORT_BATCH):
            batch = items[start : start + _IMPORT_BATCH]
            self._store.save(batch)
            progress(start + len(batch), len(items))
            yield start + len(batch)

    def forget(self, owner: Scope, *, files: int, waiting: int) -> ForgetReport:
        """Remove everything of an owner, and check that nothing is left. ``files`` and ``waiting``
        are copied into the report: memory files are deleted elsewhere."""
        removed = self._store.forget(owner)
        counts = self._tracker.forget(owner)
        left, vectors = self._store.left_of(owner)
        return ForgetReport(removed, files, counts, left, vectors, waiting)


def _pages(read: Callable[..., tuple[list[MemoryItem], Place | None]]) -> Iterator[MemoryItem]:
    place: Place | None = Place()
    while place is not None:
        items, place = read(after=place, limit=MAX_PAGE)
        yield from items


def _ids(items: Any) -> Any:
    """The list with ids in place of items. Any other value is returned as it is, and is checked by
    ``names_in``."""
    if not isinstance(items, list | tuple):
        return items
    return [one.id if isinstance(one, MemoryItem) else one for one in items]


def check_stored(layer: str, part: str) -> None:
    """Raise InvalidRequest, which begins with ``part``, unless the layer can hold items."""
    if layer not in _STORED:
        raise InvalidRequest(f"{part}: {layer!r} is none of {', '.join(_STORED)}")


def _place(after: str | None) -> Place:
    if after is None:
        return Place()
    created, _, row = after.partition(":")
    try:
        place = Place(float(created), int(row))
    except ValueError:
        place = Place(row=-1)
    if math.isnan(place.created) or not 0 <= place.row <= Place().row:  # no database takes others
        raise InvalidRequest(f"after: {after!r} is the end of no page")
    return place


def _item(line: str, number: int, owner: Scope) -> MemoryItem:
    try:
        row = json.loads(line)
        parsed = _ITEM.validate_python({**row, "scope": Scope.parse(row.get("scope"))})
        item = checked(parsed)
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        fault = first_fault(error) if isinstance(error, ValidationError) else error
        raise InvalidRequest(f"line {number}: no exported memory: {fault}") from None
    if item.layer == PROPOSALS:
        raise InvalidRequest(f"line {number}: {item.id!r} is a proposal, and no memory")
    check_stored(item.layer, f"line {number}: layer")
    if not owner.owns(item.scope):
        raise InvalidRequest(f"line {number}: {item.id!r} belongs to somebody else")
    return item
