"""What tells the examples of one skill from those of the others."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import harmonic_mean, mean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from router.retrieval import contrast as module
from router.retrieval.contrast import (
    HALF_STEP_PROBABILITY,
    SHARPNESS,
    SHRINKAGE,
    STEP,
    STEPS,
    Contrast,
)
from router.retrieval.encoders import unit

DIMENSIONS = 6
COUNTS = (3, 1, 2, 5)
PLACES = np.arange(len(COUNTS))


def examples(count: int, seed: int = 0) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).normal(size=(count, DIMENSIONS))
    return unit(drawn.astype(np.float32))


def contrast_of(skills: Sequence[NDArray[np.float32]]) -> Contrast:
    """Of the examples of each skill."""
    means = unit(np.stack([rows.sum(axis=0) for rows in skills]))
    return Contrast(np.concatenate(skills), np.array([len(rows) for rows in skills]), means)


SKILLS = [examples(count, number) for number, count in enumerate(COUNTS)]
REQUESTS = examples(4, 99)


def by_the_formula(steps: int = STEPS) -> NDArray[np.float64]:
    """What the module says, one example after the other; shape (requests, skills)."""
    middle = np.concatenate(SKILLS).mean(axis=0)
    weights = np.zeros((len(SKILLS), DIMENSIONS))
    trust = 0.0
    for step in range(steps):
        change = np.zeros_like(weights)
        right = []
        for owner, own in enumerate(SKILLS):
            for number, row in enumerate(own if len(own) > 1 else ()):
                means = [some.mean(axis=0) for some in SKILLS]
                means[owner] = np.delete(own, number, axis=0).mean(axis=0)
                cosines = np.array([row @ mean / np.linalg.norm(mean) for mean in means])
                shares = np.exp(SHARPNESS * cosines + weights @ (row - middle))
                shares /= shares.sum()
                right.append(shares[owner])
                wrong = (owner == PLACES) - shares
                change += STEP * wrong[:, np.newaxis] / len(own) * (row - middle)
        if not step:
            trust = np.mean(right) ** 2 / (np.mean(right) ** 2 + HALF_STEP_PROBABILITY**2)
            trust *= len(SKILLS) / (len(SKILLS) + module.HALF_STEP_SKILLS)
            trust *= (harmonic_mean(COUNTS) / mean(COUNTS)) ** 2 * steps / STEPS
        weights += trust * change
    more = np.maximum(np.array(COUNTS)[:, np.newaxis] - 2, 0)
    told = (REQUESTS - middle) @ (weights * more / (more + SHRINKAGE)).T
    return np.asarray(told - told.max(axis=1, keepdims=True))


def test_skills_are_told_apart_by_the_formula() -> None:
    found = contrast_of(SKILLS).adjustments(REQUESTS, PLACES)
    assert found == pytest.approx(by_the_formula(), abs=1e-5)
    assert np.ptp(found) > 0.05


def test_there_are_as_many_steps_as_the_bound_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAIRS", 2 * sum(COUNTS) * len(COUNTS))
    found = contrast_of(SKILLS).adjustments(REQUESTS, PLACES)
    assert found == pytest.approx(by_the_formula(2), abs=1e-5)


@pytest.mark.parametrize(("wish", "least", "most"), [(0.0, 0.0, 0.1), (4.0, 0.6, 1.0)])
def test_as_much_is_learnt_as_examples_know_of_one_that_is_left_out(
    monkeypatch: pytest.MonkeyPatch, wish: float, least: float, most: float
) -> None:
    """The examples of a skill are one wish in other words, or each is something else."""
    skills = [unit(examples(4, number) + wish * examples(1, 100 + number)) for number in range(30)]

    def learnt() -> float:
        return float(
            np.ptp(contrast_of(skills).adjustments(REQUESTS, np.arange(30)), axis=1).mean()
        )

    trusted = learnt()
    monkeypatch.setattr(module, "HALF_STEP_PROBABILITY", 0)
    assert least < trusted / learnt() < most


def test_what_neighbours_share_says_less_than_what_one_has_alone() -> None:
    shared, mine, others, far = np.eye(4, dtype=np.float32)
    skills = [
        unit(np.stack(2 * [2 * shared + own, shared + own, shared + 2 * own]))
        for own in (mine, others)
    ]
    found = contrast_of([*skills, unit(np.stack([far, far + shared]))])
    told = found.adjustments(np.stack([mine, shared, others]), np.arange(2))
    assert told[0, 0] > told[0, 1] + 0.005
    assert abs(told[1, 0] - told[1, 1]) < 1e-5
    assert told[2, 1] > told[2, 0] + 0.005


@given(st.permutations(range(len(COUNTS))))
def test_the_order_of_the_skills_does_not_matter(order: list[int]) -> None:
    found = contrast_of([SKILLS[place] for place in order]).adjustments(REQUESTS, PLACES)
    before = contrast_of(SKILLS).adjustments(REQUESTS, np.array(order))
    assert found == pytest.approx(before, abs=1e-5)


def test_some_skills_are_told_what_they_are_among_all() -> None:
    contrast = contrast_of(SKILLS)
    some = np.array([3, 0])
    assert contrast.adjustments(REQUESTS, some) == pytest.approx(
        contrast.adjustments(REQUESTS, PLACES)[:, some]
    )


@pytest.mark.parametrize("count", [1, 2])
def test_one_or_two_examples_teach_nothing(count: int) -> None:
    found = contrast_of([examples(count, 1), examples(count, 2)]).adjustments(
        REQUESTS, np.arange(2)
    )
    assert not found.any()


@pytest.mark.parametrize("what", ["one skill", "too many", "quantised", "opposite"])
def test_where_nothing_can_be_told_apart_nothing_is_added(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    skills = SKILLS[:1] if what == "one skill" else SKILLS
    if what == "too many":
        monkeypatch.setattr(module, "MAX_PAIRS", sum(COUNTS) * len(COUNTS) - 1)
    rows, count = np.concatenate(skills), np.array([len(each) for each in skills])
    if what == "quantised":
        rows = np.rint(rows * 127).astype(np.int8)
    means = unit(np.stack([each.sum(axis=0) for each in skills]))
    if what == "opposite":  # what is left of a mean without one example may be nothing
        rows = np.stack([REQUESTS[0], -REQUESTS[0], REQUESTS[1], REQUESTS[1], REQUESTS[1]])
        count, means = np.array([2, 3]), np.stack([np.zeros_like(REQUESTS[0]), REQUESTS[1]])
    found = Contrast(rows, count, means).adjustments(REQUESTS, np.arange(len(means)))
    assert found.shape == (len(REQUESTS), len(means))
    assert np.isfinite(found).all()
    assert found.any() == (what == "opposite")
