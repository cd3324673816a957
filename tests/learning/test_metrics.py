"""Figures about confidences: edges of bins, and what is refused. Their values are compared with
those of other libraries in ``tests/benchmarks/test_metric_oracles.py``."""

from __future__ import annotations

import math

import pytest

from router.learning.metrics import (
    aurc,
    expected_calibration_error,
    reliability_bins,
    risk_coverage,
)


def test_a_confidence_on_an_edge_belongs_to_the_lower_bin() -> None:
    bins = reliability_bins([0.0, 0.5, 0.51], [False, True, True], bins=2)
    assert [(some.low, some.high, some.count) for some in bins] == [(0.0, 0.5, 2), (0.5, 1.0, 1)]


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
