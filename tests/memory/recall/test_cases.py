"""Statements about two cases of one matter, which are both true."""

from __future__ import annotations

import pytest

from router.memory.recall.cases import name_two_cases


def of_two_cases(one: str, other: str, *, is_change: bool = False) -> bool:
    negated = ["not" in text.split() for text in (one, other)]
    return name_two_cases(
        one, other, is_one_negated=negated[0], is_other_negated=negated[1], is_change=is_change
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The hall costs 40 euros on weekdays.", "The hall costs 60 euros on Sundays."),
        ("The hall costs 40 euros for residents.", "The hall costs 60 euros for visitors."),
        ("Samples are taken every 2 weeks at the mill.", "Samples are every 4 at the spring."),
        ("Dogs are allowed in the park in winter.", "Dogs are not allowed in the park in summer."),
        ("Parking is free in the evening.", "Parking is not free on Saturdays."),
        ("The lights go at the end of act one.", "The lights go at the end of act two."),
    ],
)
def test_different_words_behind_one_preposition_are_two_cases(one: str, other: str) -> None:
    assert of_two_cases(one, other)
    assert of_two_cases(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The hall costs 40 euros on weekdays.", "The hall costs 60 euros on weekdays."),
        ("The hall costs 40 euros.", "The hall costs 60 euros on Sundays."),
        ("The team meets on Mondays.", "The team meets on Tuesdays."),  # the day is the value
        ("The bus leaves at 8:10.", "The bus leaves at 8:25."),
    ],
)
def test_another_value_is_no_other_case(one: str, other: str) -> None:
    assert not of_two_cases(one, other)


def test_what_a_change_is_of_is_no_other_case() -> None:
    one, other = "We are clients of Drax.", "We are now clients of Bongu."
    assert of_two_cases(one, other)
    assert not of_two_cases(one, other, is_change=True)
