"""How far examples fitted: coverage, probabilities, and retrieval's part in both."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from router.learning.coverage import (
    FULLY_COVERED_FROM,
    MIN_EXAMPLES,
    MIN_WEIGHT,
    RETRIEVAL_WEIGHT,
    ExampleCoverage,
    uncovered_share,
)
from router.learning.head import Head

TOPICS = 60
PER_TOPIC = 6


def examples(seed: int = 0) -> tuple[list[str], list[str], NDArray[np.float32]]:
    """Requests of topics that lie apart."""
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(TOPICS, 32))
    vectors = np.repeat(centres, PER_TOPIC, axis=0)
    vectors += 0.4 * draw.normal(size=vectors.shape)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = [f"topic-{n}" for n in range(TOPICS) for _ in range(PER_TOPIC)]
    texts = [f"word{n} more{m}" for n in range(TOPICS) for m in range(PER_TOPIC)]
    return texts, labels, vectors.astype(np.float32)


@pytest.fixture(scope="module")
def fitted() -> ExampleCoverage:
    found = ExampleCoverage.fit(*examples())
    assert found is not None
    return found


def test_a_request_of_a_topic_without_examples_is_covered_less(fitted: ExampleCoverage) -> None:
    texts, labels, vectors = examples()
    known = [n for n, label in enumerate(labels) if label not in ("topic-0", "topic-1")]
    head = Head.fit([texts[n] for n in known], [labels[n] for n in known], vectors[known])

    def mean_coverage(rows: list[int]) -> float:
        scores = head.scores([texts[n] for n in rows], vectors[rows])
        return float(np.mean([fitted.coverage(row, uncovered=0.5, fits=0.5) for row in scores]))

    unknown = [n for n in range(len(labels)) if n not in known]
    assert mean_coverage(unknown) < mean_coverage(known) - 0.2


def test_too_few_examples_tell_nothing() -> None:
    texts, labels, vectors = examples()
    few = slice(0, MIN_EXAMPLES - 1)
    assert ExampleCoverage.fit(texts[few], labels[few], vectors[few]) is None


def test_examples_that_cannot_be_held_out_tell_nothing() -> None:
    texts, _, vectors = examples()
    each_its_own = [f"answer-{n}" for n in range(len(texts))]
    assert ExampleCoverage.fit(texts, each_its_own, vectors) is None


def test_retrieval_counts_less_the_more_examples_there_are() -> None:
    texts, labels, vectors = examples()
    few = ExampleCoverage.fit(texts, labels, vectors)
    many = ExampleCoverage.fit(texts * 4, labels * 4, np.tile(vectors, (4, 1)))
    assert few is not None and many is not None
    assert few.weight == pytest.approx(RETRIEVAL_WEIGHT / math.sqrt(PER_TOPIC))
    assert many.weight == MIN_WEIGHT


@given(
    st.lists(st.floats(-20, 20, width=32), min_size=2, max_size=8),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_coverage_is_a_probability_that_falls_with_what_is_expected_uncovered(
    fitted: ExampleCoverage, scores: list[float], first: float, second: float
) -> None:
    row = np.array(scores, dtype=np.float32)
    low, high = sorted((first, second))
    fewer, more = (fitted.coverage(row, uncovered=share, fits=0.5) for share in (low, high))
    assert 0 <= more <= fewer <= 1


@example(rows=[(0.0, 0.0), (0.0, 1.5e-105)])
@given(
    rows=st.lists(
        st.tuples(st.floats(-20, 20, width=32), st.floats(0, 2)),
        min_size=2,
        max_size=8,
    )
)
def test_the_likeliest_answer_stays_the_likeliest_and_no_probability_passes_one(
    fitted: ExampleCoverage, rows: list[tuple[float, float]]
) -> None:
    scores = np.array([score for score, _ in rows], dtype=np.float32)
    support = np.array([score for _, score in rows])
    right = fitted.probabilities(scores, support)
    # Scores that differ by less than floating point can tell apart share the highest probability.
    assert right[(scores + support).argmax()] == right.max()
    assert right.min() >= 0 and right.max() <= 1


def test_what_retrieval_finds_decides_between_equal_scores(fitted: ExampleCoverage) -> None:
    right = fitted.probabilities(np.zeros(3, dtype=np.float32), np.array([0.1, 0.9, 0.1]))
    assert right.argmax() == 1


def test_an_answer_of_several_skills_takes_the_mean_of_what_retrieval_says(
    fitted: ExampleCoverage,
) -> None:
    found = {"a": 1.0, "b": 0.5, "c": 0.2}
    support = fitted.support([("a",), ("a", "b"), ("not-found",)], found, fits=0.5)
    assert (support / fitted.weight).tolist() == pytest.approx([1.0, 0.75, 0.2])


@given(st.floats(0.01, 0.99))
def test_no_skill_stands_beside_the_best_match_as_the_odds_that_anything_fits_say(
    fitted: ExampleCoverage, fits: float
) -> None:
    best, none = fitted.support([("a",), ()], {"a": 1.0, "b": 0.5}, fits=fits)
    assert best - none == pytest.approx(math.log(fits / (1 - fits)))


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_request_that_seems_to_fit_nothing_is_covered_less(
    fitted: ExampleCoverage, first: float, second: float
) -> None:
    low, high = sorted((first, second))
    row = np.array([2.0, 1.0], dtype=np.float32)
    less, more = (fitted.coverage(row, uncovered=0.2, fits=fits) for fits in (low, high))
    assert less <= more


def test_where_retrieval_finds_nothing_it_says_nothing(fitted: ExampleCoverage) -> None:
    assert fitted.support([("a",), ()], {}, fits=0.5).tolist() == [0.0, 0.0]
    assert uncovered_share({}, {"a": 9}) == 0


def test_the_uncovered_share_is_the_part_of_what_was_found_without_examples() -> None:
    assert uncovered_share({"a": 0.5, "b": 0.5}, {"a": FULLY_COVERED_FROM}) == pytest.approx(0.5)
    assert uncovered_share(
        {"a": 0.5, "b": 0.5}, {"a": FULLY_COVERED_FROM, "b": 2}
    ) == pytest.approx(0.3)
    better = uncovered_share({"a": 0.2, "b": 0.9}, {"a": 100})
    assert better == pytest.approx(1 / (1 + math.exp(-4 * 0.7)))
