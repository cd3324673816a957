"""The head: from a request to one score for every answer that the examples name.

Three parts add up. Softmax regression over the encoder's vector and the hashed words generalises:
on few examples of each of many answers it was better than ridge regression, one-against-rest
losses, discriminant analysis and class means. The nearest example of each answer remembers: it
helps where an answer is many things (a tool with a thousand uses), and tells requests that nothing
known is like. Counts of words, one for each (``words.py``), know the rare ones. Answers with fewer
than FEW examples are lifted, because of a rare answer the regression mostly learns that it is rare:
logit adjustment, Menon et al. (ICLR 2021). The score of answer c, which n_c examples name, for a
request with features x and vector v is

    x W_c + b_c + NEAREST_WEIGHT * (max over examples e of c of cosine(v, e) - 1)
        + WORDS_WEIGHT * (what its words say for c) + log(r_c),

with the rarities r_c proportional to 1 / min(n_c, FEW), and 1 on average.

The regression is fitted by stochastic gradient descent, for a number of steps that hardly grows
with the examples: about a second for 8,000 of them, and no solver. That it stops early is also most
of its regularisation. The order of the examples is shuffled by a fixed seed, so equal input gives
equal weights. With rows x centred on their mean, one-hot answers y and example weights w, a step on
a batch B is

    p = softmax(x W + b)
    D <- MOMENTUM D - rate (mean over B of w x (p - y) + L2 W)
    W <- W + D

and likewise for b, with the constant BIAS_RATE in the place of x and no L2. The rate falls from
RATE to 0 in a line.
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
"""Examples kept for the look at the nearest (unless there are more answers); some 0.1 ms."""
FEW: Final = 30

STEPS: Final = 500
PASSES: Final = 5
"""Over the examples at least, where that is more than ``STEPS``."""
BATCH: Final = 128
RATE: Final = 20.0
"""High for rows of length 1, since once they are centred no direction holds much of it."""
MOMENTUM: Final = 0.9
L2: Final = 1e-5
BIAS_RATE: Final = 0.01
"""How much less the bias follows than a weight does, so that frequent answers gain little by it."""
SEED: Final = 0


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """Scores for every answer that the examples name. Immutable, and safe to share.

    Attributes:
        classes: the answers, sorted.
        weights: shape (dimension of the vectors + ``features.BUCKETS``, classes).
        bias: shape (classes,); with the logarithms of the rarities.
        examples: vectors of examples, those of one answer together, in the order of ``classes``;
            at least one of each.
        starts: where the examples of each answer start, shape (classes,).
        words: what the words of a request say for each answer.
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
        """The head of labelled examples. Meant for a thread: it takes up to some seconds.

        There is no way to start from an earlier head: that was a few times faster and always
        worse, by up to two points, for it stays with what the oldest examples made likely.

        Args:
            texts: the requests, oldest first, at least one.
            vectors: of the texts, shape (len(texts), dimension), unit length.
            weights: how much each example counts in the regression beside the others, above 0;
                None means that all count the same.
        """
        classes = tuple(sorted(set(labels)))
        place = {name: number for number, name in enumerate(classes)}
        answers = np.array([place[label] for label in labels], dtype=np.intp)
        counts = np.ones(len(answers)) if weights is None else np.asarray(weights)
        counts = counts / counts.mean()  # evidence that has aged as a whole teaches no less
        found = terms_of(texts)
        words = WordCounts.of(found, answers, counts)
        features = rows(found, vectors)
        mean = features.mean(axis=0)
        features -= mean
        matrix, bias = _descended(features, answers, counts.astype(np.float32), len(classes))
        rarity = 1 / np.minimum(np.bincount(answers), FEW)
        bias += np.log(rarity / rarity.mean()) - mean @ matrix
        kept = _newest(answers, max(MAX_NEAREST, len(classes)))
        kept = kept[np.argsort(answers[kept], kind="stable")]
        starts = np.searchsorted(answers[kept], np.arange(len(classes)))
        examples = vectors[kept].astype(np.float32)
        for array in (matrix, bias, examples, starts, *words):
            array.flags.writeable = False
        return cls(classes, matrix, bias, examples, starts, words)

    def look(
        self, text: str, vector: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What there is to know about one request; its vector has unit length.

        Returns:
            The score of every answer, shape (classes,): logits, as far as a softmax over them
            gives probabilities. And the cosine to the nearest example of each, likewise.
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
        """The scores of many requests, shape (len(texts), classes); see ``look``. Their vectors
        have the shape (len(texts), dimension)."""
        table = np.empty((len(texts), len(self.classes)), dtype=np.float32)
        for row, text, vector in zip(table, texts, vectors, strict=True):
            row[:], _ = self.look(text, vector)
        return table


def energy(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """How much of what the examples are about is in a request: log sum exp of its scores, of shape
    (..., classes). Low for a request that is out of scope. Liu et al. (NeurIPS 2020)."""
    return np.asarray(np.logaddexp.reduce(scores, axis=-1))


def _newest(answers: NDArray[np.intp], limit: int) -> NDArray[np.intp]:
    """Positions of at most ``limit`` examples: the newest of each answer, as many of one as of
    another while there are some. Keeps every answer that there is, given the limit allows."""
    if len(answers) <= limit:
        return np.arange(len(answers))
    newest_first = np.arange(len(answers))[::-1]
    grouped = newest_first[np.argsort(answers[newest_first], kind="stable")]
    first = np.searchsorted(answers[grouped], answers[grouped])
    age = np.arange(len(grouped)) - first  # 0 for the newest of its answer
    return grouped[np.lexsort((-grouped, age))[:limit]]


def _descended(
    features: NDArray[np.float32],
    answers: NDArray[np.intp],
    counts: NDArray[np.float32],
    classes: int,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Weights and bias by gradient descent; see the formula above."""
    matrix = np.zeros((features.shape[1], classes), dtype=np.float32)
    bias = np.zeros(classes, dtype=np.float32)
    matrix_step, bias_step = np.zeros_like(matrix), np.zeros_like(bias)
    steps = max(STEPS, PASSES * len(features) // BATCH)
    for step, batch in zip(range(steps), _batches(len(features)), strict=False):
        chosen, rate = features[batch], np.float32(RATE * (1 - step / steps))
        wrong = softmax(chosen @ matrix + bias)
        wrong[np.arange(len(batch)), answers[batch]] -= 1
        wrong *= counts[batch, None] / len(batch)
        matrix_step *= MOMENTUM
        matrix_step -= rate * (chosen.T @ wrong + L2 * matrix)
        matrix += matrix_step
        bias_step *= MOMENTUM
        bias_step -= rate * BIAS_RATE * wrong.sum(axis=0)
        bias += bias_step
    return matrix, bias


def _batches(count: int) -> Iterator[NDArray[np.intp]]:
    """Shuffled positions, a batch at a time, without end; each pass goes over all of them."""
    shuffle = np.random.default_rng(SEED)
    waiting = np.empty(0, dtype=np.intp)
    size = min(BATCH, count)
    while True:
        while len(waiting) < size:
            waiting = np.concatenate((waiting, shuffle.permutation(count)))
        yield waiting[:size]
        waiting = waiting[size:]
