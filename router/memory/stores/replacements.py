"""Marks of replaced items: the attribute ``superseded_by`` names the item that has replaced one.

A mark is valid only as long as there is the item that it names. If that is deleted or expires, the
items that it had replaced are valid again, or they are replaced by what had replaced it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from router.memory.stores.database import Connection

SUPERSEDED_BY: Final = "superseded_by"
"""Attribute: the id of the item that has replaced this one. That item has the same scope."""
SUPERSEDED_AT: Final = "superseded_at"
"""Attribute: when it was replaced, in ISO 8601."""
_MARKS: Final = (SUPERSEDED_BY, SUPERSEDED_AT)


def correct_marks(db: Connection, removed: Collection[tuple[int, str]]) -> None:
    """Correct the marks that name some items, given by space and id, that are about to be
    removed."""
    scopes = dict(db.execute("SELECT id, scope FROM spaces").fetchall())
    for scope in {scopes[space] for space, _ in removed}:
        marked = [
            ((space, item_id), row, json.loads(attributes))
            for space, item_id, row, attributes in db.execute(
                f"SELECT items.space, items.id, items.row, items.attributes {_IN_SCOPE} "
                "AND items.attributes LIKE ?",
                (scope, f'%"{SUPERSEDED_BY}"%'),
            ).fetchall()
        ]
        gone: dict[str, dict[str, Any]] = {}
        for named in {_successor(attributes) for _, _, attributes in marked}:
            found = db.execute(
                f"SELECT items.space, items.id {_IN_SCOPE} AND items.id = ?",
                (scope, named),
            ).fetchall()
            if found and all((space, item_id) in removed for space, item_id in found):
                gone[named] = {}
        gone |= {place[1]: marks for place, _, marks in marked if place[1] in gone}
        for place, row, attributes in marked:
            if place not in removed and _successor(attributes) in gone:
                kept = {name: value for name, value in attributes.items() if name not in _MARKS}
                kept |= _marks_beyond(gone, attributes)
                db.execute("UPDATE items SET attributes = ? WHERE row = ?", (json.dumps(kept), row))


_IN_SCOPE: Final = "FROM items JOIN spaces ON spaces.id = items.space WHERE spaces.scope = ?"


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
