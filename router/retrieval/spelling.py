"""Spelling: an unknown word of a request, read as the word of the catalog that it misspells.

One edit behind the first letter leaves the first two letters of a word as they are, or the last
two. So the catalog's words are filed under both, and an unknown word is compared with the few that
share either of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from copy import copy
from itertools import chain
from typing import Final, TypeAlias

from rapidfuzz import process
from rapidfuzz.distance import OSA

from router.retrieval.documents import Edit

UNKNOWN_LENGTHS: Final = range(5, 22)
"""A shorter unknown word is more often another word than a misspelt one."""
KNOWN_LENGTHS: Final = range(4, 21)
SMALL_CATALOG: Final = 20
"""Up to this many skills, a word of one skill alone may be meant: most words are such words."""

_Place: TypeAlias = tuple[int, str]
"""Under what a word is filed: a length, and letters of its beginning and end."""


class SpellingIndex:
    """The catalog's words, as misspelt ones are looked for.

    The words are filed when the first unknown word is looked up. Nothing else ever changes.
    """

    def __init__(self) -> None:
        """The index of no words."""
        self._least = 1
        self._frequency: Counter[str] = Counter()
        self._filed: dict[_Place, tuple[str, ...]] | None = None

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
            after._filed = None
        elif self._filed is not None:
            touched = frozenset(gone).union(*(document.words for document in edit.added))
            changed = [word for word in touched if after._knows(word) != self._knows(word)]
            after._filed = _filed(after, changed, self._filed)
        return after

    def correct(self, word: str) -> str | None:
        """The most frequent known word one edit away that begins alike; None when ``word`` is
        known, short, very long, not made of letters, or like no other."""
        if len(word) not in UNKNOWN_LENGTHS or word in self._frequency or not word.isalpha():
            return None
        if self._filed is None:
            self._filed = _filed(self, filter(self._knows, self._frequency), {})
        near = [
            known
            for length in (len(word) - 1, len(word), len(word) + 1)
            for place in _places(word, length)
            for known in self._filed.get(place, ())
        ]
        found = process.extract(word, near, scorer=OSA.distance, score_cutoff=1, limit=None)
        candidates = [known for known, _, _ in found]
        # The name settles a tie, so that the answer does not depend on an order.
        return max(candidates, key=lambda known: (self._frequency[known], known), default=None)

    def _knows(self, word: str) -> bool:
        """Whether the word is frequent enough to be meant by a misspelt one."""
        return self._frequency.get(word, 0) >= self._least


def _filed(
    index: SpellingIndex, words: Iterable[str], before: Mapping[_Place, tuple[str, ...]]
) -> dict[_Place, tuple[str, ...]]:
    """The words that may be meant, by place: those before, with those of ``words`` that the index
    knows, and without the others of them."""
    known: defaultdict[_Place, list[str]] = defaultdict(list)
    gone: defaultdict[_Place, list[str]] = defaultdict(list)
    for word in words:
        if len(word) in KNOWN_LENGTHS and word.isalpha():
            of = known if index._knows(word) else gone
            for place in _places(word, len(word)):
                of[place].append(word)
    filed = dict(before)
    for place in known.keys() | gone.keys():
        stay = [word for word in before.get(place, ()) if word not in gone[place]]
        filed[place] = (*stay, *known[place])
        if not filed[place]:
            del filed[place]
    return filed


def _places(word: str, length: int) -> tuple[_Place, _Place]:
    """Where a word of some length is filed that begins, or ends, as this one does."""
    return (length, word[:2]), (length, word[0] + word[-2:])
