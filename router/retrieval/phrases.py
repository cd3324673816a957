"""How the examples of the skills are worded.

People who want the same thing use the same turns of phrase: "how far is it to", "cancel my".
Neither the encoder's vector nor single words without function words hold them. So three profiles of
a skill's examples are compared with those of a request: word stems, pairs of neighbouring stems,
and four-letter sequences, which survive inflection and typos. In each profile a term t of the
request that c examples of the skill have counts sqrt(c) IDF(t)^2, and the profiles are compared by
cosine. The outcome is the mean of the three cosines.

Terms are known by a hash of 14 bits in each profile. Two terms of one hash are one term: rare, and
no worse than a word with two meanings.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.postings import Postings
from router.text import MAX_WORD_LETTERS, memoised, stem, tokens

LETTERS: Final = 4
PROFILES: Final = 3
HASHES: Final = 1 << 14
"""Different terms of one profile."""
MAX_WORDS: Final = 500
"""Read of a text, so that a long request costs no more than a few milliseconds."""
MAX_POSTINGS: Final = 100_000
"""Looked at for one request. Where there are more, in catalogs of thousands, those of the commonest
terms are left out, which tell hardly any skill from another."""
_ENTRY: Final = np.dtype("<u2")


@memoised(short=16_384, longest=MAX_WORD_LETTERS)
def code(term: str) -> int:
    """The hash of a term, in [0, 2^32)."""
    return zlib.crc32(term.encode("utf-8", "replace"))


def pairs(roots: Sequence[str]) -> set[int]:
    """The hashes of the pairs of neighbouring stems, with both ends of the text marked."""
    neighbours = pairwise(("", *roots, ""))
    return {zlib.crc32(" ".join(pair).encode("utf-8", "replace")) for pair in neighbours}


def letters(words: Iterable[str]) -> set[int]:
    """The hashes of the letter sequences of words; a short word is one sequence."""
    return set(chain.from_iterable(map(_remembered_letters, words)))


def _letters(word: str) -> tuple[int, ...]:
    marked = f"^{word}$"
    parts = (marked[i : i + LETTERS] for i in range(max(len(marked) - LETTERS + 1, 1)))
    return tuple(zlib.crc32(part.encode("utf-8", "replace")) for part in parts)


_remembered_letters: Final = memoised(short=16_384, longest=MAX_WORD_LETTERS)(_letters)
"""For what learns; profiles remember their words' terms, which are made of the same letters."""


@memoised(short=16_384, longest=MAX_WORD_LETTERS)
def _of_word(word: str) -> tuple[str, tuple[int, ...]]:
    """The stem of a word, and the word's terms in the first and the last profile."""
    root = stem(word)
    return root, (
        code(root) % HASHES,
        *(2 * HASHES + term % HASHES for term in _letters(word)),
    )


def _terms(spoken: Sequence[str]) -> list[int]:
    """The terms of a text's words in all profiles, each with a number of its own. Some come more
    than once."""
    if not spoken:
        return []
    roots, of_words = zip(*map(_of_word, spoken[:MAX_WORDS]), strict=True)
    return [*(HASHES + term % HASHES for term in pairs(roots)), *chain.from_iterable(of_words)]


def profile_of(examples: Sequence[str]) -> bytes:
    """The terms of the examples of one skill and how many of them have each, to be kept."""
    found = Counter(chain.from_iterable(set(_terms(tokens(example))) for example in examples))
    entries = np.array(sorted(found.items()), dtype=np.int64).reshape(-1, 2)
    return np.minimum(entries, np.iinfo(_ENTRY).max).astype(_ENTRY).tobytes()


def is_profile(kept: bytes) -> bool:
    """Whether these bytes have the form of what ``profile_of`` gives."""
    if len(kept) % (2 * _ENTRY.itemsize):
        return False
    terms = np.frombuffer(kept, dtype=_ENTRY)[::2]
    return not len(terms) or int(terms.max()) < PROFILES * HASHES


class PhraseIndex:
    """The profiles of all skills, by term. Immutable."""

    def __init__(self, profiles: Sequence[bytes]) -> None:
        """Index what ``profile_of`` gave for each skill; empty for one without examples."""
        table = np.frombuffer(b"".join(profiles), dtype=_ENTRY).reshape(-1, 2)
        entries = [len(profile) // (2 * _ENTRY.itemsize) for profile in profiles]
        skill = np.repeat(np.arange(len(profiles), dtype=np.int32), entries)
        term, counts = table[:, 0], table[:, 1].astype(np.float32)
        frequency = np.bincount(term, minlength=PROFILES * HASHES)
        holders = np.count_nonzero(entries)
        idf = np.log1p((holders - frequency + 0.5) / (frequency + 0.5))
        self._weight = np.where(frequency > 0, idf**2, 0.0).astype(np.float32)
        row = skill * PROFILES + term // HASHES
        squares = np.bincount(row, counts * self._weight[term], len(profiles) * PROFILES)
        length = np.sqrt(np.maximum(squares, 1e-9)).astype(np.float32)
        order = np.argsort(term, kind="stable")
        self._skill = skill[order]
        self._value = (np.sqrt(counts) / length[row])[order]
        self._start = np.concatenate(([0], np.cumsum(frequency)))
        self._size = len(profiles)

    def near(self, spoken: Sequence[Sequence[str]], among: NDArray[np.intp]) -> NDArray[np.float32]:
        """How alike the wording of some texts, given as their words, and of some skills' examples
        is, in [0, 1]; shape (texts, skills). 0 for a skill without examples."""
        terms, asked = self._asked(spoken)
        frequency = self._start[terms + 1] - self._start[terms]
        if frequency.sum() > MAX_POSTINGS:
            order = np.argsort(frequency)
            rarest = order[np.cumsum(frequency[order]) <= MAX_POSTINGS]
            terms, asked = terms[rarest], asked[:, rarest]
        postings = Postings.of(terms, self._start, self._skill, self._value, self._size)
        near: NDArray[np.float32] = asked @ postings.contributions(among)
        return near / np.float32(PROFILES)

    def _asked(
        self, spoken: Sequence[Sequence[str]]
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """The terms of some texts, and what each counts for each text: its weight, divided by the
        length of its profile of the text; shape (texts, terms)."""
        found = [_terms(words) for words in spoken]
        terms, column = np.unique(
            np.array(list(chain.from_iterable(found)), dtype=np.intp), return_inverse=True
        )
        weight = self._weight[terms]
        asked = np.zeros((len(found), len(terms)), dtype=np.float32)
        asked[np.repeat(np.arange(len(found)), list(map(len, found))), column] = weight[column]
        profile = (terms[:, np.newaxis] // HASHES == np.arange(PROFILES)).astype(np.float32)
        length = np.sqrt(asked @ profile) + np.float32(1e-9)
        return terms, asked / (length @ profile.T)


@cache
def no_phrases() -> PhraseIndex:
    """The index of no skills. Its tables have places for all terms, so it is shared."""
    return PhraseIndex([])
