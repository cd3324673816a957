"""BM25 over the six weighted fields of the skills (BM25F), with what each term contributed.

The term frequencies of all fields are added up, each weighted and divided by its relative field
length, before one saturation is applied: Robertson, Zaragoza and Taylor, "Simple BM25 extension to
multiple weighted fields" (CIKM 2004). Two constants differ from the textbook because skills differ
from web pages: bodies are long and mention many things once, so saturation comes late (k1) and
length counts in full (b); the IDF is damped, because a word that is rare among skills is often an
everyday word of the request.

When one skill of many is edited, only its postings are made anew. So what a posting holds depends
on its own document alone and on the mean lengths of the fields, which are taken in steps of 1% and
hardly ever pass to the next one. What depends on all documents, the IDF, is multiplied in when a
term is looked up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
MEAN_STEP: Final = 1.01
"""The mean length of a field is taken as the nearest power of this."""
MAX_COUNT: Final = 65_535
"""Of a term in one field."""
MAX_UNUSED_TERMS: Final = 2
"""Times the terms in use: with more numbers than that, they are given out anew."""
K1: Final = 6.0
IDF_POWER: Final = 0.75


class LexicalIndex:
    """Postings of all documents as arrays, by term and then by document. Immutable.

    Attributes:
        size: number of documents.
        document: for each posting, the document's number.
        saturated: for each posting, the saturated frequency over all fields, in (0, 1).
        start: postings of term t are ``start[t]:start[t + 1]``.
        idf: for each term, its IDF divided by the largest possible one, in (0, 1).
    """

    def __init__(
        self,
        documents: Sequence[SkillDocument],
        *,
        previous: LexicalIndex | None = None,
        kept: NDArray[np.intp] | None = None,
    ) -> None:
        """Index documents.

        Args:
            documents: in the order of their names.
            previous: an index of other documents, whose postings are used again.
            kept: for each document its place in ``previous``, see ``kept_places``.
        """
        if previous is None or kept is None or previous._wastes_numbers:
            previous, kept = None, np.full(len(documents), -1)
        self.size = len(documents)
        self.document: NDArray[np.int32]
        self.saturated: NDArray[np.float64]
        self.start: NDArray[np.intp]
        self.idf: NDArray[np.float64]
        self._counts: NDArray[np.uint16]
        self._wastes_numbers: bool
        self._numbers: dict[str, int] = {} if previous is None else previous._numbers
        new = np.flatnonzero(kept < 0)
        counted = [_counted(documents[place], self._numbers) for place in new.tolist()]
        terms = np.concatenate([_NO_TERMS, *(found for found, _ in counted)])
        counts = np.concatenate([_NO_COUNTS, *(table for _, table in counted)])
        document = np.repeat(new, [len(found) for found, _ in counted]).astype(np.int32)
        self._lengths = np.zeros((self.size, len(FIELDS)), dtype=np.int32)
        self._lengths[new] = [
            [sum(bag.values()) for bag in documents[place].fields] for place in new.tolist()
        ] or self._lengths[:0]
        # numpy sorts 16-bit numbers by radix, in a tenth of the time.
        order = np.argsort(terms.astype(np.min_scalar_type(len(self._numbers))), kind="stable")
        terms, counts, document = terms[order], counts[order], document[order]
        if previous is None:
            self._means = _means(self._lengths)
            self.saturated = self._saturated_of(document, counts)
        else:
            held = np.flatnonzero(kept >= 0)
            self._lengths[held] = previous._lengths[kept[held]]
            self._means = _means(self._lengths)
            place = np.full(previous.size, -1, dtype=np.int32)
            place[kept[held]] = held
            before = place[previous.document]
            stays = before >= 0
            before = before[stays]
            terms_before = np.repeat(np.arange(len(previous.idf)), np.diff(previous.start))[stays]
            at = np.searchsorted(
                terms_before * self.size + before, terms.astype(np.int64) * self.size + document
            )
            saturated = self._saturated_of(document, counts)
            terms = np.insert(terms_before, at, terms)
            document = np.insert(before, at, document)
            counts = np.insert(previous._counts[stays], at, counts, axis=0)
            if np.array_equal(self._means, previous._means):
                self.saturated = np.insert(previous.saturated[stays], at, saturated)
            else:
                self.saturated = self._saturated_of(document, counts)
        self.document = document
        self._counts = counts
        frequency = np.bincount(terms, minlength=len(self._numbers))
        self.start = np.concatenate(([0], np.cumsum(frequency)))
        used = int(np.count_nonzero(frequency))
        self._wastes_numbers = len(frequency) > MAX_UNUSED_TERMS * used
        self.idf = np.log1p((self.size - frequency + 0.5) / (frequency + 0.5)) / math.log(
            2 * self.size + 2
        )
        self._weight = self.idf**IDF_POWER

    def _saturated_of(
        self, document: NDArray[np.int32], counts: NDArray[np.uint16]
    ) -> NDArray[np.float64]:
        """The saturated frequency of postings, from their documents and their counts by field."""
        frequency = np.zeros(len(document))
        for number, field in enumerate(FIELDS):
            norms = _length_norms(self._lengths[:, number], self._means[number], FIELD_B[field])
            frequency += counts[:, number] * (FIELD_WEIGHT[field] / norms)[document]
        return frequency / (frequency + K1)

    def number(self, stem: str) -> int | None:
        """The number of a term; None where no document has it."""
        number = self._numbers.get(stem)
        # A later index may have given out more numbers.
        if (
            number is None
            or number >= len(self.idf)
            or self.start[number] == self.start[number + 1]
        ):
            return None
        return number

    def postings(self, terms: Sequence[int]) -> Postings:
        """The postings of different terms, each with its damped IDF times its saturated
        frequency, in (0, 1)."""
        found = Postings.of(terms, self.start, self.document, self.saturated, self.size)
        return found._replace(values=found.values * self._weight[list(terms)][found.terms])


def _counted(
    document: SkillDocument, numbers: dict[str, int]
) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
    """The terms of one document, by number, and how often each field has them. Terms that have no
    number are given one."""
    found = dict.fromkeys(chain.from_iterable(document.fields))
    place = dict(zip(found, range(len(found)), strict=True))
    table = np.zeros((len(place), len(FIELDS)), dtype=np.int64)
    for number, bag in enumerate(document.fields):
        if bag:
            table[list(map(place.__getitem__, bag)), number] = list(bag.values())
    for term in found:
        if term not in numbers:
            numbers[term] = len(numbers)
    terms = np.array(list(map(numbers.__getitem__, found)), dtype=np.int32)
    return terms, np.minimum(table, MAX_COUNT).astype(np.uint16)


_NO_TERMS: Final = np.zeros(0, dtype=np.int32)
_NO_COUNTS: Final = np.zeros((0, len(FIELDS)), dtype=np.uint16)
"""What an empty catalog's arrays are made from."""


def _means(lengths: NDArray[np.int32]) -> NDArray[np.float64]:
    """For each field the mean length over the documents that have it, see ``MEAN_STEP``."""
    having = np.count_nonzero(lengths, axis=0)
    means = np.maximum(lengths.sum(axis=0) / np.maximum(having, 1), 1.0)
    steps: NDArray[np.float64] = np.rint(np.log(means) / math.log(MEAN_STEP))
    return np.asarray(MEAN_STEP**steps, dtype=np.float64)


def _length_norms(lengths: NDArray[np.int32], mean: float, b: float) -> NDArray[np.float64]:
    """BM25's length normalisation against the mean length."""
    norms = 1 - b + b * lengths.astype(np.float64) / mean
    return np.maximum(norms, MIN_LENGTH_NORM)
