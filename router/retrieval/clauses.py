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
    parts: list[list[str]] = []
    count = 0  # of the content words in the last part
    for part in _BREAK.split(request):
        if not part.strip():
            continue
        more = len(words(part))
        if parts and (more < _MIN_WORDS or count < _MIN_WORDS):
            parts[-1].append(part)
            count += more
        else:
            parts.append([part])
            count = more
    return [" ".join(part) for part in parts] or [request]
