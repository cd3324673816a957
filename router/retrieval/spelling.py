"""Spelling: an unknown word of a request, read as the word of the catalog that it misspells.

Deletion neighbourhoods (the idea of SymSpell): two words within one edit share a string that is
either of them with at most one letter removed, so a look-up replaces a scan of the vocabulary.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import copy
from itertools import chain
from typing import Final

from rapidfuzz.distance import OSA

from router.retrieval.documents import Edit

UNKNOWN_LENGTHS: Final = range(5, 22)
"""A shorter unknown word is more often another word than a misspelt one."""
KNOWN_LENGTHS: Final = range(4, 21)
SMALL_CATALOG: Final = 20
"""Up to this many skills, a word of one skill alone may be meant: most words are such words."""


Neighbours = dict[str, tuple[str, ...]]
"""The words that share each string, of words with one first letter."""


class SpellingIndex:
    """The catalog's words by deletion neighbourhood.

    The neighbourhoods of the words with one first letter are made when a word with that letter is
    first looked up. Nothing else ever changes.
    """

    def __init__(self) -> None:
        """The index of no words."""
        self._least = 1
        self._frequency: Counter[str] = Counter()
        self._neighbours: dict[str, Neighbours] = {}

    def edited(self, edit: Edit) -> SpellingIndex:
        """The index after a step; words of skills that stay are not looked at."""
        after = copy(self)
        # A word of one skill alone may be a misspelling itself, unless there are few skills.
        after._least = 2 if len(edit.kept) > SMALL_CATALOG else 1
        after._frequency = self._frequency.copy()
        after._frequency.update(chain.from_iterable(document.words for document in edit.added))
        gone = Counter(chain.from_iterable(document.words for document in edit.removed))
        after._frequency.subtract(gone)
        for word in gone:
            if not after._frequency[word]:
                del after._frequency[word]
        if after._least != self._least:
            after._neighbours = {}
            return after
        after._neighbours = self._neighbours.copy()
        copied: set[str] = set()
        for word in frozenset(gone).union(*(document.words for document in edit.added)):
            first = word[0]
            if first not in after._neighbours or not _can_be_meant(word):
                continue
            known = after._frequency[word] >= self._least
            if known != (self._frequency[word] >= self._least):
                if first not in copied:
                    after._neighbours[first] = after._neighbours[first].copy()
                    copied.add(first)
                _file(after._neighbours[first], word, known=known)
        return after

    def correct(self, word: str) -> str | None:
        """The most frequent known word one edit away that begins alike; None when ``word`` is
        known, short, very long, not made of letters, or like no other."""
        if len(word) not in UNKNOWN_LENGTHS or word in self._frequency or not word.isalpha():
            return None
        neighbours = self._beginning_with(word[0])
        candidates = {
            known
            for key in _deletions(word)
            for known in neighbours.get(key, ())
            if OSA.distance(known, word, score_cutoff=1) <= 1
        }
        # The name settles a tie, so that the answer does not depend on the order of a set.
        return max(candidates, key=lambda known: (self._frequency[known], known), default=None)

    def _beginning_with(self, letter: str) -> Neighbours:
        found = self._neighbours.get(letter)
        if found is None:
            found = {}
            for word, frequency in self._frequency.items():
                if word[0] == letter and frequency >= self._least and _can_be_meant(word):
                    _file(found, word, known=True)
            self._neighbours[letter] = found
        return found


def _file(neighbours: Neighbours, word: str, *, known: bool) -> None:
    for key in set(_deletions(word)):
        others = tuple(other for other in neighbours.get(key, ()) if other != word)
        if known or others:
            neighbours[key] = (*others, word) if known else others
        else:
            del neighbours[key]


def _can_be_meant(word: str) -> bool:
    return len(word) in KNOWN_LENGTHS and word.isalpha()


def _deletions(word: str) -> Iterator[str]:
    """The word, and the word without each letter but the first, which typists rarely miss."""
    yield word
    for position in range(1, len(word)):
        yield word[:position] + word[position + 1 :]
