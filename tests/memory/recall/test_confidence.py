"""The five factors of an item's confidence, and what each can reach."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_layers import NOW, remembered

from router.memory.model import MemoryItem
from router.memory.recall.confidence import (
    FACTOR_WEIGHTS,
    ItemConfidence,
    Level,
    age_days,
    completeness,
    consistencies,
    recency,
)


def said(content: str, **values: Any) -> MemoryItem:
    return remembered("semantic", content, **values)


def consistency(content: str, *others: str) -> float:
    items = [said(content), *(said(other) for other in others)]
    return consistencies(items[:1], among=items)[0]


def test_the_weights_are_the_documented_ones_and_sum_to_one() -> None:
    assert dict(FACTOR_WEIGHTS) == {
        "relevance": 0.35,
        "source_quality": 0.25,
        "recency": 0.15,
        "consistency": 0.15,
        "completeness": 0.10,
    }
    assert sum(FACTOR_WEIGHTS.values()) == pytest.approx(1.0)


@pytest.mark.parametrize(("days", "expected"), [(0, 1.0), (1, 0.95), (7, 0.3), (30, 0.0)])
def test_recency_passes_through_the_documented_points(days: float, expected: float) -> None:
    assert recency(days) == pytest.approx(expected, abs=0.001)


@given(st.floats(0, 40_000), st.floats(0, 40_000))
def test_recency_never_rises_with_age_and_stays_in_its_range(one: float, other: float) -> None:
    younger, older = sorted((one, other))
    assert 0 <= recency(older) <= recency(younger) <= 1


def test_an_event_to_come_is_as_fresh_as_can_be() -> None:
    assert age_days(said("the launch", days_old=-30), NOW) == 0.0


@pytest.mark.parametrize(
    ("overall", "level"),
    [
        (1.0, Level.VERY_HIGH),
        (0.9, Level.VERY_HIGH),
        (0.899, Level.HIGH),
        (0.7, Level.HIGH),
        (0.699, Level.MEDIUM),
        (0.5, Level.MEDIUM),
        (0.499, Level.LOW),
        (0.3, Level.LOW),
        (0.299, Level.VERY_LOW),
        (0.0, Level.VERY_LOW),
    ],
)
def test_each_level_begins_where_documented(overall: float, level: Level) -> None:
    assert Level.of(overall) is level


@pytest.mark.parametrize("value", [0.0, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_the_overall_figure_of_equal_factors_is_that_figure(value: float) -> None:
    assert ItemConfidence(value, value, value, value, value).overall == value


@given(st.tuples(*[st.floats(0, 1)] * 5))
def test_the_overall_figure_lies_between_the_factors(
    factors: tuple[float, float, float, float, float],
) -> None:
    overall = ItemConfidence(*factors).overall
    assert min(factors) - 1e-9 <= overall <= max(factors) + 1e-9


def test_an_irrelevant_item_can_score_above_a_half_which_is_why_the_factors_gate_nothing() -> None:
    assert ItemConfidence(0.0, 0.85, 1.0, 1.0, 1.0).overall > 0.5


def test_completeness_reaches_both_ends() -> None:
    bare = said("x")
    full = said("x", type="fact", tags=("a",), provenance=("file:a",), attributes={"owner": "me"})
    assert completeness(bare) == 0.0
    assert completeness(said("x", tags=("a",))) == 0.25
    assert completeness(full) == 1.0


def test_an_item_that_stands_alone_contradicts_nothing() -> None:
    assert (
        consistency("The gateway times out after 30 seconds.", "Lunch is at noon on Friday.") == 1
    )


def test_two_items_that_name_different_numbers_of_one_matter_halve_each_other() -> None:
    one = "The gateway request timeout is 30 seconds."
    other = "The gateway request timeout is 60 seconds."
    assert consistency(one, other) == 0.5


def test_two_values_of_one_thing_halve_each_other() -> None:
    assert consistency("The wifi password is hunter2", "The wifi password is swordfish") == 0.5
    assert consistency("Mia likes tea", "Mia likes cake") == 1
    ours, theirs = "The production server runs on port 80", "The staging server runs on port 90"
    assert consistency(ours, theirs) == 1


def test_the_majority_is_more_consistent_than_the_odd_one_out() -> None:
    usual = "The gateway request timeout is 30 seconds."
    same = "Gateway request timeout: 30 seconds"
    odd = "The gateway request timeout is 60 seconds."
    assert consistency(usual, same, odd) == pytest.approx(2 / 3)
    assert consistency(odd, usual, same) == pytest.approx(1 / 3)


def test_a_denial_contradicts_its_assertion() -> None:
    assert (
        consistency("We use Redis for session storage", "We do not use Redis for session storage")
        == 0.5
    )


@pytest.mark.parametrize(
    ("one", "other", "agreement"),
    [
        ("Refunds are allowed", "Refunds are not allowed", 0.5),
        ("The API is public", "The API is not public", 0.5),
        ("Tom likes olives", "Tom hates olives", 0.5),
        ("Photos are allowed", "Photos are forbidden", 0.5),
        ("Photos are forbidden", "Photos are not allowed", 1),
        ("Backups are encrypted", "Backups are never deleted", 1),
        ("The API is public", "The admin API is not public", 1),
    ],
)
def test_a_short_denial_and_an_opposite_contradict(one: str, other: str, agreement: float) -> None:
    assert consistency(one, other) == agreement


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Oven 1 runs at 230 degrees.", "Oven 2 runs at 180 degrees."),
        ("Oven 1 is clean.", "Oven 2 is not clean."),
        ("Version 2.3 needs Python 3.9.", "Version 3.0 needs Python 3.12."),
        ("Apartment 3 pays 700 euros.", "Apartment 4 pays 820 euros."),
        ("Barrel 12 stands in aisle 3.", "Barrel 13 stands in aisle 4."),
        ("The oven in Ulm runs at 230 degrees.", "The oven in Bern runs at 180 degrees."),
    ],
)
def test_what_is_said_of_two_things_does_not_contradict_each_other(one: str, other: str) -> None:
    """A number in a subject tells things apart, and is no value."""
    assert consistency(one, other) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The hall costs 40 euros on weekdays", "The hall costs 60 euros on Sundays"),
        ("Tyres are inflated to 5.2 bar in the dry", "Tyres are inflated to 4.6 bar in the rain"),
        ("The hall costs 40 euros for residents", "The hall costs 60 euros for visitors"),
        ("The rent is 400 euros in the old building", "The rent is 700 euros in the new building"),
        (
            "Water samples are taken every 2 weeks at the mill",
            "Water samples are taken every 4 weeks at the spring",
        ),
        ("Dogs are allowed in the park in winter", "Dogs are not allowed in the park in summer"),
    ],
)
def test_what_is_said_of_two_cases_does_not_contradict_each_other(one: str, other: str) -> None:
    """Other words behind the same preposition, beside the value, tell two cases apart."""
    assert consistency(one, other) == 1


def test_numbers_that_only_one_item_names_contradict_nothing() -> None:
    assert (
        consistency("The gateway request timeout is 30 seconds", "gateway request timeout, seconds")
        == 1
    )


@pytest.mark.parametrize("mark", [{"obsolete": True}, {"superseded_by": "17"}])
def test_an_item_that_is_marked_as_outdated_is_not_consistent_at_all(mark: dict[str, Any]) -> None:
    item = said("The gateway times out after 30 seconds.", attributes=mark)
    assert consistencies([item], among=[item]) == [0.0]


def test_an_item_that_is_marked_as_valid_is_consistent() -> None:
    item = said("The gateway times out after 30 seconds.", attributes={"obsolete": False})
    assert consistencies([item], among=[item]) == [1.0]


@given(st.lists(st.text(alphabet="ab 12not", min_size=1).filter(str.strip), max_size=8))
def test_consistency_stays_in_its_range(contents: list[str]) -> None:
    items = [said(content) for content in contents]
    assert all(0 <= value <= 1 for value in consistencies(items, among=items))


def test_an_age_is_counted_from_when_it_was_remembered() -> None:
    item = said("x", days_old=3, accessed=NOW - timedelta(hours=1))
    assert age_days(item, NOW) == 3.0
