"""One ranking out of two: what the words find and what the meaning finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEPTH: Final = 60
"""How slowly a place loses value: Cormack, Clarke and Büttcher, "Reciprocal rank fusion outperforms
Condorcet and individual rank learning methods" (SIGIR 2009)."""
LEXICAL_WEIGHT: Final = 0.6
SEMANTIC_WEIGHT: Final = 0.4


def fuse(lexical: Mapping[int, float], semantic: Mapping[int, float]) -> dict[int, float]:
    """Rows with one score each, best first, by weighted reciprocal rank; scores are in (0, 1/61].

    Args:
        lexical: row to BM25.
        semantic: row to cosine similarity.
    """
    fused: dict[int, float] = {}
    for weight, scores in ((LEXICAL_WEIGHT, lexical), (SEMANTIC_WEIGHT, semantic)):
        for place, row in enumerate(best_first(scores)):
            fused[row] = fused.get(row, 0.0) + weight * at_place(place)
    return best_first(fused)


def at_place(place: int) -> float:
    """What a place in a ranking is worth; the first is 0."""
    return 1.0 / (DEPTH + 1 + place)


def best_first(scores: Mapping[int, float]) -> dict[int, float]:
    """The same, ordered; of equals the newer row comes first."""
    return dict(sorted(scores.items(), key=lambda entry: (entry[1], entry[0]), reverse=True))
