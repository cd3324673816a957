"""Splitting a request into the parts that each ask for something."""

from __future__ import annotations

import re
from typing import Final

from router.text import words_of_each

_BREAK: Final = re.compile(
    r"(?<=[.!?;:])\s+|,\s+(?:and|then|so|but)\s+"
    r"|(?<!\s)\s+(?:and then|and|then|plus|afterwards|also|-)\s+|,\s+|\n+"
)
MAX_READ_CHARACTERS: Final = 4_000
"""What retrieval reads of a request, so that none keeps the event loop for long. Whoever pastes a
log says before or after it what to do: of a longer request the beginning and the end are read."""
_END_CHARACTERS: Final = 1_000
_MIN_WORDS: Final = 2
"""A part with fewer content words says nothing by itself and stays with its neighbour."""


def readable(request: str) -> str:
    """What retrieval reads of a request; see ``MAX_READ_CHARACTERS``."""
    if len(request) <= MAX_READ_CHARACTERS:
        return request
    return f"{request[: MAX_READ_CHARACTERS - _END_CHARACTERS]}\n{request[-_END_CHARACTERS:]}"


def clauses(request: str) -> list[str]:
    """The clauses of a request in order, at least one; each but a lone one has two content words
    or more."""
    found = [part for part in _BREAK.split(request) if part.strip()]
    if len(found) < 2:
        return found or [request]
    parts: list[list[str]] = []
    count = 0  # of the content words in the last part
    for part, (_, words) in zip(found, words_of_each(found), strict=True):
        more = len(words)
        if parts and (more < _MIN_WORDS or count < _MIN_WORDS):
            parts[-1].append(part)
            count += more
        else:
            parts.append([part])
            count = more
    return [" ".join(part) for part in parts]
