"""Who did what, and when; and the rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from router.memory.layers.base import StoredLayer, reordered
from router.memory.model import LayerQuery, MemoryItem, Scope
from router.memory.query.listing import asks_for_kind, names_no_subject
from router.memory.stores.fusion import at_place
from router.memory.stores.spaces import Filter
from router.text import stems

NAMED: Final = ("actor", "action", "subject")


class GovernanceLayer(StoredLayer):
    """Records and rules by who, what and when.

    Attributes of its items: ``actor``, ``action``, ``subject``. Each one that the query names
    counts like a first place in a further ranking. A query of a period alone lists what was
    recorded then; otherwise a period only prefers it: a rule about Fridays was not made on one.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        where = Filter(period=query.period)
        if names_no_subject(query) or asks_for_kind(query) == self.spec.name:
            return self._store.newest(self.spec.name, scope=scope, k=k, where=where)
        found = self._pool(query, scope=scope, k=k, prefer=where)
        asked = frozenset(stems(query.text))
        return reordered(found, lambda score, item: score + at_place(0) * _named(item, asked), k)


def _named(item: MemoryItem, asked: frozenset[str]) -> int:
    """How many of the attributes the query names in full."""
    values = [item.attributes.get(name) for name in NAMED]
    named = [stems(value) for value in values if isinstance(value, str)]
    return sum(1 for words in named if words and asked.issuperset(words))
