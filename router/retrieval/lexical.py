"""BM25 over the six weighted fields of the skills (BM25F), with what each term contributed.

The term frequencies of all fields are added up, each weighted and divided by its relative field
length, before one saturation is applied: Robertson, Zaragoza and Taylor, "Simple BM25 extension to
multiple weighted fields" (CIKM 2004). Two constants differ from the textbook because skills differ
from web pages: bodies are long and mention many things once, so saturation comes late (k1) and
length counts in full (b); the IDF is damped, because a word that is rare among skills is often an
everyday word of the request.

When one skill of many is edited, only its words are looked up again: term numbers are handed on
from one index to the next, with the term counts of every document. Everything else depends on all
documents, and is a few passes over arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.candidates import EVERYTHING
from router.retrieval.documents import FIELDS, SkillDocument
from router.retrieval.postings import Postings

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
MAX_UNUSED_TERMS: Final = 2
"""Times the terms in use: with more numbers than that, they are given out anew."""
K1: Final = 6.0
IDF_POWER: Final = 0.75


class LexicalIndex:
    """Postings of all documents as arrays, in the order of the documents. Immutable.

    Attributes:
        size: number of documents.
        documents: the documents by name, in their order.
        vocabulary: stem to term number, of the stems that some document has; numbers have gaps.
        idf: for each term, its IDF divided by the largest possible one, in (0, 1).
        frequency: for each posting, the weighted, length-normalised term frequency over all fields.
        document: for each posting, the document's number; ascending within a term.
        start: postings of term t are ``start[t]:start[t + 1]``.
    """

    def __init__(
        self, documents: Sequence[SkillDocument], *, previous: LexicalIndex | None = None
    ) -> None:
        """Index documents; those that are also in ``previous`` are not read again."""
        size = len(documents)
        self.size = size
        self.documents = {document.name: document for document in documents}
        self._numbers: dict[str, int] = {} if previous is None else previous._numbers
        known: dict[str, _Counts] = {} if previous is None else previous._counts
        counts = [
            held
            if (held := known.get(document.name)) is not None and held.document is document
            else _Counts.of(document, self._numbers)
            for document in documents
        ]
        self._counts: dict[str, _Counts] = {held.document.name: held for held in counts}
        table = np.concatenate([_NOTHING, *(held.table for held in counts)], axis=1)
        # numpy sorts 16-bit numbers by radix, in a tenth of the time.
        terms = np.concatenate([_NO_TERMS, *(held.terms for held in counts)]).astype(
            np.min_scalar_type(len(self._numbers))
        )
        holders = np.repeat(np.arange(size), [len(held.terms) for held in counts])
        frequency = np.zeros(len(terms))
        lengths = np.array([held.lengths for held in counts]).reshape(size, len(FIELDS))
        for number, field in enumerate(FIELDS):
            scale = FIELD_WEIGHT[field] / _length_norms(lengths[:, number], FIELD_B[field])
            frequency += table[number] * scale[holders]
        order = np.argsort(terms, kind="stable")
        self.term = terms[order].astype(np.int64)
        self.document = holders[order].astype(np.int32)
        self.frequency = frequency[order]
        self.document_frequency = np.bincount(self.term, minlength=len(self._numbers))
        self.start = np.concatenate(([0], np.cumsum(self.document_frequency)))
        df = self.document_frequency
        used = df.astype(bool).tolist()
        self.vocabulary = {term: n for term, n in self._numbers.items() if used[n]}
        if len(self._numbers) > MAX_UNUSED_TERMS * len(self.vocabulary):
            self._numbers = {}  # the next index begins anew
            self._counts = {}
        self.idf = np.log1p((size - df + 0.5) / (df + 0.5)) / math.log(2 * size + 2)
        self._value = self.saturated(K1)

    def saturated(
        self, k1: float, postings: slice | NDArray[np.intp] = EVERYTHING
    ) -> NDArray[np.float64]:
        """For some postings, damped IDF times saturated frequency, in (0, 1)."""
        weight: NDArray[np.float64] = (self.idf**IDF_POWER)[self.term[postings]]
        frequency = self.frequency[postings]
        return weight * frequency / (frequency + k1)

    def postings(self, terms: Sequence[int]) -> Postings:
        """The postings of different terms."""
        return Postings.of(terms, self.start, self.document, self._value, self.size)


@dataclass(frozen=True, slots=True)
class _Counts:
    """The terms of one document, by number, and how often each field has them."""

    document: SkillDocument
    terms: NDArray[np.int32]
    table: NDArray[np.float32]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, document: SkillDocument, numbers: dict[str, int]) -> _Counts:
        """Count a document; terms that have no number are given one."""
        found = dict.fromkeys(chain.from_iterable(document.fields))
        place = dict(zip(found, range(len(found)), strict=True))
        table = np.zeros((len(FIELDS), len(place)), dtype=np.float32)
        for row, bag in zip(table, document.fields, strict=True):
            if bag:
                row[list(map(place.__getitem__, bag))] = list(bag.values())
        for term in found:
            if term not in numbers:
                numbers[term] = len(numbers)
        terms = np.array(list(map(numbers.__getitem__, found)), dtype=np.int32)
        return cls(document, terms, table, tuple(sum(bag.values()) for bag in document.fields))


_NO_TERMS: Final = np.zeros(0, dtype=np.int32)
_NOTHING: Final = np.zeros((len(FIELDS), 0), dtype=np.float32)
"""What an empty catalog's arrays are made from."""


def _length_norms(lengths: NDArray[np.int64], b: float) -> NDArray[np.float64]:
    """BM25's length normalisation against the mean of the documents that have the field."""
    sizes = lengths.astype(np.float64)
    mean = sizes[sizes > 0].mean() if (sizes > 0).any() else 1.0
    return np.maximum(1 - b + b * sizes / mean, MIN_LENGTH_NORM)
