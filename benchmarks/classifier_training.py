"""Learns the weights of memory's classifier from its examples (``data/classifier_examples.txt``).

Run it with ``python -m benchmarks.classifier_training``; it writes the weights into the package.

A multinomial logistic regression with an L2 penalty over two views of a query: its cues
(``router/memory/query/cues.py``) and its vector from the bundled encoder. A query that asks for two
things counts for both of their kinds, mostly for the first.

How sure the model may be is measured, not assumed: every example is judged once by a model that
has not seen it, nor any other that begins with the same two words, and how often those judgements
were right is stored with the weights.

A test checks that the stored weights are what this makes.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.memory.query import classifier_model
from router.memory.query.classifier_model import (
    NOTHING,
    WEIGHTS_FILE,
    ClassifierModel,
    QueryKind,
    kind_named,
)
from router.memory.query.cues import cues
from router.numeric import log_odds
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.contrast import softmax
from router.text import tokens

EXAMPLES_FILE: Final = Path(__file__).parent / "data" / "classifier_examples.txt"
FOLDS: Final = 5
STEPS: Final = 100
PENALTY: Final = 0.05
"""Both chosen by how well unseen examples are judged; the result changes little around them."""
MIN_OCCURRENCES: Final = 4
"""A cue of fewer examples is not learned from: it is a word of their topics."""
PRIMARY_SHARE: Final = 0.6
"""What the first of several kinds gets of an example; the others share the rest."""

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Example:
    """A query and what it asks for; of several kinds the first is the most important."""

    query: str
    kinds: tuple[QueryKind, ...]


def read_examples() -> list[Example]:
    """The examples of ``EXAMPLES_FILE``."""
    text = EXAMPLES_FILE.read_text(encoding="utf-8")
    found: list[Example] = []
    kinds: tuple[QueryKind, ...] = ()
    for line in text.splitlines():
        if line.startswith("["):
            kinds = tuple(map(kind_named, line.strip("[]").split(" + ")))
        elif line and not line.startswith("#"):
            found.append(Example(line, kinds))
    return found


class _Cues:
    """A sparse matrix of zeros and ones, its rows scaled to length 1: examples by cues."""

    def __init__(self, rows: Sequence[Sequence[int]], width: int) -> None:
        self._lengths = np.array([max(len(row), 1) for row in rows])
        # A row without cues refers to a last, empty column, so that every row has a start.
        filled = [row or (width,) for row in rows]
        self._columns = np.concatenate([np.asarray(row) for row in filled])
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)[:-1]])
        self._scale = (1 / np.sqrt(self._lengths)).astype(np.float32)[:, None]
        order = np.argsort(self._columns, kind="stable")
        owners = np.repeat(np.arange(len(rows)), self._lengths)
        self._owners = owners[order]
        self._used, self._column_starts = np.unique(self._columns[order], return_index=True)
        self._width = width

    def times(self, weights: Matrix) -> Matrix:
        padded = np.vstack([weights, np.zeros((1, weights.shape[1]), np.float32)])
        sums: Matrix = np.add.reduceat(padded[self._columns], self._starts)
        return np.asarray(sums * self._scale, dtype=np.float32)

    def transposed_times(self, errors: Matrix) -> Matrix:
        gathered = (errors * self._scale)[self._owners]
        product = np.zeros((self._width + 1, errors.shape[1]), np.float32)
        product[self._used] = np.add.reduceat(gathered, self._column_starts)
        return product[:-1]


def fit(rows: _Cues, width: int, vectors: Matrix, targets: Matrix, importance: Matrix) -> Matrix:
    """Weights of cues, of the encoder's dimensions and of the constant, one under the other.

    Nesterov's accelerated gradient from zero, a fixed number of steps. Each weight has a step of
    its own, so that rare cues are learned as soon as common ones: with Q the matrix of second
    derivatives, the row sums of |Q| on a diagonal bound Q from above.
    """
    dense: Matrix = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)])

    def scores(weights: Matrix, dense: Matrix) -> Matrix:
        return rows.times(weights[:width]) + np.asarray(dense @ weights[width:])

    def gradient(errors: Matrix, dense: Matrix) -> Matrix:
        return np.vstack([rows.transposed_times(errors), dense.T @ errors])

    sizes = np.abs(dense)
    ones = np.ones((width + dense.shape[1], 1), np.float32)
    step = 1 / (gradient(importance * scores(ones, sizes), sizes) / 2 + np.float32(PENALTY))

    weights = np.zeros((width + dense.shape[1], targets.shape[1]), np.float32)
    ahead, momentum = weights, 1.0
    for _ in range(STEPS):
        errors = importance * (softmax(scores(ahead, dense)) - targets)
        moved = ahead - step * (gradient(errors, dense) + np.float32(PENALTY) * ahead)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = moved + np.float32((momentum - 1) / following) * (moved - weights)
        weights, momentum = moved, following
    return weights


def train(examples: Sequence[Example], vectors: Matrix) -> ClassifierModel:
    """A model of these examples; ``vectors`` are theirs. Its confidence is not calibrated."""
    found = [cues(example.query) for example in examples]
    counts = Counter(name for names in found for name in names)
    kept = sorted(name for name, count in counts.items() if count >= MIN_OCCURRENCES)
    vocabulary = {name: number for number, name in enumerate(kept)}
    rows = [[vocabulary[name] for name in names if name in vocabulary] for names in found]

    kinds = sorted({kind for example in examples for kind in example.kinds}, key=_order)
    targets = np.zeros((len(examples), len(kinds)), np.float32)
    for row, example in zip(targets, examples, strict=True):
        primary, *others = (kinds.index(kind) for kind in example.kinds)
        row[primary] = PRIMARY_SHARE if others else 1.0
        row[others] = (1 - PRIMARY_SHARE) / max(len(others), 1)
    # Examples of kinds that have few count more, but not so much that each kind counts the same.
    sizes = targets.sum(axis=0)
    importance = np.sqrt(sizes.mean() / sizes)[targets.argmax(axis=1)][:, None]

    width = len(vocabulary)
    weights = fit(_Cues(rows, width), width, vectors, targets, importance)
    return ClassifierModel(
        tuple(kinds),
        vocabulary,
        weights[:width],
        weights[width:-1],
        weights[-1],
        (1.0, 0.0),
    )


def _order(kind: QueryKind) -> tuple[bool, str]:
    return kind == NOTHING, kind_name(kind)


def judged_unseen(examples: Sequence[Example], vectors: Matrix) -> list[NDArray[np.float32]]:
    """What a model that has not seen an example gives it: a probability for each kind."""
    folds = folds_of(examples)
    judged: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(examples)
    for fold in range(FOLDS):
        seen = [example for example, its in zip(examples, folds, strict=True) if its != fold]
        model = train(seen, vectors[folds != fold])
        for number in np.flatnonzero(folds == fold).tolist():
            found = cues(examples[number].query)
            judged[number] = model.probabilities(found, vectors[number])
    return judged


def calibrated(
    model: ClassifierModel, examples: Sequence[Example], vectors: Matrix
) -> ClassifierModel:
    """The model with the confidence that its judgements of unseen examples have earned."""
    signals, right = [], []
    for example, shares in zip(examples, judged_unseen(examples, vectors), strict=True):
        layer, share = model.likeliest_layer(shares)
        signals.append(log_odds(share))
        right.append(layer == example.kinds[0].primary)
    curve = logistic(np.array(signals), np.array(right, dtype=np.float64))
    return replace(model, confidence=curve)


def logistic(signal: NDArray[np.float64], right: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and intercept of P(right | signal), by Newton's method with a slight penalty."""
    inputs = np.stack([signal, np.ones_like(signal)], axis=1)
    found = np.zeros(2)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-(inputs @ found)))
        curvature = inputs.T @ (inputs * (chance * (1 - chance))[:, None]) + 1e-3 * np.eye(2)
        found += np.linalg.solve(curvature, inputs.T @ (right - chance) - 1e-3 * found)
    return float(found[0]), float(found[1])


def folds_of(examples: Sequence[Example]) -> NDArray[np.int64]:
    """A fold for each example; those that begin with the same two words share one."""
    opening = [" ".join(tokens(example.query)[:2]) for example in examples]
    return np.array([zlib.crc32(words.encode()) % FOLDS for words in opening])


def kind_name(kind: QueryKind) -> str:
    """The inverse of ``kind_named``."""
    return f"{kind.type}: {', '.join(kind.layers)}" if kind.type else "none"


def write(model: ClassifierModel, path: Path) -> None:
    """Write the file that ``ClassifierModel.load`` reads; weights keep three digits."""
    np.savez_compressed(
        path,
        kinds=_packed(map(kind_name, model.kinds)),
        cues=_packed(model.vocabulary),
        cue_weights=model.cue_weights.astype(np.float16),
        vector_weights=model.vector_weights.astype(np.float16),
        constants=model.constants,
        confidence=np.array(model.confidence),
    )


def _packed(names: Iterable[str]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(names).encode(), dtype=np.uint8)


def main() -> None:
    """Train on the examples and store the weights in the package."""
    examples = read_examples()
    vectors = BundledEncoder().encode([example.query for example in examples])
    model = calibrated(train(examples, vectors), examples, vectors)
    write(model, Path(classifier_model.__file__).with_name(WEIGHTS_FILE))


if __name__ == "__main__":
    main()
