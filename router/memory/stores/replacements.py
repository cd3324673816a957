"""Marks of replaced items: the attribute ``superseded_by`` names the item that has replaced one.

A mark is valid only as long as there is the item that it names. If that is deleted or expires, the
items that it had replaced are valid again, or they are replaced by what had replaced it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from router.memory.stores.database import Connection, batched, placeholders

SUPERSEDED_BY: Final = "superseded_by"
"""Attribute: the id of the item that has replaced this one. That item has the same scope."""
SUPERSEDED_AT: Final = "superseded_at"
"""Attribute: when it was replaced, in ISO 8601."""
_MARKS: Final = (SUPERSEDED_BY, SUPERSEDED_AT)


def correct_marks(db: Connection, removed: Collection[tuple[int, str]]) -> None:
    """Correct the marks that name some items, given by space and id, that are about to be
    removed."""
    scopes = dict(db.execute("SELECT id, scope FROM spaces").fetchall())
    ids: dict[str, set[str]] = {}
    for space, item_id in removed:
        ids.setdefault(scopes[space], set()).add(item_id)
    for scope, of_scope in ids.items():
        spaces = [space for space in scopes if scopes[space] == scope]
        _correct_marks(db, spaces, of_scope, removed)


def _correct_marks(
    db: Connection, spaces: Sequence[int], ids: set[str], removed: Collection[tuple[int, str]]
) -> None:
    """Correct the marks in the spaces of one scope. ``ids`` are those of the items that are removed
    there; other layers may have further items with such an id."""
    of_scope = f"FROM items WHERE space IN ({placeholders(len(spaces))})"
    marked = [
        ((space, item_id), row, json.loads(attributes))
        for some in batched([json.dumps(item_id) for item_id in ids])
        for space, item_id, row, attributes in db.execute(
            f"SELECT space, id, row, attributes {of_scope} "
            f"AND superseded_by IN ({placeholders(len(some))})",
            (*spaces, *some),
        ).fetchall()
    ]
    if all(place in removed for place, _, _ in marked):
        return
    left: dict[str, set[tuple[int, str]]] = {}
    marks_of: defaultdict[str, dict[str, Any]] = defaultdict(dict)  # none of what is not stored
    for item_id in {_successor(marks) for _, _, marks in marked}:  # one at a time: by the index
        found = db.execute(f"SELECT space, attributes {of_scope} AND id = ?", (*spaces, item_id))
        stored = {(space, item_id): attributes for space, attributes in found}
        left[item_id] = stored.keys() - removed
        for place in stored.keys() & removed:
            marks_of[item_id] = json.loads(stored[place])
    gone = {item_id: marks_of[item_id] for item_id in left if not left[item_id]}
    for place, row, attributes in marked:
        successor = _successor(attributes)
        # An item with the id of its replacement in another layer has not replaced itself.
        if place not in removed and left[successor] <= {place}:
            kept = {name: value for name, value in attributes.items() if name not in _MARKS}
            kept |= _marks_beyond(gone, marks_of[successor])
            db.execute("UPDATE items SET attributes = ? WHERE row = ?", (json.dumps(kept), row))


def _marks_beyond(gone: Mapping[str, dict[str, Any]], attributes: dict[str, Any]) -> dict[str, Any]:
    """The marks to which some marks lead over items that are gone, whose attributes are given by
    id; empty if they lead nowhere."""
    passed: set[str] = set()
    while (successor := _successor(attributes)) in gone:
        if successor in passed:
            return {}
        passed.add(successor)
        attributes = gone[successor]
    return {name: attributes[name] for name in _MARKS if name in attributes}


def _successor(attributes: dict[str, Any]) -> str:
    return str(attributes.get(SUPERSEDED_BY, ""))
