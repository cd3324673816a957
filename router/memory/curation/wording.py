"""How the wording of two texts compares, and how long a model may take to word one."""

from __future__ import annotations

import re
from typing import Final

from router.memory.texts.words import words_of

CALL_SECONDS: Final = 60.0
SAME_WORDS: Final = 0.8
"""Share of all their content words that two texts that say the same have in common."""
_NUMBER: Final = re.compile(r"\d+")


def numbers_in(text: str) -> set[str]:
    """The numbers of a text."""
    return set(_NUMBER.findall(text))


def shared_words(one: str, other: str) -> float:
    """The share of all their content words, by stems, that two texts have in common; in [0, 1]."""
    ours, theirs = set(words_of(one).terms), set(words_of(other).terms)
    return len(ours & theirs) / max(len(ours | theirs), 1)
