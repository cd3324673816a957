"""Which stretch of the calendar is meant by what every year has."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from memory.remembered import day

from router.memory.model import Period
from router.memory.query.periods import ReferenceTime, days_from, months_from, nth_of, of_each_year


def winter(first: datetime) -> Period:
    return months_from(first.replace(month=12), 3)


@pytest.mark.parametrize(
    ("today", "which", "ahead", "start"),
    [
        ("2024-02-10", "", False, "2023-12-01"),
        ("2024-02-10", "", True, "2023-12-01"),
        ("2024-02-10", "this", False, "2023-12-01"),
        ("2024-02-10", "last", True, "2022-12-01"),
        ("2024-02-10", "next", False, "2024-12-01"),
        ("2024-05-10", "", False, "2023-12-01"),
        ("2024-05-10", "", True, "2024-12-01"),
        ("2024-05-10", "this", False, "2024-12-01"),
        ("2024-05-10", "last", True, "2023-12-01"),
        ("2024-05-10", "next", False, "2024-12-01"),
        ("2024-05-10", "before last", False, "2022-12-01"),
        ("2024-05-10", "after next", True, "2025-12-01"),
    ],
)
def test_a_winter_is_that_which_is_named_or_the_nearest(
    today: str, which: str, ahead: bool, start: str
) -> None:
    found = of_each_year(ReferenceTime(day(today), ahead), winter, which=which)
    assert found is not None and found.start == day(start)


@pytest.mark.parametrize(
    ("today", "ahead", "start"),
    [
        ("2024-01-10", False, "2024-03-01"),
        ("2024-04-10", False, "2024-03-01"),
        ("2024-11-27", False, "2024-03-01"),
        ("2024-04-10", True, "2024-03-01"),
        ("2024-11-27", True, "2025-03-01"),
    ],
)
def test_this_spring_is_that_of_the_year_unless_it_is_over_and_one_looks_ahead(
    today: str, ahead: bool, start: str
) -> None:
    def spring(first: datetime) -> Period:
        return months_from(first.replace(month=3), 3)

    found = of_each_year(ReferenceTime(day(today), ahead), spring, which="this")
    assert found is not None and found.start == day(start)


@pytest.mark.parametrize(("ahead", "start"), [(False, "2096-02-29"), (True, "2104-02-29")])
def test_what_only_some_years_have_is_that_of_the_nearest_one(ahead: bool, start: str) -> None:
    def leap_day(first: datetime) -> Period:
        return days_from(first.replace(month=2, day=29), 1)

    found = of_each_year(ReferenceTime(day("2096-03-01"), ahead), leap_day)
    assert found == days_from(day(start), 1)


def test_a_day_that_no_year_has_is_none() -> None:
    asked = ReferenceTime(day("2024-05-15"))
    assert of_each_year(asked, lambda first: days_from(first.replace(month=2, day=30), 1)) is None


@pytest.mark.parametrize(
    ("number", "length", "weekday", "start"),
    [
        (2, 7, None, "2024-05-08"),
        (0, 7, None, "2024-05-25"),
        (5, 1, 4, "2024-05-31"),
        (0, 2, 5, "2024-05-25"),
    ],
)
def test_of_a_month_there_are_weeks_weekends_and_weekdays(
    number: int, length: int, weekday: int | None, start: str
) -> None:
    may = Period(day("2024-05-01"), day("2024-06-01"))
    assert nth_of(may, number, length, weekday) == days_from(day(start), length)
    assert nth_of(may, 6, length, weekday) is None
    assert nth_of(days_from(may.start, 1), 1, 7, None) is None


def test_what_is_half_over_is_not_over() -> None:
    now = day("2024-07-15") + timedelta(hours=9)
    found = of_each_year(ReferenceTime(now, ahead=True), lambda first: months_from(first, 12))
    assert found == Period(day("2024-01-01"), day("2025-01-01"))
