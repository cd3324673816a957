"""One list out of what the files and the service found.

The files are canonical. Where both hold the same content, the file's item stands and names both
sources. What is taken is always decided over both lists in turn, by rank, before the cut: were the
lists put one after the other, the first would fill the answer and the second be asked for nothing.
Scores are not compared: BM25 has no bound, and the service's scale is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import zip_longest
from typing import Final

from router.memory.model import MemoryItem, ScoreKind
from router.memory.texts.contents import united, without_copies

FILES_WEIGHT: Final = 0.6
SERVICE_WEIGHT: Final = 0.4


class MergeStrategy(StrEnum):
    """How two ranked lists become one."""

    PRIMARY_FIRST = "primary_first"
    """Both are taken in turn; then those of the files stand first."""
    UNION = "union"
    """Both in turn: the files' first, the service's first, the files' second ..."""
    WEIGHTED = "weighted"
    """By weight divided by rank, so that each source's share of any answer is as its weight."""


def merge(
    files: Sequence[MemoryItem],
    service: Sequence[MemoryItem],
    *,
    strategy: MergeStrategy,
    limit: int,
) -> list[MemoryItem]:
    """At most ``limit`` items, at least 1, of what both gave, best first; none twice by content.
    ``WEIGHTED`` gives scores of kind ``FUSED`` in (0, 1]; the others leave each item the score of
    its source."""
    ours, theirs = without_copies(files), without_copies(service)
    items = theirs | ours
    items |= {key: united(ours[key], theirs[key]) for key in ours.keys() & theirs.keys()}
    if strategy is MergeStrategy.WEIGHTED:
        scores: dict[str, float] = {}
        for weight, source in ((FILES_WEIGHT, ours), (SERVICE_WEIGHT, theirs)):
            for rank, key in enumerate(source, start=1):
                scores[key] = scores.get(key, 0.0) + weight / rank
        # Sorting is stable, and the files' come first: they win a tie, whatever the rounding.
        best = sorted(scores, key=lambda key: round(scores[key], 12), reverse=True)[:limit]
        return [items[key].scored(min(scores[key], 1.0), ScoreKind.FUSED) for key in best]
    in_turn = [key for pair in zip_longest(ours, theirs) for key in pair if key is not None]
    taken = list(dict.fromkeys(in_turn))[:limit]
    if strategy is MergeStrategy.PRIMARY_FIRST:
        taken.sort(key=lambda key: key not in ours)
    return [items[key] for key in taken]
