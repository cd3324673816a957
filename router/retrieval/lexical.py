"""BM25 over the six weighted fields of the skills (BM25F), with what each term contributed.

The term frequencies of all fields are added up, each weighted and divided by its relative field
length, before one saturation is applied: Robertson, Zaragoza and Taylor, "Simple BM25 extension to
multiple weighted fields" (CIKM 2004). Two constants differ from the textbook because skills differ
from web pages: bodies are long and mention many things once, so saturation comes late (k1) and
length counts in full (b); the IDF is damped, because a word that is rare among skills is often an
everyday word of the request.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.documents import FIELDS, SkillDocument

FIELD_WEIGHT: Final = {
    "name": 8.0,
    "hints": 8.0,
    "description": 8.0,
    "prose": 1.0,
    "code": 0.5,
    "when": 1.0,
}
FIELD_B: Final = {
    "name": 0.5,
    "hints": 1.0,
    "description": 1.0,
    "prose": 1.0,
    "code": 1.0,
    "when": 1.0,
}
MIN_LENGTH_NORM: Final = 0.2
"""A very short field counts at most five times."""
K1: Final = 6.0
IDF_POWER: Final = 0.75


class LexicalIndex:
    """Postings of all documents as arrays, in the order of the documents. Immutable.

    Attributes:
        size: number of documents.
        vocabulary: stem to term number.
        idf: for each term, its IDF divided by the largest possible one, in (0, 1).
        frequency: for each posting, the weighted, length-normalised term frequency over all fields.
        document: for each posting, the document's number; ascending within a term.
        start: postings of term t are ``start[t]:start[t + 1]``.
    """

    def __init__(self, documents: Sequence[SkillDocument]) -> None:
        size = len(documents)
        self.size = size
        self.vocabulary: dict[str, int] = {}
        keys = [np.zeros(0, dtype=np.int64)]  # an empty catalog has no others
        frequencies = [np.zeros(0)]
        for number, field in enumerate(FIELDS):
            bags = [document.fields[number] for document in documents]
            norms = _length_norms([sum(bag.values()) for bag in bags], FIELD_B[field])
            for position, bag in enumerate(bags):
                terms = [self.vocabulary.setdefault(t, len(self.vocabulary)) for t in bag]
                keys.append(np.asarray(terms, dtype=np.int64) * size + position)
                counts = np.fromiter(bag.values(), dtype=np.float64, count=len(bag))
                frequencies.append(counts * (FIELD_WEIGHT[field] / norms[position]))
        unique, where = np.unique(np.concatenate(keys), return_inverse=True)
        self.frequency = np.bincount(where, np.concatenate(frequencies), len(unique))
        self.document = (unique % max(size, 1)).astype(np.int32)
        self.term = unique // max(size, 1)
        self.document_frequency = np.bincount(self.term, minlength=len(self.vocabulary))
        self.start = np.concatenate(([0], np.cumsum(self.document_frequency)))
        df = self.document_frequency
        self.idf = np.log1p((size - df + 0.5) / (df + 0.5)) / math.log(2 * size + 2)
        self._value = self.saturated(K1)

    def saturated(self, k1: float) -> NDArray[np.float64]:
        """For each posting, damped IDF times saturated frequency, in (0, 1)."""
        weight: NDArray[np.float64] = self.idf[self.term] ** IDF_POWER
        return weight * self.frequency / (self.frequency + k1)

    def scores(self, terms: Sequence[int]) -> NDArray[np.float64]:
        """BM25F of every document, shape (size,), for different terms."""
        if not terms:
            return np.zeros(self.size)
        slices = [slice(self.start[t], self.start[t + 1]) for t in terms]
        documents = np.concatenate([self.document[s] for s in slices])
        values = np.concatenate([self._value[s] for s in slices])
        return np.asarray(np.bincount(documents, values, self.size), dtype=np.float64)

    def contributions(
        self, terms: Sequence[int], documents: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        """What each term adds to each of some documents' scores, shape (terms, documents)."""
        table = np.zeros((len(terms), len(documents)))
        for row, term in enumerate(terms):
            postings = slice(self.start[term], self.start[term + 1])
            holders = self.document[postings]
            place = np.minimum(np.searchsorted(holders, documents), len(holders) - 1)
            found = holders[place] == documents
            table[row, found] = self._value[postings][place[found]]
        return table


def _length_norms(lengths: Sequence[int], b: float) -> NDArray[np.float64]:
    """BM25's length normalisation against the mean of the documents that have the field."""
    sizes = np.asarray(lengths, dtype=np.float64)
    mean = sizes[sizes > 0].mean() if (sizes > 0).any() else 1.0
    return np.maximum(1 - b + b * sizes / mean, MIN_LENGTH_NORM)
