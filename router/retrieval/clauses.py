"""Splitting a request into the parts that each ask for something."""

from __future__ import annotations

import re
from typing import Final

from router.retrieval.documents import words

_BREAK: Final = re.compile(
    r"(?<=[.!?;:])\s+|,\s+(?:and|then|so|but)\s+"
    r"|(?<!\s)\s+(?:and then|and|then|plus|afterwards|also|-)\s+|,\s+|\n+"
)
_MIN_WORDS: Final = 2
"""A part with fewer content words says nothing by itself and stays with its neighbour."""


def clauses(request: str) -> list[str]:
    """The clauses of a request in order, at least one; each but a lone one has two content words
    or more."""
    parts: list[str] = []
    for part in _BREAK.split(request):
        if not part.strip():
            continue
        if parts and (len(words(part)) < _MIN_WORDS or len(words(parts[-1])) < _MIN_WORDS):
            parts[-1] = f"{parts[-1]} {part}"
        else:
            parts.append(part)
    return parts or [request]
