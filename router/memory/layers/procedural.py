"""How things are done, and how often that worked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from router.memory.layers.base import StoredLayer, fused_score, reordered
from router.memory.model import LayerQuery, MemoryItem, Scope

PROVEN: Final = 0.1
"""How much more a procedure counts that surely works than one that surely does not."""


class ProceduralLayer(StoredLayer):
    """Procedures by words and meaning; of near-equals, the one that has proved itself.

    Attributes of its items: ``successes`` and ``failures``, how often it
    worked and how often not. An answer carries ``success_rate`` as well, once there is an outcome.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        found = self._pool(query, scope=scope, k=k)
        best = reordered(
            found, lambda item: fused_score(item) * (1 + PROVEN * wilson(*outcomes(item))), k
        )
        return [_with_rate(item) for item in best]


def outcomes(item: MemoryItem) -> tuple[int, int]:
    """How often it worked, and how often it did not."""
    counts = (item.attributes.get(name) for name in ("successes", "failures"))
    successes, failures = (max(n, 0) if isinstance(n, int) else 0 for n in counts)
    return successes, failures


def wilson(successes: int, failures: int) -> float:
    """The lower bound of a success rate at 95%, in [0, 1); 0 without outcomes.

    Wilson, "Probable inference, the law of succession, and statistical inference" (1927).
    """
    n = successes + failures
    if n == 0:
        return 0.0
    z = 1.96
    rate = successes / n
    centre = rate + z * z / (2 * n)
    spread = z * math.sqrt((rate * (1 - rate) + z * z / (4 * n)) / n)
    return max((centre - spread) / (1 + z * z / n), 0.0)


def _with_rate(item: MemoryItem) -> MemoryItem:
    successes, failures = outcomes(item)
    if successes + failures == 0:
        return item
    rate = successes / (successes + failures)
    return replace(item, attributes={**item.attributes, "success_rate": rate})
