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
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import chain
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from router.retrieval.documents import FIELDS, Edit, SkillDocument, T
from router.retrieval.postings import Postings

FIELD_WEIGHT: Final = {
    "name": 8.0,
    "hints": 8.0,
    "description": 8.0,
    "prose": 1.0,
    "code": 0.5,
    "when": 1.0,
}
FIELD_B: Final = dict.fromkeys(FIELDS, 1.0) | {"name": 0.5}
MIN_LENGTH_NORM: Final = 0.2
"""A very short field counts at most five times."""
MEAN_STEP: Final = 1.01
"""The mean length of a field is taken as the nearest power of this."""
COUNT_BITS: Final = 10
"""The counts of a term in the six fields of one document are kept in one number of 64 bits."""
MAX_COUNT: Final = (1 << COUNT_BITS) - 1
"""The largest count of a term in one field that is kept. Saturation is all but reached there."""
_SHIFTS: Final = np.arange(len(FIELDS), dtype=np.uint64) * np.uint64(COUNT_BITS)
MAX_UNUSED_TERMS: Final = 2
"""Times the terms in use: with more numbers than that, those of unused terms are given back."""
COMPUTED_AT_ONCE: Final = 16_384
"""Postings. The steps of a long calculation over all of them would take megabytes each."""
K1: Final = 6.0
IDF_POWER: Final = 0.75


class LexicalIndex:
    """Postings of all documents as arrays, by term. Immutable: ``edited`` gives the next index.

    Attributes:
        size: number of documents.
        document: for each posting, the document's number.
        saturated: for each posting, the saturated frequency over all fields, in (0, 1).
        start: postings of term t are ``start[t]:start[t + 1]``.
        idf: for each term, its IDF divided by the largest possible one, in (0, 1).
    """

    def __init__(self) -> None:
        """The index of no documents."""
        self.size = 0
        self.document: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self.saturated: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self.start: NDArray[np.intp] = np.zeros(1, dtype=np.intp)
        self.idf: NDArray[np.float64] = np.zeros(0)
        self._weight = self.idf
        self._used = b""
        self._counts: NDArray[np.uint64] = _NO_COUNTS
        self._lengths: NDArray[np.int32] = np.zeros((0, len(FIELDS)), dtype=np.int32)
        self._means = np.ones(len(FIELDS))
        self._waiting: tuple[_New, ...] = ()
        self._numbers: dict[str, int] = {}  # later indexes give out more of them in it

    def edited(self, edit: Edit) -> LexicalIndex:
        """The index after a step. While more steps follow, the new postings wait to be put among
        the others, because that makes every array anew."""
        after = copy(self)
        after.size = len(edit.kept)
        new = _postings(edit, self._numbers)
        lengths = [[sum(bag.values()) for bag in document.fields] for document in edit.added]
        after._lengths = edit.carried(
            self._lengths, np.array(lengths, dtype=np.int32).reshape(-1, len(FIELDS))
        )
        # The new places of the skills that stay; -1 for the others. The last row is what the place
        # -1 finds, of a skill that went in an earlier step.
        place = np.full(self.size + 1, -1, dtype=np.int32)
        stay = np.flatnonzero(edit.kept >= 0)
        place[edit.kept[stay]] = stay
        moved = place.take(self.document)
        waiting = [one._replace(document=place.take(one.document)) for one in self._waiting]
        if edit.more:
            after.document, after._waiting = moved, (*waiting, new)
            return after
        after._waiting = ()
        terms, counts, document = _by_term([*waiting, new], len(self._numbers))
        frequency = np.zeros(len(self._numbers), dtype=np.intp)
        frequency[: len(self.idf)] = np.diff(self.start)
        lost = np.flatnonzero(moved < 0)
        if len(lost):
            of_terms = np.searchsorted(self.start, lost, side="right") - 1
            frequency -= np.bincount(of_terms, minlength=len(frequency))
        ends = np.cumsum(frequency)[terms]

        def merged(before: NDArray[T], added: NDArray[T]) -> NDArray[T]:
            """New postings come behind the others of their term."""
            return np.insert(np.delete(before, lost) if len(lost) else before, ends, added)

        after.document = merged(moved, document)
        after._counts = merged(self._counts, counts)
        after._means = _means(after._lengths)
        if np.array_equal(after._means, self._means):
            after.saturated = merged(self.saturated, after._saturated_of(document, counts))
        else:
            after.saturated = after._saturated_of(after.document, after._counts)
        frequency += np.bincount(terms, minlength=len(frequency))
        used = frequency > 0
        if len(used) > MAX_UNUSED_TERMS * np.count_nonzero(used):
            number = (np.cumsum(used) - 1).tolist()
            after._numbers = {term: number[n] for term, n in self._numbers.items() if used[n]}
            frequency = frequency[used]
        after.start = np.concatenate(([0], np.cumsum(frequency)))
        after.idf = np.log1p((after.size - frequency + 0.5) / (frequency + 0.5)) / math.log(
            2 * after.size + 2
        )
        after._weight = after.idf**IDF_POWER
        after._used = (frequency > 0).tobytes()
        return after

    def _saturated_of(
        self, document: NDArray[np.int32], counts: NDArray[np.uint64]
    ) -> NDArray[np.float32]:
        """The saturated frequency of postings, from their documents and their counts by field."""
        saturated = np.empty(len(document), dtype=np.float32)
        for start in range(0, len(document), COMPUTED_AT_ONCE):
            some = slice(start, start + COMPUTED_AT_ONCE)
            lengths, frequency = self._lengths.take(document[some], axis=0), np.zeros(1)
            for number, field in enumerate(FIELDS):
                norms = _length_norms(lengths[:, number], self._means[number], FIELD_B[field])
                count = counts[some] >> _SHIFTS[number] & np.uint64(MAX_COUNT)
                frequency = frequency + count * (FIELD_WEIGHT[field] / norms)
            saturated[some] = frequency / (frequency + K1)
        return saturated

    def numbers(self, stems: Iterable[str]) -> list[int | None]:
        """The numbers of terms; None for one that no document has."""
        found = map(self._numbers.get, stems)
        # A later index may have given out more numbers, and an earlier one those of gone terms.
        used = self._used
        return [n if n is not None and n < len(used) and used[n] else None for n in found]

    def postings(self, terms: Sequence[int]) -> Postings:
        """The postings of different terms, each with its damped IDF times its saturated
        frequency, in (0, 1)."""
        found = Postings.of(terms, self.start, self.document, self.saturated, self.size)
        weight = self._weight[list(terms)].take(found.terms)
        return found._replace(values=found.values * weight)


class _New(NamedTuple):
    """Postings of added documents: the terms' numbers, how often each field has them, and the
    documents."""

    terms: NDArray[np.int32]
    counts: NDArray[np.uint64]
    document: NDArray[np.int32]


def _postings(edit: Edit, numbers: dict[str, int]) -> _New:
    """The postings of the added documents, by document."""
    counted = [_counted(document, numbers) for document in edit.added]
    document = np.repeat(edit.places, [len(found) for found, _ in counted]).astype(np.int32)
    return _New(
        np.concatenate([_NO_TERMS, *(found for found, _ in counted)]),
        np.concatenate([_NO_COUNTS, *(table for _, table in counted)]),
        document,
    )


def _by_term(parts: Sequence[_New], terms: int) -> _New:
    """Postings of several steps, of documents that are still there, in the order of their terms, of
    which there are so many."""
    numbers, counts, document = map(np.concatenate, zip(*parts, strict=True))
    # numpy sorts 16-bit numbers by radix, in a tenth of the time.
    order = np.argsort(numbers.astype(np.min_scalar_type(terms)), kind="stable")
    order = order[document.take(order) >= 0]
    return _New(numbers.take(order), counts.take(order), document.take(order))


def _counted(
    document: SkillDocument, numbers: dict[str, int]
) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """The terms of one document, by number, and how often each field has them. Terms that have no
    number are given one."""
    found = dict.fromkeys(chain.from_iterable(document.fields))
    place = dict(zip(found, range(len(found)), strict=True))
    table = np.zeros((len(place), len(FIELDS)), dtype=np.uint64)
    for number, bag in enumerate(document.fields):
        if bag:
            table[list(map(place.__getitem__, bag)), number] = list(bag.values())
    for term in found:
        if term not in numbers:
            numbers[term] = len(numbers)
    terms = np.array(list(map(numbers.__getitem__, found)), dtype=np.int32)
    return terms, (np.minimum(table, np.uint64(MAX_COUNT)) << _SHIFTS).sum(axis=1, dtype=np.uint64)


_NO_TERMS: Final = np.zeros(0, dtype=np.int32)
_NO_COUNTS: Final = np.zeros(0, dtype=np.uint64)
"""What an empty catalog's arrays are made from."""


def _means(lengths: NDArray[np.int32]) -> NDArray[np.float64]:
    """For each field the mean length over the documents that have it, see ``MEAN_STEP``."""
    columns = np.ascontiguousarray(lengths.T)  # numpy adds up neighbours much faster
    having = np.count_nonzero(columns, axis=1)
    means = np.maximum(columns.sum(axis=1) / np.maximum(having, 1), 1.0)
    steps: NDArray[np.float64] = np.rint(np.log(means) / math.log(MEAN_STEP))
    return np.asarray(MEAN_STEP**steps, dtype=np.float64)


def _length_norms(lengths: NDArray[np.int32], mean: float, b: float) -> NDArray[np.float64]:
    """BM25's length normalisation against the mean length."""
    norms = 1 - b + b * lengths.astype(np.float64) / mean
    return np.maximum(norms, MIN_LENGTH_NORM)
