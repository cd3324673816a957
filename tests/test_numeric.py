"""Numbers from outside, and probabilities."""

from __future__ import annotations

import math

import pytest

from router.numeric import finite, logistic


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, 1.0), (0.5, 0.5), (True, None), ("1", None), (math.nan, None), (10**400, None)],
)
def test_only_finite_numbers_are_numbers(value: object, expected: float | None) -> None:
    assert finite(value) == expected


def test_log_odds_beyond_thirty_count_as_thirty() -> None:
    assert logistic(0) == 0.5
    assert logistic(1e9) == logistic(30) < 1
    assert logistic(-1e9) == logistic(-30) > 0
