"""Answers from labelled examples: the product's head, and beside it, in the same form, the nearest
example by cosine or by BM25 and the class mean."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.baselines import Floats, bm25
from router.learning.head import Head, energy

NONE: Final = ""
"""The label of a request that nothing serves."""

HEAD_AGAINST: Final = 0.25
"""``Classifier.against`` of the head, chosen on the validation part of CLINC150, where .3 was best
with the bundled encoder and .2 with MiniLM. For the nearest example 1 was best."""

BLOCK: Final = 512
"""Requests that are compared with all examples at a time, so that the table stays in memory."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Examples:
    """Labelled requests with their vectors, shape (requests, dimension), unit length."""

    texts: Sequence[str]
    labels: Sequence[str]
    vectors: Vectors

    def plus(self, more: Examples) -> Examples:
        return Examples(
            [*self.texts, *more.texts],
            [*self.labels, *more.labels],
            np.vstack((self.vectors, more.vectors)),
        )

    def some(self, places: Iterable[int]) -> Examples:
        """The requests at these places."""
        chosen = list(places)
        return Examples(
            [self.texts[n] for n in chosen], [self.labels[n] for n in chosen], self.vectors[chosen]
        )


class Answers(NamedTuple):
    """For each request the best label, how much in scope the request seems, and how sure the label
    is, in [0, 1] and as the method says by itself."""

    labels: list[str]
    scores: Floats
    confidences: Floats


@dataclass(frozen=True)
class Classifier:
    """Answers from examples.

    Attributes:
        classes: the labels, sorted.
        table: of texts and their vectors, the score of each class, shape (requests, classes).
        whole: of such a table, how much of anything known there is in each request.
        sure: of such a table, how sure the best class is, in [0, 1].
        against: how much of the score of ``NONE`` counts against ``whole``.
    """

    classes: tuple[str, ...]
    table: Callable[[Sequence[str], Vectors], Floats]
    whole: Callable[[Floats], Floats]
    sure: Callable[[Floats], Floats]
    against: float = 1.0

    def answers(self, texts: Sequence[str], vectors: Vectors) -> Answers:
        """The best label that is not ``NONE``, and how much in scope each request seems, which
        being like examples of ``NONE`` lessens."""
        table = self.table(texts, vectors)
        known = [number for number, name in enumerate(self.classes) if name != NONE]
        inside = table[:, known]
        scores = self.whole(inside)
        if len(known) < len(self.classes):
            scores = scores - self.against * table[:, self.classes.index(NONE)]
        labels = [self.classes[known[n]] for n in inside.argmax(axis=1)]
        return Answers(labels, scores, self.sure(inside))


def head(examples: Examples) -> Classifier:
    """The product's head."""
    fitted = Head.fit(examples.texts, examples.labels, examples.vectors)
    return Classifier(fitted.classes, fitted.scores, _energy, _softmax, HEAD_AGAINST)


def nearest_example(examples: Examples) -> Classifier:
    """The cosine of the nearest example of each class."""
    groups = _Groups.of(examples.labels)

    def table(_: Sequence[str], vectors: Vectors) -> Floats:
        blocks = [vectors[n : n + BLOCK] for n in range(0, len(vectors), BLOCK)]
        return np.concatenate([groups.highest(block @ examples.vectors.T) for block in blocks])

    return Classifier(groups.classes, table, _highest, _clipped)


def class_mean(examples: Examples) -> Classifier:
    """The cosine of each class's mean."""
    groups = _Groups.of(examples.labels)
    means = np.add.reduceat(examples.vectors[groups.order], groups.starts, axis=0)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return Classifier(
        groups.classes, lambda _, vectors: np.asarray(vectors @ means.T), _highest, _clipped
    )


def nearest_by_words(examples: Examples) -> Classifier:
    """The BM25 score of the best example of each class."""
    groups = _Groups.of(examples.labels)
    scores = bm25(examples.texts)

    def table(texts: Sequence[str], _: Vectors) -> Floats:
        return np.concatenate([groups.highest(scores(text)[np.newaxis]) for text in texts])

    return Classifier(groups.classes, table, _highest, _odds)


class _Groups(NamedTuple):
    """Examples by class: ``order`` brings those of one class together, each from its start."""

    classes: tuple[str, ...]
    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, labels: Sequence[str]) -> Self:
        classes, numbers = np.unique(np.array(labels), return_inverse=True)
        order = np.argsort(numbers, kind="stable")
        starts = np.searchsorted(numbers[order], np.arange(len(classes)))
        return cls(tuple(str(name) for name in classes), order, starts)

    def highest(self, scores: Floats) -> Floats:
        """Of scores of examples, shape (requests, examples), the best of each class."""
        return np.asarray(np.maximum.reduceat(scores[:, self.order], self.starts, axis=1))


def _highest(table: Floats) -> Floats:
    return np.asarray(table.max(axis=1))


def _energy(table: Floats) -> Floats:
    return energy(table.astype(np.float32, copy=False))


def _softmax(table: Floats) -> Floats:
    """The probability of the best class."""
    return np.asarray(np.exp(_highest(table) - _energy(table)))


def _clipped(table: Floats) -> Floats:
    """A cosine as semantic caches and routers state it."""
    return np.clip(_highest(table), 0, 1)


def _odds(table: Floats) -> Floats:
    """An unbounded score as the odds of being right; of BM25 only its order means anything."""
    return np.asarray(_highest(table) / (1 + _highest(table)))
