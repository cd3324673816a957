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


def terms_of(text: str) -> set[str]:
    """The stems of a text's content words."""
    return set(words_of(text).terms)


def say_the_same(ours: set[str], theirs: set[str]) -> bool:
    """Whether two texts have nearly all their content words in common; see ``terms_of``."""
    return len(ours & theirs) >= SAME_WORDS * len(ours | theirs)
