"""The classification head of the local model: one score for every answer that the examples name.

The score is the sum of three parts and a correction:

* Softmax regression over the encoder's vector and hashed words, which generalises. With few
  examples for each of many answers it was better than ridge regression, one-against-rest losses,
  discriminant analysis and class means.
* The cosine to the nearest example of the answer. It helps where an answer has many different uses,
  and shows which requests are unlike any example.
* Counts of single words (``words.py``), from which rare words are learnt.
* A correction for answers with few examples. Of a rare answer the regression mostly learns that it
  is rare: logit adjustment, Menon et al. (ICLR 2021).

The score of answer c, which n_c examples name, for a request with features x and vector v is

    x W_c + b_c + NEAREST_WEIGHT * (max over examples e of c of cosine(v, e) - 1)
        + WORDS_WEIGHT * (the score of its words for c) + log(r_c),

with r_c proportional to 1 / min(n_c, MAX_RARE_COUNT), and 1 on average.

The regression is fitted by stochastic gradient descent. The number of steps hardly grows with the
number of examples: a fit takes about a second for 8,000 of them. Stopping early is also most of the
regularisation. The examples are shuffled with a fixed seed, so equal input gives equal weights.
With rows x centred on their mean, one-hot answers y and example weights w, a step on a batch B is

    p = softmax(x W + b)
    D <- MOMENTUM D - rate (mean over B of w x (p - y) + L2 W)
    W <- W + D

and likewise for b, with the constant BIAS_RATE in place of x and without L2. The rate falls
linearly from RATE to 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from router.learning.features import Terms, rows, scaled, terms_of
from router.learning.words import WordCounts
from router.retrieval.contrast import softmax

NEAREST_WEIGHT: Final = 3.0
WORDS_WEIGHT: Final = 2.0
MAX_NEAREST: Final = 4_096
"""The number of examples that are kept to find the nearest (or the number of answers, if larger).
The search takes some 0.1 ms."""
MAX_RARE_COUNT: Final = 30

STEPS: Final = 500
PASSES: Final = 5
"""At least this many passes over the examples, where that is more than ``STEPS``."""
BATCH: Final = 128
RATE: Final = 20.0
"""High for rows of length 1: once they are centred, each direction holds little of that length."""
MOMENTUM: Final = 0.9
L2: Final = 1e-5
BIAS_RATE: Final = 0.01
"""The bias learns slower than the weights by this factor, so that frequent answers gain little."""
SEED: Final = 0


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The scores of every answer that the examples name. Immutable, and safe to share.

    Attributes:
        classes: the answers, sorted.
        weights: of the regression; shape (dimension of the vectors + ``features.BUCKETS``,
        classes).
        bias: of the regression, with log(r_c) added; shape (classes,).
        examples: the vectors of examples, grouped by answer in the order of ``classes``; at least
            one for each.
        starts: where the examples of each answer start, shape (classes,).
        words: the word counts of the answers.
    """

    classes: tuple[str, ...]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    examples: NDArray[np.float32]
    starts: NDArray[np.intp]
    words: WordCounts

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        labels: Sequence[str],
        vectors: NDArray[np.float32],
        *,
        weights: Sequence[float] | None = None,
    ) -> Self:
        """Fit a head to labelled examples. Call it in a thread, because it may take seconds.

        A fit never starts from an earlier head. This was a few times faster and always worse, by up
        to two points, because the new head stayed near to what the oldest examples had taught.

        Args:
            texts: the requests, oldest first, at least one.
            vectors: of the texts, shape (len(texts), dimension), unit length.
            weights: the weight of each example, above 0; None means that all have the same.
        """
        classes = tuple(sorted(set(labels)))
        place = {name: number for number, name in enumerate(classes)}
        targets = np.array([place[label] for label in labels], dtype=np.intp)
        example_weights = np.ones(len(targets)) if weights is None else np.asarray(weights)
        # Where all labels have a lower weight, they shall teach as much as before.
        example_weights = example_weights / example_weights.mean()
        found = terms_of(texts)
        words = WordCounts.of(found, targets, example_weights)
        features = rows(found, vectors)
        mean = features.mean(axis=0)
        features -= mean
        matrix, bias = _fit_regression(
            features, targets, example_weights.astype(np.float32), len(classes)
        )
        rarity = 1 / np.minimum(np.bincount(targets), MAX_RARE_COUNT)
        bias += np.log(rarity / rarity.mean()) - mean @ matrix
        chosen = _newest(targets, max(MAX_NEAREST, len(classes)))
        chosen = chosen[np.argsort(targets[chosen], kind="stable")]
        starts = np.searchsorted(targets[chosen], np.arange(len(classes)))
        examples = vectors[chosen].astype(np.float32)
        for array in (matrix, bias, examples, starts, *words):
            array.flags.writeable = False
        return cls(classes, matrix, bias, examples, starts, words)

    def score_one(
        self, text: str, vector: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Score all answers to one request, whose vector has unit length.

        Returns:
            The score of every answer, and the cosine to the nearest example of each, both of shape
            (classes,). The scores are logits.
        """
        dimension = len(vector)
        terms = Terms.of(text)
        buckets, values = terms.hashed()
        nearest = np.maximum.reduceat(self.examples @ vector, self.starts)
        scores = scaled(vector) @ self.weights[:dimension] + self.bias
        # A request has some dozens of hashed terms, far fewer than there are buckets.
        scores += values @ self.weights[dimension + buckets]
        scores += NEAREST_WEIGHT * (nearest - 1)
        scores += WORDS_WEIGHT * self.words.scores(terms)
        return scores, nearest

    def scores(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """The scores of many requests, shape (len(texts), classes); see ``score_one``. Their
        vectors have the shape (len(texts), dimension)."""
        table = np.empty((len(texts), len(self.classes)), dtype=np.float32)
        for row, text, vector in zip(table, texts, vectors, strict=True):
            row[:], _ = self.score_one(text, vector)
        return table


def energy(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """The energy of requests: log sum exp of their scores, which have the shape (..., classes). It
    is low for a request that is unlike all examples. Liu et al. (NeurIPS 2020)."""
    return np.asarray(np.logaddexp.reduce(scores, axis=-1))


def _newest(targets: NDArray[np.intp], limit: int) -> NDArray[np.intp]:
    """The positions of at most ``limit`` examples: the newest of each answer, equally many of each
    as far as there are enough. At least one of each answer, if the limit allows."""
    if len(targets) <= limit:
        return np.arange(len(targets))
    newest_first = np.arange(len(targets))[::-1]
    grouped = newest_first[np.argsort(targets[newest_first], kind="stable")]
    first = np.searchsorted(targets[grouped], targets[grouped])
    age = np.arange(len(grouped)) - first  # 0 for the newest example of an answer
    return grouped[np.lexsort((-grouped, age))[:limit]]


def _fit_regression(
    features: NDArray[np.float32],
    targets: NDArray[np.intp],
    example_weights: NDArray[np.float32],
    classes: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """The weights and the bias, by gradient descent; see the module's docstring."""
    matrix = np.zeros((features.shape[1], classes), dtype=np.float32)
    bias = np.zeros(classes, dtype=np.float32)
    matrix_step, bias_step = np.zeros_like(matrix), np.zeros_like(bias)
    steps = max(STEPS, PASSES * len(features) // BATCH)
    for step, batch in zip(range(steps), _batches(len(features)), strict=False):
        chosen, rate = features[batch], np.float32(RATE * (1 - step / steps))
        errors = softmax(chosen @ matrix + bias)
        errors[np.arange(len(batch)), targets[batch]] -= 1
        errors *= example_weights[batch, None] / len(batch)
        matrix_step *= MOMENTUM
        matrix_step -= rate * (chosen.T @ errors + L2 * matrix)
        matrix += matrix_step
        bias_step *= MOMENTUM
        bias_step -= rate * BIAS_RATE * errors.sum(axis=0)
        bias += bias_step
    return matrix, bias


def _batches(count: int) -> Iterator[NDArray[np.intp]]:
    """Endless batches of shuffled positions; each pass goes over all of them."""
    shuffle = np.random.default_rng(SEED)
    waiting = np.empty(0, dtype=np.intp)
    size = min(BATCH, count)
    while True:
        while len(waiting) < size:
            waiting = np.concatenate((waiting, shuffle.permutation(count)))
        yield waiting[:size]
        waiting = waiting[size:]
