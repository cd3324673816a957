"""The index of the fuzzy cache: which entries may pass the gate for a request?

Comparing with every entry would be slow in a large cache, and needless: entries that can pass the
gate have the same items as the request, but for typos. So entries are filed under their items, and
a word that the cache has never seen is looked up among those it has seen by leaving out one letter
on both sides. A word that it has seen is never taken for a typo.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from router.stages.typos import is_typo, may_be_misspelt
from router.stages.validation import KeptAnswer
from router.stages.wording import Signature

_MAX_RESPELLINGS: Final = 16
_RECENT: Final = 8
"""How many of its latest entries each stem remembers, to explain a miss."""


@dataclass(slots=True, eq=False)
class Entry:
    """One stored answer."""

    row: int | None
    """In the file; None while the entry is in memory only."""
    text: str
    context: str
    core: str
    learned: float
    kept: KeptAnswer | None
    """None: in the file alone, read when it is needed."""
    stored: bool = True
    """False once the entry was removed; what explains a miss may still know it."""


class Index:
    """Finds the entries that may pass the gate for a request.

    The search is complete up to ``_MAX_RESPELLINGS`` readings of a request's typos.
    """

    def __init__(self) -> None:
        self._by_items: dict[tuple[str, bool, tuple[str, ...]], list[Entry]] = {}
        self._stem_uses: dict[str, int] = {}
        self._recent: dict[str, list[Entry]] = {}
        self._word_uses: dict[tuple[str, str], int] = {}
        self._shortened: dict[str, list[tuple[str, str]]] = {}
        """Long words with their stems, under each form that lacks one letter, and whole."""

    def add(self, entry: Entry, signature: Signature) -> None:
        key = (entry.context, signature.asks, signature.stems)
        self._by_items.setdefault(key, []).append(entry)
        may_be_typos = may_be_misspelt(signature.words)
        for word, stem in zip(signature.words, signature.stems, strict=True):
            self._stem_uses[stem] = self._stem_uses.get(stem, 0) + 1
            recent = self._recent.setdefault(stem, [])
            recent.append(entry)
            if len(recent) > _RECENT:
                del recent[0]
            if word in may_be_typos:
                pair = (word, stem)
                uses = self._word_uses[pair] = self._word_uses.get(pair, 0) + 1
                if uses == 1:
                    for form in _shortened(word):
                        self._shortened.setdefault(form, []).append(pair)

    def remove(self, entry: Entry, signature: Signature) -> None:
        entry.stored = False
        key = (entry.context, signature.asks, signature.stems)
        same = self._by_items[key]
        same.remove(entry)
        if not same:
            del self._by_items[key]
        may_be_typos = may_be_misspelt(signature.words)
        for word, stem in zip(signature.words, signature.stems, strict=True):
            self._stem_uses[stem] -= 1
            if not self._stem_uses[stem]:
                del self._stem_uses[stem], self._recent[stem]
            if word in may_be_typos:
                pair = (word, stem)
                self._word_uses[pair] -= 1
                if not self._word_uses[pair]:
                    del self._word_uses[pair]
                    for form in _shortened(word):
                        self._shortened[form].remove(pair)
                        if not self._shortened[form]:
                            del self._shortened[form]

    def matching(self, context: str, signature: Signature) -> Iterator[Entry]:
        """Entries with the same items but for typos, latest first among equal ones."""
        for stems in self._respellings(signature):
            yield from reversed(self._by_items.get((context, signature.asks, stems), ()))

    def near(self, context: str, signature: Signature) -> list[Entry]:
        """A few late entries that share the rarest words, to explain a miss with."""
        known = {stem for stem in signature.stems if stem in self._stem_uses}
        rarest = sorted(known, key=lambda stem: (self._stem_uses[stem], stem))[:2]
        entries = dict.fromkeys(entry for stem in rarest for entry in self._recent[stem])
        return [entry for entry in entries if entry.stored and entry.context == context]

    def _respellings(self, signature: Signature) -> Iterator[tuple[str, ...]]:
        """The items with each unseen word replaced by the seen words it may be a typo of."""
        choices: list[tuple[str, ...]] = []
        for word, stem in zip(signature.words, signature.stems, strict=True):
            if stem in self._stem_uses:
                choices.append((stem,))
            elif corrections := self._corrections(word):
                choices.append(corrections)
            else:
                return iter(())
        return itertools.islice(itertools.product(*choices), _MAX_RESPELLINGS)

    def _corrections(self, word: str) -> tuple[str, ...]:
        if not may_be_misspelt([word]):
            return ()
        seen = {pair for form in _shortened(word) for pair in self._shortened.get(form, ())}
        return tuple(sorted({stem for other, stem in seen if is_typo(word, other)}))


def _shortened(word: str) -> set[str]:
    """The word and all its forms without one letter. Words one edit apart share one of them."""
    return {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}
