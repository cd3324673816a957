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
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.candidates import Positions
from router.text import stem, tokens

LETTERS: Final = 4
PROFILES: Final = 3
HASHES: Final = 1 << 14
"""Different terms of one profile."""
MAX_WORDS: Final = 500
"""Read of a text, so that a long request costs no more than a few milliseconds."""
_ENTRY: Final = np.dtype("<u2")


@lru_cache(maxsize=65_536)
def code(term: str) -> int:
    """The hash of a term, in [0, 2^32)."""
    return zlib.crc32(term.encode("utf-8", "replace"))


def pairs(roots: Sequence[str]) -> set[int]:
    """The hashes of the pairs of neighbouring stems, with both ends of the text marked."""
    return set(map(code, map(" ".join, pairwise(("", *roots, "")))))


def letters(words: Iterable[str]) -> set[int]:
    """The hashes of the letter sequences of words; a short word is one sequence."""
    return set(chain.from_iterable(map(_letters, words)))


@lru_cache(maxsize=16_384)
def _letters(word: str) -> tuple[int, ...]:
    marked = f"^{word}$"
    parts = (marked[i : i + LETTERS] for i in range(max(len(marked) - LETTERS + 1, 1)))
    return tuple(zlib.crc32(part.encode("utf-8", "replace")) for part in parts)


def _terms(text: str) -> Iterator[int]:
    """The terms of a text in all profiles, each once and with a number of its own."""
    words = tokens(text)[:MAX_WORDS]
    if not words:
        return
    roots = [stem(word) for word in words]
    for profile, found in enumerate((set(map(code, roots)), pairs(roots), letters(words))):
        yield from {profile * HASHES + term % HASHES for term in found}


def profile_of(examples: Sequence[str]) -> bytes:
    """The terms of the examples of one skill and how many of them have each, to be kept."""
    found = Counter(chain.from_iterable(map(_terms, examples)))
    entries = np.array(sorted(found.items()), dtype=np.int64).reshape(-1, 2)
    return np.minimum(entries, np.iinfo(_ENTRY).max).astype(_ENTRY).tobytes()


def is_profile(kept: bytes) -> bool:
    """Whether these bytes have the form of what ``profile_of`` gives."""
    if len(kept) % (2 * _ENTRY.itemsize):
        return False
    terms = np.frombuffer(kept, dtype=_ENTRY)[::2]
    return not len(terms) or int(terms.max()) < PROFILES * HASHES


class PhraseIndex:
    """The profiles of all skills. Immutable."""

    def __init__(self, profiles: Sequence[bytes]) -> None:
        """Index what ``profile_of`` gave for each skill; empty for one without examples."""
        size = 2 * _ENTRY.itemsize
        self._count = np.array([len(profile) // size for profile in profiles], dtype=np.intp)
        self._start = np.concatenate(([0], np.cumsum(self._count)))
        table = np.frombuffer(b"".join(profiles), dtype=_ENTRY).reshape(-1, 2)
        self._term = np.ascontiguousarray(table[:, 0])
        holders = int(np.count_nonzero(self._count))
        frequency = np.bincount(self._term, minlength=PROFILES * HASHES)
        idf = np.log1p((holders - frequency + 0.5) / (frequency + 0.5))
        self._weight = np.where(frequency > 0, idf**2, 0.0).astype(np.float32)
        row = np.repeat(np.arange(len(profiles)) * PROFILES, self._count) + self._term // HASHES
        counts = table[:, 1].astype(np.float32)
        squares = np.bincount(row, counts * self._weight[self._term], len(profiles) * PROFILES)
        length = np.sqrt(np.maximum(squares, 1e-9)).astype(np.float32)
        self._value = np.sqrt(counts) / length[row]

    def near(self, request: str, among: Positions) -> NDArray[np.float64]:
        """How alike the wording of a request and of some skills' examples is, in [0, 1]; 0 for a
        skill without examples."""
        count = self._count[among]
        near = np.zeros(len(count))
        holders = np.flatnonzero(count)
        if not len(holders):
            return near
        term, value = self._term, self._value
        if not isinstance(among, slice):
            held = [slice(self._start[place], self._start[place + 1]) for place in among[holders]]
            term = np.concatenate([term[entries] for entries in held])
            value = np.concatenate([value[entries] for entries in held])
        products = self._asked(request).take(term.astype(np.intp))
        products *= value
        end = np.cumsum(count[holders])
        near[holders] = np.add.reduceat(products, end - count[holders]) / PROFILES
        return near

    def _asked(self, request: str) -> NDArray[np.float32]:
        """What each term counts for a request: the weights of its terms, of each profile divided by
        their length."""
        asked = np.zeros(PROFILES * HASHES, dtype=np.float32)
        terms = np.array(list(_terms(request)), dtype=np.intp)
        weights = self._weight[terms]
        profile = terms // HASHES
        length = np.sqrt(np.bincount(profile, weights, PROFILES)) + 1e-9
        asked[terms] = weights / length[profile]
        return asked
