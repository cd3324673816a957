"""The examples, the weights that came of them, and how sure they make the classifier."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.classifier_training import (
    Example,
    Matrix,
    folds_of,
    judged_unseen,
    read_examples,
    train,
)
from router.memory.query.classifier_model import NOTHING, ClassifierModel
from router.memory.query.routing_table import ROUTING_TABLE
from router.result import MEMORY_LAYERS
from router.retrieval.bundled_encoder import BundledEncoder


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return read_examples()


@pytest.fixture(scope="module")
def vectors(examples: list[Example]) -> Matrix:
    return BundledEncoder().encode([example.query for example in examples])


def test_there_are_many_examples_of_every_layer_and_of_none(examples: list[Example]) -> None:
    counts = dict.fromkeys((*MEMORY_LAYERS, None), 0)
    for example in examples:
        counts[example.kinds[0].primary] += 1
    assert min(counts.values()) >= 150


def test_no_example_stands_twice(examples: list[Example]) -> None:
    queries = [example.query.casefold() for example in examples]
    assert len(set(queries)) == len(queries)


def test_every_kind_of_example_has_a_route_in_the_table(examples: list[Example]) -> None:
    for kind in {kind for example in examples for kind in example.kinds} - {NOTHING}:
        assert kind.type is not None
        assert kind.primary in ROUTING_TABLE[kind.type].primary


def test_the_stored_weights_are_what_the_examples_teach(
    examples: list[Example], vectors: Matrix
) -> None:
    trained = train(examples, vectors)
    stored = ClassifierModel.load()
    assert stored.kinds == trained.kinds
    assert stored.vocabulary == trained.vocabulary
    # Half precision keeps three digits; another machine adds in another order.
    np.testing.assert_allclose(stored.cue_weights, trained.cue_weights, atol=0.01)
    np.testing.assert_allclose(stored.vector_weights, trained.vector_weights, atol=0.02)
    np.testing.assert_allclose(stored.constants, trained.constants, atol=0.01)


def test_confidence_is_how_often_unseen_examples_are_judged_rightly(
    examples: list[Example], vectors: Matrix
) -> None:
    model = ClassifierModel.load()
    shares = judged_unseen(examples, vectors)
    best = [model.likeliest_layer(share) for share in shares]
    right = np.array(
        [layer == its.kinds[0].primary for (layer, _), its in zip(best, examples, strict=True)]
    )
    confidence = np.array([model.confidence_of(share) for _, share in best])
    assert right.mean() > 0.8
    for low, high in ((0.4, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.0)):
        some = (confidence >= low) & (confidence < high)
        assert abs(right[some].mean() - confidence[some].mean()) < 0.05


def test_examples_that_begin_alike_are_never_on_both_sides(examples: list[Example]) -> None:
    folds = folds_of(examples)
    openings: dict[str, set[int]] = {}
    for example, fold in zip(examples, folds.tolist(), strict=True):
        openings.setdefault(" ".join(example.query.lower().split()[:2]), set()).add(fold)
    assert len(openings["how do"]) == 1
    assert len(set(folds.tolist())) == 5
