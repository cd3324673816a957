"""Merges the items that the files and the service found into one list.

The files are canonical: if both have the same content, the file's item is given, and names both
sources. The items are always chosen from both lists in turn, by rank. If one list came after the
other, the first would fill the answer and the second would be of no use. Scores are not compared:
BM25 has no upper bound, and the service has a scale of its own.
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
    """Items are chosen from both lists in turn; in the result those of the files come first."""
    UNION = "union"
    """Both lists in turn: the first of the files, the first of the service, the second of the
    files."""
    WEIGHTED = "weighted"
    """By weight divided by rank, so that each source has a share of the answer as large as its
    weight."""


def merge(
    files: Sequence[MemoryItem],
    service: Sequence[MemoryItem],
    *,
    strategy: MergeStrategy,
    limit: int,
) -> list[MemoryItem]:
    """At most ``limit`` (at least 1) items of both lists, best first, each content once. With
    ``WEIGHTED`` scores are of kind ``FUSED`` in (0, 1]; otherwise each item keeps its score."""
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
