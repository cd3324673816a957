"""What the words of a request say for each answer, by how often its examples have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from router.learning import words as module
from router.learning.features import Terms, terms_of
from router.learning.words import STRENGTH, WIDTH, WordCounts

TEXTS = ("cancel the order", "cancel my trip", "order shoes", "order more ink", "where is it", "")
ANSWERS = np.array([0, 0, 1, 1, 1, 2])
COUNTS = np.array([1.0, 2.0, 0.5, 0.5, 1.0, 1.0])


@pytest.fixture(autouse=True)
def _two_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_MEAN_EXAMPLES", 0)
    monkeypatch.setattr(module, "FULL_MEAN_EXAMPLES", 2)


def counted() -> WordCounts:
    return WordCounts.of(terms_of(TEXTS), ANSWERS, COUNTS)


def by_the_formula(text: str) -> list[float]:
    """With each term looked up in each example."""
    request = Terms.of(text)
    held = [set((terms.codes % WIDTH).tolist()) for terms in terms_of(TEXTS)]
    total, weights = np.zeros(3), 0.0
    for term, value in zip((request.codes % WIDTH).tolist(), request.values, strict=True):
        has = np.array([term in each for each in held])
        if not has.any():
            continue
        share = COUNTS[has].sum() / COUNTS.sum()
        for answer in range(3):
            own = answer == ANSWERS
            with_term = COUNTS[own & has].sum() + STRENGTH * share
            total[answer] += value**2 * np.log(with_term / (COUNTS[own].sum() + STRENGTH) / share)
        weights += value**2
    return [float(each / max(weights, 1e-9)) for each in total]


@pytest.mark.parametrize("text", ["cancel the order of ink", "order", "zebra it", "zebra", ""])
def test_scores_are_those_of_the_formula(text: str) -> None:
    assert counted().scores(Terms.of(text)) == pytest.approx(by_the_formula(text), abs=1e-5)


def test_a_word_speaks_for_the_answers_whose_examples_have_it() -> None:
    words = counted()
    assert words.scores(Terms.of("cancel")).argmax() == 0
    assert words.scores(Terms.of("shoes")).argmax() == 1
    assert not words.scores(Terms.of("zebra")).any()


def test_the_order_of_the_examples_does_not_matter() -> None:
    order = np.array([3, 5, 0, 4, 2, 1])
    again = WordCounts.of(terms_of([TEXTS[i] for i in order]), ANSWERS[order], COUNTS[order])
    for one, other in zip(counted(), again, strict=True):
        assert one == pytest.approx(other)


def test_with_few_examples_of_each_answer_their_words_say_less(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terms = Terms.of("cancel the order")
    whole = counted().scores(terms)
    monkeypatch.setattr(module, "FULL_MEAN_EXAMPLES", 4)
    assert counted().scores(terms) == pytest.approx(whole / 2)


def test_words_of_too_few_examples_say_nothing_and_take_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MIN_MEAN_EXAMPLES", 2)
    monkeypatch.setattr(module, "FULL_MEAN_EXAMPLES", 3)
    words = counted()
    assert words.fits(3)
    assert not words.fits(2)
    assert not words._replace(absent=np.ones(3, dtype=np.float32)).fits(3)
    assert sum(part.nbytes for part in words) == 12
    assert not words.scores(Terms.of("cancel the order")).any()


def test_examples_without_words_are_counted_as_well() -> None:
    words = WordCounts.of(terms_of(["", ""]), np.array([0, 1]), np.ones(2))
    assert words.fits(2)
    assert words.scores(Terms.of("anything")).tolist() == [0.0, 0.0]


def changed(part: str, value: Any) -> WordCounts:
    return counted()._replace(**{part: value})


def edited(values: NDArray[Any], place: int, value: float) -> NDArray[Any]:
    values = values.copy()
    values[place] = value
    return values


def test_counts_of_other_answers_or_torn_ones_do_not_fit() -> None:
    words = counted()
    assert words.fits(3)
    assert not words.fits(2)
    # Differences of these are at least 0, because they wrap around.
    wrapped = words.starts.copy()
    wrapped[-4:] = (2**31 - 1, -(2**31) + 5, -1, len(words.answers))
    torn: Sequence[WordCounts] = (
        changed("starts", words.starts[:-1]),
        changed("starts", words.starts.astype(np.int64)),
        changed("gains", words.gains.astype(np.float64)),
        changed("starts", edited(words.starts, 0, 1)),
        changed("starts", edited(words.starts, WIDTH // 2, 10**6)),
        changed("starts", wrapped),
        changed("answers", words.answers[:-1]),
        changed("answers", edited(words.answers, 0, 3)),
        changed("answers", edited(words.answers, 0, -1)),
        changed("gains", edited(words.gains, 0, np.nan)),
        changed("gains", words.gains[:, np.newaxis]),
        changed("absent", edited(words.absent, 0, np.inf)),
    )
    for each in torn:
        assert not each.fits(3)
