"""The similarity of a request's and the examples' turns of phrase.

People who want the same thing use the same turns of phrase: "how far is it to", "cancel my".
Neither the encoder's vector nor the content words alone hold them. So three *profiles* (bags of
terms) of a skill's examples are compared with those of a request: word stems, pairs of neighbouring
stems, and sequences of four letters, which survive inflections and typos. In each profile, a term t
that c examples of the skill have contributes sqrt(c) IDF(t)^2, and profiles are compared by cosine.
The similarity is the mean of the three cosines.

A term is identified by a hash of 14 bits in its profile. Two terms with the same hash count as one
term, which is rare, and no worse than a word with two meanings.
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

NGRAM_LETTERS: Final = 4
PROFILES: Final = 3
HASH_BUCKETS: Final = 1 << 14
"""The number of different hashes in one profile."""
MAX_WORDS: Final = 500
"""At most this many words of a text are read, so that a long request takes only milliseconds."""
MAX_POSTINGS: Final = 100_000
"""At most this many postings are used for one request. Where there are more, in catalogs of
thousands of skills, those of the most common terms are left out, which hardly distinguish
skills."""
_ENTRY_TYPE: Final = np.dtype("<u2")


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
    parts = (marked[i : i + NGRAM_LETTERS] for i in range(max(len(marked) - NGRAM_LETTERS + 1, 1)))
    return tuple(zlib.crc32(part.encode("utf-8", "replace")) for part in parts)


_remembered_letters: Final = memoised(short=16_384, longest=MAX_WORD_LETTERS)(_letters)
"""Used by ``letters``. Profiles use ``_of_word``, which has a memory of its own."""


@memoised(short=16_384, longest=MAX_WORD_LETTERS)
def _of_word(word: str) -> tuple[str, tuple[int, ...]]:
    """The stem of a word, and the word's terms in the first and the last profile."""
    root = stem(word)
    return root, (
        code(root) % HASH_BUCKETS,
        *(2 * HASH_BUCKETS + term % HASH_BUCKETS for term in _letters(word)),
    )


def _terms(words: Sequence[str]) -> list[int]:
    """The terms of a text in all three profiles, as different numbers. A term may come twice."""
    if not words:
        return []
    roots, of_words = zip(*map(_of_word, words[:MAX_WORDS]), strict=True)
    return [
        *(HASH_BUCKETS + term % HASH_BUCKETS for term in pairs(roots)),
        *chain.from_iterable(of_words),
    ]


def profile_of(examples: Sequence[str]) -> bytes:
    """The profiles of one skill's examples, as bytes to store: each term with the number of
    examples that have it."""
    found = Counter(chain.from_iterable(set(_terms(tokens(example))) for example in examples))
    entries = np.array(sorted(found.items()), dtype=np.int64).reshape(-1, 2)
    return np.minimum(entries, np.iinfo(_ENTRY_TYPE).max).astype(_ENTRY_TYPE).tobytes()


def is_profile(kept: bytes) -> bool:
    """Whether bytes have the form of ``profile_of``'s."""
    if len(kept) % (2 * _ENTRY_TYPE.itemsize):
        return False
    terms = np.frombuffer(kept, dtype=_ENTRY_TYPE)[::2]
    return not len(terms) or int(terms.max()) < PROFILES * HASH_BUCKETS


class PhraseIndex:
    """The profiles of all skills, by term. Immutable."""

    def __init__(self, profiles: Sequence[bytes]) -> None:
        """Index the results of ``profile_of`` for each skill; empty for one without examples."""
        table = np.frombuffer(b"".join(profiles), dtype=_ENTRY_TYPE).reshape(-1, 2)
        entries = [len(profile) // (2 * _ENTRY_TYPE.itemsize) for profile in profiles]
        skill = np.repeat(np.arange(len(profiles), dtype=np.int32), entries)
        term, counts = table[:, 0], table[:, 1].astype(np.float32)
        frequency = np.bincount(term, minlength=PROFILES * HASH_BUCKETS)
        holders = np.count_nonzero(entries)
        idf = np.log1p((holders - frequency + 0.5) / (frequency + 0.5))
        self._weight = np.where(frequency > 0, idf**2, 0.0).astype(np.float32)
        row = skill * PROFILES + term // HASH_BUCKETS
        squares = np.bincount(row, counts * self._weight[term], len(profiles) * PROFILES)
        length = np.sqrt(np.maximum(squares, 1e-9)).astype(np.float32)
        order = np.argsort(term, kind="stable")
        self._skill = skill[order]
        self._value = (np.sqrt(counts) / length[row])[order]
        self._start = np.concatenate(([0], np.cumsum(frequency)))
        self._size = len(profiles)

    def similarity(
        self, words: Sequence[Sequence[str]], among: NDArray[np.intp]
    ) -> NDArray[np.float32]:
        """The similarity of some texts, given as their words, and some skills' examples, in [0, 1];
        shape (texts, skills). 0 for a skill without examples."""
        terms, weights = self._query_terms(words)
        frequency = self._start[terms + 1] - self._start[terms]
        if frequency.sum() > MAX_POSTINGS:
            order = np.argsort(frequency)
            rarest = order[np.cumsum(frequency[order]) <= MAX_POSTINGS]
            terms, weights = terms[rarest], weights[:, rarest]
        postings = Postings.of(terms, self._start, self._skill, self._value, self._size)
        similarity: NDArray[np.float32] = weights @ postings.contributions(among)
        return similarity / np.float32(PROFILES)

    def _query_terms(
        self, words: Sequence[Sequence[str]]
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """The terms of some texts, and their weights for each text, shape (texts, terms): each
        weight is divided by the length of the text's profile."""
        found = [_terms(text) for text in words]
        terms, column = np.unique(
            np.array(list(chain.from_iterable(found)), dtype=np.intp), return_inverse=True
        )
        weight = self._weight[terms]
        weights = np.zeros((len(found), len(terms)), dtype=np.float32)
        weights[np.repeat(np.arange(len(found)), list(map(len, found))), column] = weight[column]
        profile = (terms[:, np.newaxis] // HASH_BUCKETS == np.arange(PROFILES)).astype(np.float32)
        length = np.sqrt(weights @ profile) + np.float32(1e-9)
        return terms, weights / (length @ profile.T)


@cache
def no_phrases() -> PhraseIndex:
    """The index of no skills. It is made once, because its tables have a place for every hash."""
    return PhraseIndex([])
