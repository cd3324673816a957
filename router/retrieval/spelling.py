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

UNKNOWN_LENGTHS: Final = range(5, 22)
"""A shorter unknown word is more often another word than a misspelt one."""
KNOWN_LENGTHS: Final = range(4, 21)
SMALL_CATALOG: Final = 20
"""Up to this many skills, a word of one skill alone may be meant: most words are such words."""


class SpellingIndex:
    """The catalog's words by deletion neighbourhood. Immutable."""

    def __init__(
        self, documents: Sequence[SkillDocument], *, previous: SpellingIndex | None = None
    ) -> None:
        """Index documents; from ``previous`` on, only words of those that differ are looked at."""
        # A word of one skill alone may be a misspelling itself, unless there are few skills.
        self._least = 2 if len(documents) > SMALL_CATALOG else 1
        self._documents = tuple(documents)
        gone: Sequence[SkillDocument] = ()
        if previous is None or previous._least != self._least:
            self._frequency: Counter[str] = Counter()
            self._neighbours: dict[str, tuple[str, ...]] = {}
        else:
            self._frequency = previous._frequency.copy()
            self._neighbours = previous._neighbours.copy()
            before = {id(document) for document in previous._documents}
            after = {id(document) for document in documents}
            gone = [document for document in previous._documents if id(document) not in after]
            documents = [document for document in documents if id(document) not in before]
        new = Counter(word for document in documents for word in document.words)
        new.subtract(word for document in gone for word in document.words)
        for word, more in new.items():
            was, now = self._frequency[word], self._frequency[word] + more
            if now:
                self._frequency[word] = now
            else:
                self._frequency.pop(word, None)
            if (was >= self._least) != (now >= self._least) and _can_be_meant(word):
                self._file(word, now >= self._least)

    def _file(self, word: str, known: bool) -> None:
        for key in set(_deletions(word)):
            others = tuple(other for other in self._neighbours.get(key, ()) if other != word)
            if known or others:
                self._neighbours[key] = (*others, word) if known else others
            else:
                del self._neighbours[key]

    def correct(self, word: str) -> str | None:
        """The most frequent known word one edit away that begins alike; None when ``word`` is
        known, short, very long, not made of letters, or like no other."""
        if len(word) not in UNKNOWN_LENGTHS or word in self._frequency or not word.isalpha():
            return None
        candidates = {
            known
            for key in _deletions(word)
            for known in self._neighbours.get(key, ())
            if known[0] == word[0] and OSA.distance(known, word, score_cutoff=1) <= 1
        }
        # The name settles a tie, so that the answer does not depend on the order of a set.
        return max(candidates, key=lambda known: (self._frequency[known], known), default=None)


def _can_be_meant(word: str) -> bool:
    return len(word) in KNOWN_LENGTHS and word.isalpha()


def _deletions(word: str) -> Iterator[str]:
    """The word, and the word without each letter but the first, which typists rarely miss."""
    yield word
    for position in range(1, len(word)):
        yield word[:position] + word[position + 1 :]
