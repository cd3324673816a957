"""Confidences become probabilities: monotone, modest with few outcomes, never in-sample."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.learning.calibration import (
    ISOTONIC_PAIRS,
    MAX_PAIRS,
    MIN_PAIRS,
    Calibration,
    Calibrator,
    RiskModel,
)
from router.learning.metrics import expected_calibration_error

PAIRS = st.lists(
    st.tuples(st.floats(0, 1), st.booleans()), min_size=MIN_PAIRS, max_size=ISOTONIC_PAIRS + 50
)


def overconfident(count: int, *, seed: int) -> tuple[list[float], list[bool]]:
    """Stated p, right with probability p squared."""
    chance = random.Random(seed)
    stated = [chance.random() for _ in range(count)]
    return stated, [chance.random() < p * p for p in stated]


@given(PAIRS)
@settings(max_examples=40, deadline=None)
def test_more_confidence_never_means_less_probability(pairs: list[tuple[float, bool]]) -> None:
    calibrator = Calibrator.fit([raw for raw, _ in pairs], [right for _, right in pairs])
    values = [calibrator(step / 50) for step in range(51)]
    assert values == sorted(values)
    assert values[0] >= 0
    assert values[-1] <= 1


@given(PAIRS)
@settings(max_examples=20, deadline=None)
def test_the_order_of_equal_confidences_does_not_matter(pairs: list[tuple[float, bool]]) -> None:
    raws = [0.5] * len(pairs)
    rights = [right for _, right in pairs]
    forward, backward = (Calibrator.fit(raws, some) for some in (sorted(rights), rights))
    assert forward(0.5) == pytest.approx(backward(0.5), abs=1e-6)


@pytest.mark.parametrize("count", [200, 2_000])
def test_an_overconfident_stage_is_brought_down(count: int) -> None:
    calibrator = Calibrator.fit(*overconfident(count, seed=1))
    stated, right = overconfident(5_000, seed=2)
    before = expected_calibration_error(stated, right)
    after = expected_calibration_error([calibrator(raw) for raw in stated], right)
    assert before > 0.14
    assert after < 0.06


def test_a_shape_that_no_logistic_has_is_followed_with_many_pairs() -> None:
    chance = random.Random(3)
    stated = [chance.random() for _ in range(2_000)]
    right = [chance.random() < (0.5 if p < 0.8 else 0.98) for p in stated]
    calibrator = Calibrator.fit(stated, right)
    assert calibrator.method == "isotonic"
    assert calibrator(0.4) == pytest.approx(0.5, abs=0.08)
    assert calibrator(0.95) == pytest.approx(0.98, abs=0.03)


def test_a_lucky_streak_does_not_make_certain() -> None:
    calibrator = Calibrator.fit([0.7] * MIN_PAIRS, [True] * MIN_PAIRS)
    assert 0.7 < calibrator(0.7) < 0.97


def test_before_the_first_fit_there_is_no_calibrator() -> None:
    calibration = Calibration()
    for _ in range(MIN_PAIRS - 1):
        calibration.observe(0.8, right=True)
    assert calibration.calibrator is None
    assert calibration.outcomes == MIN_PAIRS - 1


def test_outcomes_are_taken_up_as_they_come() -> None:
    calibration = Calibration()
    for stated, right in zip(*overconfident(400, seed=5), strict=True):
        calibration.observe(stated, right=right)
    assert calibration.due
    calibration.adopt(calibration.fitting()())
    assert calibration.calibrator is not None
    assert calibration.outcomes == 400
    assert calibration.calibrator(0.6) == pytest.approx(0.36, abs=0.1)


def test_dropping_forgets_everything() -> None:
    calibration = Calibration()
    for _ in range(MIN_PAIRS):
        calibration.observe(0.8, right=False)
    late = calibration.fitting()
    calibration.drop()
    calibration.adopt(late())
    assert calibration.calibrator is None
    assert calibration.outcomes == 0
    calibration.observe(0.8, right=True)  # what is known anew makes no earlier fit right
    calibration.adopt(late())
    assert calibration.calibrator is None


def test_memory_is_bounded() -> None:
    calibration = Calibration()
    for number in range(MAX_PAIRS + 100):
        calibration.observe(0.5, right=number % 2 == 0)
    assert calibration.outcomes == MAX_PAIRS


def test_a_calibration_survives_json() -> None:
    calibration = Calibration()
    for stated, right in zip(*overconfident(500, seed=6), strict=True):
        calibration.observe(stated, right=right)
    calibration.adopt(calibration.fitting()())
    again = Calibration.from_dict(json.loads(json.dumps(calibration.to_dict())))
    assert again.calibrator == calibration.calibrator
    assert again.to_dict() == calibration.to_dict()


def test_a_confidence_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.2"):
        Calibration().observe(1.2, right=True)


def test_an_unknown_method_is_refused() -> None:
    calibration = Calibration()
    calibration.adopt(Calibrator.fit([0.5] * MIN_PAIRS, [True] * MIN_PAIRS))
    state = calibration.to_dict()
    state["calibrator"] = {"method": "magic"}
    with pytest.raises(ValueError, match="magic"):
        Calibration.from_dict(state)


def risky(count: int, *, floor: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Signals of shape (count, 2), outcomes, and the true P(wrong)."""
    chance = np.random.default_rng(seed)
    signals = chance.normal(size=(count, 2))
    true = floor + (1 - floor) / (1 + np.exp(1 + 2.5 * signals[:, 0]))
    return signals, chance.random(count) < true, true


def test_risks_come_close_to_the_truth() -> None:
    signals, wrong, _ = risky(3_000, floor=0.0, seed=1)
    model = RiskModel.fit(signals, wrong)
    fresh, _, true = risky(3_000, floor=0.0, seed=2)
    assert float(np.abs(model.risks(fresh) - true).mean()) < 0.02
    assert model.risk(fresh[0]) == pytest.approx(float(model.risks(fresh)[0]))


def test_a_floor_of_errors_shows_in_the_safest_answers() -> None:
    signals, wrong, _ = risky(4_000, floor=0.03, seed=3)
    model = RiskModel.fit(signals, wrong)
    assert model.risk(np.asarray([4.0, 0.0])) == pytest.approx(0.03, abs=0.012)


def test_without_a_single_error_a_risk_remains() -> None:
    signals = np.random.default_rng(4).normal(size=(150, 2))
    model = RiskModel.fit(signals, np.zeros(150, dtype=bool))
    assert float(model.risks(signals).mean()) > 0.005


def test_a_constant_signal_is_harmless() -> None:
    signals, wrong, _ = risky(300, floor=0.0, seed=5)
    signals[:, 1] = 7.0
    assert np.isfinite(RiskModel.fit(signals, wrong).risks(signals)).all()


def test_held_out_risks_do_not_know_their_own_outcomes() -> None:
    chance = np.random.default_rng(6)
    signals, wrong = chance.normal(size=(60, 12)), chance.random(60) < 0.5

    def separation(risks: np.ndarray) -> float:
        return float(risks[wrong].mean() - risks[~wrong].mean())

    model = RiskModel.fit(signals, wrong)
    assert separation(model.risks(signals)) > 0.05
    assert separation(model.held_out) < 0.01


def test_a_risk_model_survives_json() -> None:
    signals, wrong, _ = risky(300, floor=0.0, seed=7)
    model = RiskModel.fit(signals, wrong)
    again = RiskModel.from_dict(json.loads(json.dumps(model.to_dict())))
    assert np.array_equal(again.risks(signals), model.risks(signals))


def test_parts_that_do_not_fit_together_are_refused() -> None:
    signals, wrong, _ = risky(300, floor=0.0, seed=8)
    state = RiskModel.fit(signals, wrong).to_dict()
    with pytest.raises(ValueError, match="fit together"):
        RiskModel.from_dict({**state, "means": [0.0]})
