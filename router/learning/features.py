"""The features of the head's regression: the encoder's vector and the hashed words of a request.

A vector represents what a text is about, but not which words it uses, and with labelled examples
the words help. So the stems of a text, its pairs of neighbouring stems, and the four-letter
sequences of its words (which survive typos, and inflection in languages without a stemmer) are
hashed into one block of fixed size. The weights of terms do not depend on the examples: in
cross-validation, document frequencies were no better than one fixed rule, a lower weight for
English function words.

The bucket of a term comes from its CRC-32, and its sign from another bit, so that terms that share
a bucket cancel out on average: feature hashing, Weinberger et al. (ICML 2009).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from router.retrieval.phrases import MAX_WORDS, code, letters, pairs
from router.text import STOPWORDS, stem, stems_of, tokens

BUCKETS: Final = 1_024

VECTOR_SHARE: Final = 1.0
STEM_SHARE: Final = 0.3
PAIR_SHARE: Final = 0.2
LETTER_SHARE: Final = 0.2
"""The squared length of each part of a row, relative to the others; cross-validated."""
_TOTAL: Final = VECTOR_SHARE + STEM_SHARE + PAIR_SHARE + LETTER_SHARE

FUNCTION_WORD_WEIGHT: Final = 0.5
_FUNCTION_STEMS: Final = frozenset(stem(word) for word in STOPWORDS)
_TEXTS_BETWEEN_PAUSES: Final = 16


class Terms(NamedTuple):
    """The terms of a text: stems, pairs of neighbouring stems, letter sequences.

    Attributes:
        codes: the hash of each term.
        values: the weight of each term in the text's row, above 0.
    """

    codes: NDArray[np.int64]
    values: NDArray[np.float32]

    @classmethod
    def of(cls, text: str) -> Self:
        """The terms of a text, of which the first ``MAX_WORDS`` words count."""
        words = tokens(text)[:MAX_WORDS]
        if not words:
            return cls(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
        roots = stems_of(words)
        stems = {
            code(root): FUNCTION_WORD_WEIGHT if root in _FUNCTION_STEMS else 1.0 for root in roots
        }
        neighbours, sequences = pairs(roots), letters(words)
        length = sum(weight * weight for weight in stems.values())
        stem_scale = (STEM_SHARE / _TOTAL / length) ** 0.5
        weights = [weight * stem_scale for weight in stems.values()]
        weights += [(PAIR_SHARE / _TOTAL / len(neighbours)) ** 0.5] * len(neighbours)
        weights += [(LETTER_SHARE / _TOTAL / len(sequences)) ** 0.5] * len(sequences)
        codes = np.array([*stems, *neighbours, *sequences])
        return cls(codes, np.array(weights, dtype=np.float32))

    def hashed(self) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The hashed part of the text's row: the buckets, which may repeat, and what to add to
        each."""
        return self.codes % BUCKETS, np.where(self.codes >> 31, self.values, -self.values)


def terms_of(texts: Sequence[str]) -> list[Terms]:
    """The terms of many texts."""
    found = []
    for number, text in enumerate(texts):
        found.append(Terms.of(text))
        if number % _TEXTS_BETWEEN_PAUSES == 0:
            time.sleep(0)  # a fit runs beside requests; this hands them the interpreter
    return found


def scaled(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Unit vectors, scaled to their share of a row."""
    return np.asarray(vectors * (VECTOR_SHARE / _TOTAL) ** 0.5, dtype=np.float32)


def rows(found: Sequence[Terms], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Whole rows, shape (len(found), dimension + BUCKETS), of length about 1, from the terms of the
    requests and their vectors of unit length, shape (len(found), dimension)."""
    dimension = vectors.shape[1]
    table = np.zeros((len(vectors), dimension + BUCKETS), dtype=np.float32)
    table[:, :dimension] = scaled(vectors)
    for number, (row, terms) in enumerate(zip(table, found, strict=True)):
        np.add.at(row[dimension:], *terms.hashed())
        if number % _TEXTS_BETWEEN_PAUSES == 0:
            time.sleep(0)
    return table
