"""The index of the fuzzy cache: finds the entries that may pass the content gate for a request.

To compare with every entry would be slow in a large cache. It is not needed, because an entry that
can pass the gate has the same stems as the request, except for typos. So entries are indexed by
their stems. A word that the cache has never seen may be a typo of one that it has seen: both words
then share a form with one letter deleted, by which it is looked up. A word that the cache has seen
is never taken for a typo.
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
"""The number of latest entries that are remembered for each stem, to explain a miss."""


@dataclass(slots=True, eq=False)
class Entry:
    """One stored answer."""

    row: int | None
    """Its row in the file; None while the entry is in memory only."""
    text: str
    context: str
    core: str
    learned: float
    kept: KeptAnswer | None
    """The answer; None while it is only in the file. It is read when it is needed."""
    stored: bool = True
    """False once the entry was removed. The lists of latest entries may still hold it."""


class Index:
    """Finds the entries that may pass the gate for a request.

    Where typos allow more than ``_MAX_RESPELLINGS`` readings of a request, the rest is not
    searched.
    """

    def __init__(self) -> None:
        self._by_stems: dict[tuple[str, bool, tuple[str, ...]], list[Entry]] = {}
        self._stem_uses: dict[str, int] = {}
        self._recent: dict[str, list[Entry]] = {}
        self._word_uses: dict[tuple[str, str], int] = {}
        self._shortened: dict[str, list[tuple[str, str]]] = {}
        """Long words with their stems, by the word itself and each form with one letter deleted."""

    def add(self, entry: Entry, signature: Signature) -> None:
        key = (entry.context, signature.is_question, signature.stems)
        self._by_stems.setdefault(key, []).append(entry)
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
        key = (entry.context, signature.is_question, signature.stems)
        same = self._by_stems[key]
        same.remove(entry)
        if not same:
            del self._by_stems[key]
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
        """The entries with the same stems, except for typos, latest first among equal ones."""
        for stems in self._respellings(signature):
            yield from reversed(self._by_stems.get((context, signature.is_question, stems), ()))

    def near(self, context: str, signature: Signature) -> list[Entry]:
        """A few of the latest entries that share the rarest words, to explain a miss."""
        known = {stem for stem in signature.stems if stem in self._stem_uses}
        rarest = sorted(known, key=lambda stem: (self._stem_uses[stem], stem))[:2]
        entries = dict.fromkeys(entry for stem in rarest for entry in self._recent[stem])
        return [entry for entry in entries if entry.stored and entry.context == context]

    def _respellings(self, signature: Signature) -> Iterator[tuple[str, ...]]:
        """The stems, with each unseen word replaced by the seen words that it may be a typo of."""
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
