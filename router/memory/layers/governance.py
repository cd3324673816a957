"""Who did what, and when; and the rules."""

from __future__ import annotations

from collections.abc import Sequence

from router.memory.layers.base import StoredLayer
from router.memory.model import LayerQuery, MemoryItem, Scope
from router.memory.query.listing import asks_for_kind, names_no_subject
from router.memory.stores.spaces import Filter


class GovernanceLayer(StoredLayer):
    """Records and rules. The words of the attributes ``actor``, ``action`` and ``subject`` are
    found as those of the content are.

    A query of a period alone lists what was recorded then; otherwise a period only prefers it: a
    rule about Fridays was not made on one.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        where = Filter(period=query.period)
        if names_no_subject(query) or asks_for_kind(query) == self.spec.name:
            return self._store.newest(self.spec.name, scope=scope, k=k, where=where)
        return self._candidates(query, scope=scope, k=k, prefer=where)[:k]
