"""Every metric that is reported, against another library's: scikit-learn, scipy, trec_eval, numpy.

The inputs are made by hypothesis and full of ties: confidences are multiples of 1/16, which, like
the edges of 1, 2, 4 or 8 bins, are exact in binary.
"""

from __future__ import annotations

import math
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.metrics import ndcg_score, precision_recall_curve, roc_auc_score

from benchmarks.metrics import COVERAGE, auroc, refused_at
from router.evaluation import hit_at_1, ndcg_at, percentile, recall_at
from router.learning.metrics import (
    aurc,
    expected_calibration_error,
    reliability_bins,
    risk_coverage,
)
from router.numeric import wilson

DEPTH = 5
SHARES = st.integers(0, 16).map(lambda number: number / 16)
ANSWERS = st.lists(st.tuples(SHARES, st.booleans()), min_size=1, max_size=60)
BINS = st.sampled_from([1, 2, 4, 8])
DOCUMENTS = [f"d{number}" for number in range(12)]
SCORED = st.dictionaries(st.sampled_from(DOCUMENTS), SHARES, min_size=1)
RELEVANT = st.sets(st.sampled_from(DOCUMENTS), min_size=1)


def apart(answers: list[tuple[float, bool]]) -> tuple[list[float], list[bool]]:
    return [confidence for confidence, _ in answers], [right for _, right in answers]


# --- confidences


@given(ANSWERS, BINS)
def test_the_reliability_diagram_is_the_calibration_curve(
    answers: list[tuple[float, bool]], bins: int
) -> None:
    confidences, right = apart(answers)
    found = reliability_bins(confidences, right, bins=bins)
    accuracy, confidence = calibration_curve(right, confidences, n_bins=bins, pos_label=True)
    assert [some.accuracy for some in found] == pytest.approx(accuracy.tolist())
    assert [some.confidence for some in found] == pytest.approx(confidence.tolist())


@given(ANSWERS, BINS)
def test_the_calibration_error_is_the_mean_gap_of_the_calibration_curve(
    answers: list[tuple[float, bool]], bins: int
) -> None:
    confidences, right = apart(answers)
    accuracy, confidence = calibration_curve(right, confidences, n_bins=bins, pos_label=True)
    edges = np.linspace(0, 1, bins + 1)
    edges[0] = -1  # numpy's bins hold their lower edge, and ours the upper one
    counts, _ = np.histogram(-np.array(confidences), bins=-edges[::-1])
    weights = counts[::-1][counts[::-1] > 0]
    gap = np.average(np.abs(accuracy - confidence), weights=weights)
    assert expected_calibration_error(confidences, right, bins=bins) == pytest.approx(gap)


@given(ANSWERS)
def test_the_risk_of_each_confidence_is_what_precision_leaves(
    answers: list[tuple[float, bool]],
) -> None:
    confidences, right = apart([*answers, (0.0, True)])  # there is no precision without a positive
    precision, _, thresholds = precision_recall_curve(right, confidences)
    curve = risk_coverage(confidences, right)
    for threshold, share in zip(thresholds, precision, strict=False):
        kept = sum(confidence >= threshold for confidence in confidences)
        coverage, risk = curve[kept - 1]
        assert (coverage, risk) == pytest.approx((kept / len(right), 1 - share))


@given(st.lists(st.tuples(SHARES, st.booleans()), min_size=1, max_size=5))
def test_the_area_under_the_curve_is_the_mean_over_every_order_of_ties(
    answers: list[tuple[float, bool]],
) -> None:
    areas = []
    for order in permutations(answers):
        if all(before >= after for (before, _), (after, _) in pairwise(order)):
            wrong = np.cumsum([not right for _, right in order])
            areas.append(np.mean(wrong / np.arange(1, len(order) + 1)))
    assert aurc(*apart(answers)) == pytest.approx(np.mean(areas))


# --- scores


@given(st.lists(SHARES, min_size=1), st.lists(SHARES, min_size=1))
def test_the_auroc_is_the_area_under_the_curve(higher: list[float], lower: list[float]) -> None:
    labels = [1] * len(higher) + [0] * len(lower)
    assert auroc(higher, lower) == pytest.approx(roc_auc_score(labels, higher + lower))


@given(st.lists(SHARES, min_size=1), st.lists(SHARES, min_size=1))
def test_a_threshold_keeps_at_least_its_share(inside: list[float], outside: list[float]) -> None:
    both = np.array([*inside, *outside])
    refused = refused_at(COVERAGE, np.array(inside), both)
    assert (~refused[: len(inside)]).sum() >= math.floor(COVERAGE * len(inside))
    assert both[refused].max(initial=-1) < both[~refused].min()


@given(st.lists(SHARES, min_size=1), st.sampled_from([50, 90, 99]))
def test_a_percentile_is_numpys_that_did_occur(values: list[float], percent: int) -> None:
    theirs = np.percentile(values, percent, method="inverted_cdf")
    assert percentile(values, percent) == theirs


# --- rankings


def of_trec(scores: dict[str, float], relevant: set[str]) -> dict[str, float]:
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"q": dict.fromkeys(relevant, 1)}, {"ndcg_cut.5", "recall.5", "success.1"}
    )
    found: dict[str, float] = evaluator.evaluate({"q": scores})["q"]
    return found


@given(SCORED, RELEVANT)
def test_rankings_are_measured_as_trec_eval_does(
    scores: dict[str, float], relevant: set[str]
) -> None:
    # trec_eval ranks equal scores by name, the last one first.
    ranked = sorted(scores, key=lambda name: (scores[name], name), reverse=True)
    labels = sorted(relevant)
    theirs = of_trec(scores, relevant)
    assert ndcg_at(ranked, labels, DEPTH) == pytest.approx(theirs["ndcg_cut_5"])
    assert recall_at(ranked, labels, DEPTH) == pytest.approx(theirs["recall_5"])
    assert hit_at_1(ranked, labels) == bool(theirs["success_1"])


@given(st.permutations(DOCUMENTS), RELEVANT, st.integers(1, 12))
def test_the_gain_of_a_whole_ranking_is_that_of_scikit_learn(
    ranked: list[str], relevant: set[str], depth: int
) -> None:
    gains = [[float(name in relevant) for name in ranked]]
    falling: list[list[Any]] = [[-float(place) for place in range(len(ranked))]]
    theirs = ndcg_score(gains, falling, k=depth)
    assert ndcg_at(ranked, sorted(relevant), depth) == pytest.approx(theirs)


# --- intervals


@given(st.integers(1, 2_000), st.data())
def test_intervals_of_a_share_are_those_of_scipy(trials: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, trials))
    confidence = data.draw(st.sampled_from([0.9, 0.95, 0.99]))
    theirs = binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    found = wilson(successes, trials, confidence=confidence)
    assert found == pytest.approx((theirs.low, theirs.high), abs=1e-9)
