"""Figures about confidences, against hand-made cases and sums that need no approximation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.learning.metrics import (
    aurc,
    expected_calibration_error,
    reliability_bins,
    risk_coverage,
)


def test_a_confidence_on_an_edge_belongs_to_the_lower_bin() -> None:
    bins = reliability_bins([0.0, 0.5, 0.51], [False, True, True], bins=2)
    assert [(some.low, some.high, some.count) for some in bins] == [(0.0, 0.5, 2), (0.5, 1.0, 1)]


def test_calibration_error_weighs_the_gap_of_each_bin_by_its_answers() -> None:
    confidences = [0.2, 0.2, 0.2, 0.9]
    right = [True, False, False, True]
    expected = 3 / 4 * abs(0.2 - 1 / 3) + 1 / 4 * abs(0.9 - 1)
    assert expected_calibration_error(confidences, right, bins=2) == pytest.approx(expected)


def test_the_risk_coverage_curve_counts_from_the_most_confident() -> None:
    points = risk_coverage([0.9, 0.3, 0.6], [True, False, False])
    assert points == ((1 / 3, 0.0), (2 / 3, 1 / 2), (1.0, 2 / 3))
    assert aurc([0.9, 0.3, 0.6], [True, False, False]) == pytest.approx((0 + 1 / 2 + 2 / 3) / 3)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.booleans()), min_size=1), st.data())
def test_the_order_of_the_rows_does_not_matter(
    rows: list[tuple[float, bool]], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rows))
    first = aurc([c for c, _ in rows], [r for _, r in rows])
    assert aurc([c for c, _ in shuffled], [r for _, r in shuffled]) == pytest.approx(first)


@pytest.mark.parametrize("confidences", [[1.5], [-0.1], [math.nan]])
def test_a_confidence_outside_its_range_is_refused(confidences: list[float]) -> None:
    with pytest.raises(ValueError, match="outside"):
        expected_calibration_error(confidences, [True])


def test_sequences_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="2 confidences for 1 outcomes"):
        risk_coverage([0.1, 0.2], [True])


@pytest.mark.parametrize("measure", [expected_calibration_error, aurc])
def test_no_answers_have_no_figure(measure: object) -> None:
    assert callable(measure)
    with pytest.raises(ValueError, match="no answers"):
        measure([], [])
