"""Spelling: an unknown word of a request, read as the word of the catalog that it misspells.

Deletion neighbourhoods (the idea of SymSpell): two words within one edit share a string that is
either of them with at most one letter removed, so a look-up replaces a scan of the vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rapidfuzz.distance import OSA

from router.retrieval.documents import SkillDocument
from router.retrieval.latent import SMALL_CATALOG

MIN_UNKNOWN_LENGTH: Final = 5
"""A shorter unknown word is more often another word than a misspelt one."""
KNOWN_LENGTHS: Final = range(4, 21)


class SpellingIndex:
    """The catalog's words by deletion neighbourhood. Immutable."""

    def __init__(self, documents: Sequence[SkillDocument]) -> None:
        self._frequency = Counter(word for document in documents for word in document.words)
        # A word of one skill alone may be a misspelling itself, unless there are few skills.
        least = 2 if len(documents) > SMALL_CATALOG else 1
        self._neighbours: dict[str, list[str]] = {}
        for word, count in self._frequency.items():
            if count >= least and len(word) in KNOWN_LENGTHS and word.isalpha():
                for key in _deletions(word):
                    self._neighbours.setdefault(key, []).append(word)

    def correct(self, word: str) -> str | None:
        """The most frequent known word one edit away that begins alike; None when ``word`` is
        known, short, not made of letters, or like no other."""
        if len(word) < MIN_UNKNOWN_LENGTH or word in self._frequency or not word.isalpha():
            return None
        candidates = {
            known
            for key in _deletions(word)
            for known in self._neighbours.get(key, ())
            if known[0] == word[0] and OSA.distance(known, word, score_cutoff=1) <= 1
        }
        # The name settles a tie, so that the answer does not depend on the order of a set.
        return max(candidates, key=lambda known: (self._frequency[known], known), default=None)


def _deletions(word: str) -> Iterator[str]:
    """The word, and the word without each letter but the first, which typists rarely miss."""
    yield word
    for position in range(1, len(word)):
        yield word[:position] + word[position + 1 :]
