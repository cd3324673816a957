"""The linear head: from a request's row of features to one score for every answer.

Softmax regression over the encoder's vector and the hashed words, with no more than labelled
examples to learn from. On few examples of each of many answers it was better than ridge regression,
one-against-rest losses, discriminant analysis, class means and neighbours, in that order.

It is fitted by a fixed number of steps of stochastic gradient descent, so a fit costs the same for
8,000 examples as for 800, about a second, and needs no solver. That it stops early is also most of
its regularisation. The order of the examples is shuffled by a fixed seed: equal input gives equal
weights.

With rows x centred on their mean, one-hot labels y and example weights w, a step on a batch B is

    p = softmax(x W + b),   G = 1/|B| sum w x' (p - y) + L2 W,   D <- MOMENTUM D - rate G,   W <- W + D

and the same for b with BIAS_RATE in the place of x. The rate falls from RATE to 0 in a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from router.learning.features import hashed, rows, scaled

STEPS: Final = 300
WARM_STEPS: Final = 100
"""From the weights of an earlier head."""
BATCH: Final = 128
RATE: Final = 20.0
"""High for unit rows, since once they are centred no direction holds much of their length."""
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
        weights: shape (dimension of the vectors + features.BUCKETS, classes).
        bias: shape (classes,).
    """

    classes: tuple[str, ...]
    weights: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        labels: Sequence[str],
        vectors: NDArray[np.float32],
        *,
        weights: Sequence[float] | None = None,
        warm: Head | None = None,
    ) -> Self:
        """The head of labelled examples. Meant for a thread: it takes up to some seconds.

        Args:
            texts: the requests, at least one.
            labels: the answer to each.
            vectors: of the texts, shape (len(texts), dimension), unit length.
            weights: how much each example counts, in (0, 1]; None means 1.
            warm: a head of the same encoder to start from, in a third of the steps; answers
                that the labels do not name any more are left out.
        """
        classes = tuple(sorted(set(labels)))
        place = {name: number for number, name in enumerate(classes)}
        answers = np.array([place[label] for label in labels], dtype=np.intp)
        counts = np.ones(len(answers)) if weights is None else np.asarray(weights)
        examples = rows(texts, vectors)
        mean = examples.mean(axis=0)
        examples -= mean

        matrix = np.zeros((examples.shape[1], len(classes)), dtype=np.float32)
        bias = np.zeros(len(classes), dtype=np.float32)
        if warm is not None:
            known = [number for number, name in enumerate(warm.classes) if name in place]
            kept = [place[warm.classes[number]] for number in known]
            matrix[:, kept] = warm.weights[:, known]
            bias[kept] = (warm.bias + mean @ warm.weights)[known]
        _descend(
            matrix,
            bias,
            examples,
            answers,
            counts.astype(np.float32),
            steps=STEPS if warm is None else WARM_STEPS,
        )
        bias -= mean @ matrix
        matrix.flags.writeable = bias.flags.writeable = False
        return cls(classes, matrix, bias)

    def scores(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """The logits of every answer for each request, shape (len(texts), classes).

        Args:
            texts: the requests.
            vectors: of them, shape (len(texts), dimension), unit length.
        """
        dimension = vectors.shape[1]
        logits = scaled(vectors) @ self.weights[:dimension] + self.bias
        # A request has some dozens of hashed terms, far fewer than there are buckets.
        by_bucket = self.weights[dimension:]
        for row, text in zip(logits, texts, strict=True):
            buckets, values = hashed(text)
            row += values @ by_bucket[buckets]
        return logits


def energy(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """How much of what the examples are about is in each request: log sum exp of its logits, shape
    (requests,). Low for a request that is out of scope; Liu et al. (NeurIPS 2020)."""
    top = logits.max(axis=1)
    return np.asarray(top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))


def _descend(
    matrix: NDArray[np.float32],
    bias: NDArray[np.float32],
    examples: NDArray[np.float32],
    answers: NDArray[np.intp],
    counts: NDArray[np.float32],
    *,
    steps: int,
) -> None:
    """Gradient descent on ``matrix`` and ``bias``, in place; see the formula above."""
    matrix_step, bias_step = np.zeros_like(matrix), np.zeros_like(bias)
    for step, batch in zip(range(steps), _batches(len(examples)), strict=False):
        chosen, rate = examples[batch], np.float32(RATE * (1 - step / steps))
        wrong = _softmax(chosen @ matrix + bias)
        wrong[np.arange(len(batch)), answers[batch]] -= 1
        wrong *= counts[batch, None] / len(batch)
        matrix_step *= MOMENTUM
        matrix_step -= rate * (chosen.T @ wrong + L2 * matrix)
        matrix += matrix_step
        bias_step *= MOMENTUM
        bias_step -= rate * BIAS_RATE * wrong.sum(axis=0)
        bias += bias_step


def _batches(count: int) -> Iterator[NDArray[np.intp]]:
    """Shuffled positions, a batch at a time, without end; each pass goes over all examples."""
    shuffle = np.random.default_rng(SEED)
    waiting = np.empty(0, dtype=np.intp)
    size = min(BATCH, count)
    while True:
        while len(waiting) < size:
            waiting = np.concatenate((waiting, shuffle.permutation(count)))
        yield waiting[:size]
        waiting = waiting[size:]


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
