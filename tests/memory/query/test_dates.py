"""Single dates in a text, and pieces of longer times."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory.remembered import NOW, day

from router.memory.model import Period
from router.memory.query.dates import dates_in
from router.memory.query.periods import ReferenceTime


def read(text: str, *, ahead: bool = False, now: datetime = NOW) -> list[Period]:
    return [found.period for found in dates_in(text, ReferenceTime(now, ahead=ahead))]


def period(start: str, end: str) -> Period:
    return Period(day(start), day(end))


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("in the first week of May", "2024-05-01", "2024-05-08"),
        ("in the third week of April", "2024-04-15", "2024-04-22"),
        ("the last week in April", "2024-04-24", "2024-05-01"),
        ("the first weekend of May", "2024-05-04", "2024-05-06"),
        ("on the last Friday of April", "2024-04-26", "2024-04-27"),
        ("the second Tuesday in May", "2024-05-14", "2024-05-15"),
        ("on the last day of 2023", "2023-12-31", "2024-01-01"),
        ("the first ten days of May", "2024-05-01", "2024-05-11"),
        ("the last two weeks of April", "2024-04-17", "2024-05-01"),
        ("the first half of the year", "2024-01-01", "2024-07-01"),
        ("the second half of last month", "2024-04-16", "2024-05-01"),
        ("in mid-April", "2024-04-11", "2024-04-21"),
        ("late last month", "2024-04-21", "2024-05-01"),
        ("early in May", "2024-05-01", "2024-05-11"),
        ("in late summer", "2023-08-01", "2023-09-01"),
        ("at the beginning of this year", "2024-01-01", "2024-02-01"),
        ("on the 5th of this month", "2024-05-05", "2024-05-06"),
        ("on the 3rd of last month", "2024-04-03", "2024-04-04"),
        ("on the 5th", "2024-05-05", "2024-05-06"),
        ("on the 31st", "2024-03-31", "2024-04-01"),
        ("on Sunday the 5th", "2024-05-05", "2024-05-06"),
        ("on Friday, 3 May", "2024-05-03", "2024-05-04"),
        ("on May the 3rd", "2024-05-03", "2024-05-04"),
        ("on the first of April", "2024-04-01", "2024-04-02"),
        ("the twenty-third of March", "2024-03-23", "2024-03-24"),
        ("on 2 and 3 April", "2024-04-02", "2024-04-04"),
        ("on 2/3 April", "2024-04-02", "2024-04-04"),
        ("Apr 10-20", "2024-04-10", "2024-04-21"),
        ("10-20 April", "2024-04-10", "2024-04-21"),
        ("April 10 \u2013 20", "2024-04-10", "2024-04-21"),
        ("April 10th through 20th", "2024-04-10", "2024-04-21"),
        ("10 to 20 Apr 2023", "2023-04-10", "2023-04-21"),
        ("on 28.03.2024", "2024-03-28", "2024-03-29"),
        ("on 03/28/2024", "2024-03-28", "2024-03-29"),
        ("on 28/3/2024", "2024-03-28", "2024-03-29"),
        ("Tuesday of last week", "2024-05-07", "2024-05-08"),
        ("last week on Tuesday", "2024-05-07", "2024-05-08"),
        ("Friday next week", "2024-05-24", "2024-05-25"),
        ("the week before last", "2024-04-29", "2024-05-06"),
        ("the weekend after next", "2024-06-01", "2024-06-03"),
        ("this January", "2024-01-01", "2024-02-01"),
        ("this July", "2024-07-01", "2024-08-01"),
        ("this May", "2024-05-01", "2024-06-01"),
        ("in this march?", "2024-03-01", "2024-04-01"),
        ("late this March", "2024-03-22", "2024-04-01"),
        ("this Easter", "2024-03-29", "2024-04-02"),
        ("the summer before last", "2022-06-01", "2022-09-01"),
        ("the July after next", "2025-07-01", "2025-08-01"),
        ("the Christmas before last", "2022-12-24", "2022-12-27"),
        ("the Friday before last", "2024-05-03", "2024-05-04"),
        ("the Wednesday before last", "2024-05-01", "2024-05-02"),
        ("the Friday after next", "2024-05-24", "2024-05-25"),
        ("two Fridays ago", "2024-05-03", "2024-05-04"),
        ("a couple of Wednesdays ago", "2024-05-01", "2024-05-02"),
        ("this month last year", "2023-05-01", "2023-06-01"),
        ("this quarter last year", "2023-04-01", "2023-07-01"),
        ("earlier this month", "2024-05-01", "2024-05-15T10:30:01"),
        ("later this week", "2024-05-15T10:30", "2024-05-20"),
        ("in the next two weeks", "2024-05-15T10:30", "2024-05-29T10:30"),
        ("at Easter", "2024-03-29", "2024-04-02"),
        ("over Easter 2019", "2019-04-19", "2019-04-23"),
        ("on Good Friday", "2024-03-29", "2024-03-30"),
        ("at Pentecost", "2023-05-28", "2023-05-30"),
        ("on Valentine's Day", "2024-02-14", "2024-02-15"),
        ("in the past fortnight", "2024-05-01T10:30", "2024-05-15T10:30:01"),
        ("the last fortnight", "2024-05-01T10:30", "2024-05-15T10:30:01"),
        ("2023 Q3", "2023-07-01", "2023-10-01"),
        ("in 2023-Q3", "2023-07-01", "2023-10-01"),
        ("in H1", "2024-01-01", "2024-07-01"),
        ("in H2", "2023-07-01", "2024-01-01"),
        ("H1 2022", "2022-01-01", "2022-07-01"),
        ("in 2022 H2", "2022-07-01", "2023-01-01"),
        ("in 2023-08", "2023-08-01", "2023-09-01"),
        ("in 08/2023", "2023-08-01", "2023-09-01"),
        ("in week 19", "2024-05-06", "2024-05-13"),
        ("in week 45", "2023-11-06", "2023-11-13"),
        ("in week 19 about Redis", "2024-05-06", "2024-05-13"),
        ("in KW 1", "2024-01-01", "2024-01-08"),
        ("during calendar week 53 of 2020", "2020-12-28", "2021-01-04"),
        ("half a year ago", "2023-08-15T16:30", "2024-02-14T04:30"),
        ("a year and a half ago", "2022-08-15T16:30", "2023-02-14T04:30"),
        ("two and a half hours ago", "2024-05-15T07:45", "2024-05-15T08:15"),
    ],
)
def test_a_date_means_this_period(text: str, start: str, end: str) -> None:
    assert read(text) == [period(start, end)]


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("on the 5th", "2024-06-05", "2024-06-06"),
        ("on the 31st", "2024-05-31", "2024-06-01"),
        ("at Easter", "2025-04-18", "2025-04-22"),
        ("at Pentecost", "2024-05-19", "2024-05-21"),
        ("in a fortnight", "2024-05-15T10:30", "2024-05-29T10:30"),
        ("in the first week of June", "2024-06-01", "2024-06-08"),
    ],
)
def test_who_looks_ahead_means_the_coming_one(text: str, start: str, end: str) -> None:
    assert read(text, ahead=True) == [period(start, end)]


@pytest.mark.parametrize(
    "text",
    [
        "the 24th item",
        "on the 24th floor",
        "It took us two weeks, in two weeks it was done",
        "in the first place",
        "the end of the list",
        "the first fifth weekend of May",
        "the fifth week of February",
        "early bird",
        "an Easter egg",
        "the other cat",
        "on 03/04/2024",
        "version 1.2.2024.7",
        "Which font has the H1?",
        "in H1 tags",
        "release 2023-08",
        "ticket 12/2023",
        "in week 3 of the course",
        "in week 60",
        "in week 53 of 2023",
        "half a cake ago",
        "on 10/20",
    ],
)
def test_what_only_looks_like_a_date_is_none(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize("text", ["this may be wrong", "this march was long", "this may, I hope"])
def test_this_before_a_verb_names_no_month(text: str) -> None:
    assert read(text) == []


def test_dates_are_given_in_the_order_of_the_text() -> None:
    assert read("Tuesday 21 May visit, Thursday off, done by the 31st", ahead=True) == [
        period("2024-05-21", "2024-05-22"),
        period("2024-05-16", "2024-05-17"),
    ]


@given(st.integers(1900, 2099))
def test_easter_is_a_sunday_from_22_march_to_25_april(year: int) -> None:
    (easter,) = read(f"on Easter Sunday {year}")
    assert easter.start.weekday() == 6
    assert date(year, 3, 22) <= easter.start.date() <= date(year, 4, 25)


@given(st.datetimes(datetime(1950, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC)))
def test_easter_is_the_latest_one_or_the_next(now: datetime) -> None:
    (last,), (coming,) = (read("at Easter", ahead=ahead, now=now) for ahead in (False, True))
    assert last.start <= now < last.start + timedelta(days=400)
    assert coming.end > now
