"""Items of one content, from several layers, files and services, as one item."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from router.memory.model import MemoryItem
from router.memory.texts.contents import content_key


def without_copies(items: Iterable[MemoryItem]) -> dict[str, MemoryItem]:
    """The items in order, by content key: of each content the first, with the provenance of all.

    Provenance of an item that has none is its layer and id.
    """
    found: dict[str, MemoryItem] = {}
    for item in items:
        key = content_key(item.content)
        found[key] = united(found[key], item) if key in found else item
    return found


def united(item: MemoryItem, copy: MemoryItem) -> MemoryItem:
    """The item, with the provenance of its copy added to its own."""
    return replace(item, provenance=tuple(dict.fromkeys((*_origins(item), *_origins(copy)))))


def _origins(item: MemoryItem) -> tuple[str, ...]:
    return item.provenance or (f"{item.layer}:{item.id}",)
