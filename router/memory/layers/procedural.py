"""How things are done, and how often that worked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from router.memory.layers.base import StoredLayer, reordered
from router.memory.model import LayerQuery, MemoryItem, Scope
from router.numeric import wilson

PROVEN: Final = 0.1
"""How much more a procedure counts that surely works than one that surely does not."""
MOST: Final = 1_000_000_000
"""Outcomes of a kind that count; an attribute may be an integer that no float can hold."""


class ProceduralLayer(StoredLayer):
    """Procedures by words and meaning; of near-equals, the one that has proved itself.

    Attributes of its items: ``successes`` and ``failures``, how often it
    worked and how often not. An answer carries ``success_rate`` as well, once there is an outcome.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        found = self._candidates(query, scope=scope, k=k)
        best = reordered(found, lambda score, item: score * (1 + PROVEN * proven(item)), k)
        return [_with_rate(item) for item in best]


def outcomes(item: MemoryItem) -> tuple[int, int]:
    """How often it worked, and how often it did not."""
    counts = (item.attributes.get(name) for name in ("successes", "failures"))
    successes, failures = (min(max(n, 0), MOST) if isinstance(n, int) else 0 for n in counts)
    return successes, failures


def proven(item: MemoryItem) -> float:
    """The lower bound of its success rate at 95%, in [0, 1); 0 without outcomes."""
    successes, failures = outcomes(item)
    return wilson(successes, successes + failures)[0]


def _with_rate(item: MemoryItem) -> MemoryItem:
    successes, failures = outcomes(item)
    if successes + failures == 0:
        return item
    rate = successes / (successes + failures)
    return replace(item, attributes={**item.attributes, "success_rate": rate})
