"""Numbers from outside, and probabilities."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.numeric import dollars, finite, log_odds, logistic, wilson


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, 1.0), (0.5, 0.5), (True, None), ("1", None), (math.nan, None), (10**400, None)],
)
def test_only_finite_numbers_are_numbers(value: object, expected: float | None) -> None:
    assert finite(value) == expected


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (0.0, "0.00 dollars"),
        (0.00123, "0.0012 dollars"),
        (0.0000345, "0.000034 dollars"),
        (0.34, "0.34 dollars"),
        (2, "2.00 dollars"),
        (1234.567, "1,234.57 dollars"),
        (math.nan, "nan dollars"),
        (math.inf, "inf dollars"),
    ],
)
def test_a_sum_of_dollars_is_said_however_small_it_is(amount: float, said: str) -> None:
    """What a few calls cost was said to be 0.00 dollars."""
    assert dollars(amount) == said


def test_log_odds_beyond_thirty_count_as_thirty() -> None:
    assert logistic(0) == 0.5
    assert logistic(1e9) == logistic(30) < 1
    assert logistic(-1e9) == logistic(-30) > 0


@given(st.floats(1e-6, 1 - 1e-6))
def test_log_odds_and_probability_say_the_same(probability: float) -> None:
    assert logistic(log_odds(probability)) == pytest.approx(probability)


def test_the_log_odds_of_what_is_certain_are_finite() -> None:
    assert math.isfinite(log_odds(0)) and log_odds(1) == pytest.approx(-log_odds(0))


@given(st.integers(0, 500), st.integers(0, 500))
def test_wilson_holds_the_share_and_stays_between_0_and_1(successes: int, failures: int) -> None:
    low, high = wilson(successes, successes + failures)
    share = successes / (successes + failures) if successes + failures else 0.5
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1


def test_wilson_at_a_known_point() -> None:
    assert wilson(10, 100) == pytest.approx((0.05523, 0.17437), abs=1e-5)
