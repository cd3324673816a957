"""What a sentence says about time, and what only looks like it."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta, timezone
from functools import partial

import pytest
from cpu_time import cpu_time_of
from hypothesis import given
from hypothesis import strategies as st
from memory.remembered import NOW, day, period_of

from router.memory.model import Period
from router.memory.query.time_expressions import find_period, planned_times


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("What did we do yesterday?", "2024-05-14", "2024-05-15"),
        ("the bug from the day before yesterday", "2024-05-13", "2024-05-14"),
        ("what is on today's list", "2024-05-15", "2024-05-16"),
        ("What is due tomorrow?", "2024-05-16", "2024-05-17"),
        ("what broke this morning", "2024-05-15T05:00", "2024-05-15T12:00"),
        ("who was on call last night", "2024-05-14T18:00", "2024-05-15T06:00"),
        ("yesterday evening", "2024-05-14T18:00", "2024-05-15T00:00"),
        ("What did we do last week?", "2024-05-06", "2024-05-13"),
        ("plans for next week", "2024-05-20", "2024-05-27"),
        ("commits this month", "2024-05-01", "2024-06-01"),
        ("the budget of last quarter", "2024-01-01", "2024-04-01"),
        ("What did I do over the weekend?", "2024-05-11", "2024-05-13"),
        ("the tickets between 3 and 5 April", "2024-04-03", "2024-04-06"),
        ("from November 3 to 5, 2023", "2023-11-03", "2023-11-06"),
        ("what we shipped in Q1", "2024-01-01", "2024-04-01"),
        ("the budget for Q3", "2023-07-01", "2023-10-01"),
        ("what is planned for Q3", "2024-07-01", "2024-10-01"),
        ("What is planned for December?", "2024-12-01", "2025-01-01"),
        ("What are the plans for March?", "2025-03-01", "2025-04-01"),
        ("Which tasks for March are done?", "2024-03-01", "2024-04-01"),
        ("revenue of the first quarter of 2022", "2022-01-01", "2022-04-01"),
        ("the meeting a fortnight ago", "2024-04-28", "2024-05-05"),
        ("in the first half of October", "2023-10-01", "2023-10-16"),
        ("at the end of April", "2024-04-21", "2024-05-01"),
        ("Where did we meet in spring?", "2024-03-01", "2024-06-01"),
        ("goals of last year", "2023-01-01", "2024-01-01"),
        ("last weekend", "2024-05-11", "2024-05-13"),
        ("What happened in March?", "2024-03-01", "2024-04-01"),
        ("what happened in May", "2024-05-01", "2024-06-01"),
        ("back in December we chose Redis", "2023-12-01", "2024-01-01"),
        ("last december", "2023-12-01", "2024-01-01"),
        ("the outage in June 2022", "2022-06-01", "2022-07-01"),
        ("what changed in 2021", "2021-01-01", "2022-01-01"),
        ("the release on 2024-05-02", "2024-05-02", "2024-05-03"),
        ("logs of 2024/5/2", "2024-05-02", "2024-05-03"),
        ("What did Caroline do on 8 May 2023?", "2023-05-08", "2023-05-09"),
        ("What did Caroline do on May 8th, 2023?", "2023-05-08", "2023-05-09"),
        ("the call on the 3rd of may", "2024-05-03", "2024-05-04"),
        ("what was said on 20 June", "2023-06-20", "2023-06-21"),
        ("last Tuesday", "2024-05-14", "2024-05-15"),
        ("last Wednesday", "2024-05-08", "2024-05-09"),
        ("what did she say on Friday", "2024-05-10", "2024-05-11"),
        ("Friday morning", "2024-05-10T05:00", "2024-05-10T12:00"),
        ("the report is due on Friday", "2024-05-17", "2024-05-18"),
        ("next Friday", "2024-05-17", "2024-05-18"),
        ("three days ago", "2024-05-12", "2024-05-13"),
        ("two weeks ago", "2024-04-28", "2024-05-05"),
        ("2 months ago", "2024-03-01", "2024-04-01"),
        ("a year ago", "2023-01-01", "2024-01-01"),
        ("an hour ago", "2024-05-15T09:00", "2024-05-15T10:00"),
        ("a few days ago", "2024-05-09T10:30", "2024-05-14T10:30:01"),
        ("in the last 3 days", "2024-05-12T10:30", "2024-05-15T10:30:01"),
        ("over the past week", "2024-05-08T10:30", "2024-05-15T10:30:01"),
        ("what have we done recently", "2024-05-08T10:30", "2024-05-15T10:30:01"),
        ("what did I just now say", "2024-05-15T09:30", "2024-05-15T10:30:01"),
        ("everything since Monday", "2024-05-13", "2024-05-15T10:30:01"),
        ("after 3 May", "2024-05-04", "2024-05-15T10:30:01"),
        ("between March and May", "2024-03-01", "2024-06-01"),
        ("between November and February", "2023-11-01", "2024-03-01"),
        ("from Monday to Tuesday", "2024-05-13", "2024-05-15"),
        ("before June 2023", "0001-01-02", "2023-06-01"),
        ("due by Friday", "0001-01-02", "2024-05-18"),
        ("due by March", "0001-01-02", "2025-04-01"),
        ("What must be ready by the end of March?", "0001-01-02", "2025-04-01"),
        ("What is due by the end of the year?", "0001-01-02", "2025-01-01"),
        ("What did we say at the end of last month?", "2024-04-21", "2024-05-01"),
        ("What do I have to do before Christmas?", "0001-01-02", "2024-12-24"),
        ("What did we have to do in March?", "2024-03-01", "2024-04-01"),
        ("Where were we at Christmas?", "2023-12-24", "2023-12-27"),
        ("between Christmas and New Year's Day", "2023-12-24", "2024-01-02"),
        ("We had lunch. What must be ready by March?", "0001-01-02", "2025-04-01"),
        ("What did I promise to send by Friday?", "0001-01-02", "2024-05-18"),
        ("Which tickets were filed by August?", "0001-01-02", "2023-09-01"),
        ("Who is responsible for the report due by June?", "0001-01-02", "2024-07-01"),
        ("Who is free by June?", "0001-01-02", "2024-07-01"),
        ("Who is on the list of things to finish by August?", "0001-01-02", "2024-09-01"),
        ("What did we use until August?", "0001-01-02", "2023-09-01"),
        ("the notes by Ada in August", "2023-08-01", "2023-09-01"),
        ("the week before Easter", "2024-03-22", "2024-03-29"),
        ("the day after 3 May", "2024-05-04", "2024-05-05"),
        ("two weeks after Christmas", "2024-01-04", "2024-01-11"),
        ("three days before Easter", "2024-03-26", "2024-03-27"),
        ("What went on around Easter?", "2024-03-24", "2024-04-07"),
        ("in the week of 10 April", "2024-04-08", "2024-04-15"),
        ("before the end of the year we must move", "0001-01-02", "2025-01-01"),
        ("What have I got on this Friday?", "2024-05-17", "2024-05-18"),
        ("What's on next Tuesday?", "2024-05-21", "2024-05-22"),
        ("What do I have on Thursday?", "2024-05-16", "2024-05-17"),
        ("everything after the 1st of May", "2024-05-02", "2024-05-15T10:30:01"),
        ("Which invoices were due last March?", "2024-03-01", "2024-04-01"),
        ("What about next March?", "2025-03-01", "2025-04-01"),
        ("What is due on 1 May?", "2025-05-01", "2025-05-02"),
        ("What is planned in spring?", "2024-03-01", "2024-06-01"),
        ("last summer", "2023-06-01", "2023-09-01"),
        ("in the summer of 2022", "2022-06-01", "2022-09-01"),
        ("What happened by March?", "0001-01-02", "2024-04-01"),
        ("What had happened until the end of March?", "0001-01-02", "2024-04-01"),
        ("What has changed up to March?", "0001-01-02", "2024-04-01"),
        ("Who joined by August?", "0001-01-02", "2023-09-01"),
        ("What is needed by August?", "0001-01-02", "2024-09-01"),
        ("What must be paid up to the end of May?", "0001-01-02", "2024-06-01"),
        ("29 April to 5 May", "2024-04-29", "2024-05-06"),
        ("What happened from 29 Apr - 5 May?", "2024-04-29", "2024-05-06"),
        ("29 April\u20135 May", "2024-04-29", "2024-05-06"),
        ("on 2024-04-29 - 2024-05-05", "2024-04-29", "2024-05-06"),
        ("since week 18", "2024-04-29", "2024-05-15T10:30:01"),
        ("What happened in November last year?", "2023-11-01", "2023-12-01"),
        ("What happened in March last year?", "2023-03-01", "2023-04-01"),
        ("What happened in Q1 of last year?", "2023-01-01", "2023-04-01"),
        ("in Q4 of the last year", "2023-10-01", "2024-01-01"),
        ("What happened in H1 of last year?", "2023-01-01", "2023-07-01"),
        ("the first quarter of last year", "2023-01-01", "2023-04-01"),
        ("in the spring of last year", "2023-03-01", "2023-06-01"),
        ("at the end of March last year", "2023-03-22", "2023-04-01"),
        ("in mid-March last year", "2023-03-11", "2023-03-22"),
        ("the last week of March last year", "2023-03-25", "2023-04-01"),
        ("on 10 April last year", "2023-04-10", "2023-04-11"),
        ("from 10 to 20 April last year", "2023-04-10", "2023-04-21"),
        ("at Easter last year", "2023-04-07", "2023-04-11"),
        ("in week 2 of last year", "2023-01-09", "2023-01-16"),
        ("in March next year", "2025-03-01", "2025-04-01"),
        ("in August this year", "2024-08-01", "2024-09-01"),
        ("between March last year and May last year", "2023-03-01", "2023-06-01"),
        ("What happened last year in March?", "2023-03-01", "2023-04-01"),
        ("last year at Easter", "2023-04-07", "2023-04-11"),
        ("on Monday last year", "2024-05-13", "2024-05-14"),
        ("Where were we last Christmas?", "2023-12-24", "2023-12-27"),
        ("last New Year\u2019s Eve", "2023-12-31", "2024-01-01"),
        ("last Halloween", "2023-10-31", "2023-11-01"),
        ("on All Saints' Day", "2023-11-01", "2023-11-02"),
        ("on 21/11", "2023-11-21", "2023-11-22"),
        ("in the 1st quarter", "2024-01-01", "2024-04-01"),
        ("in the 3rd quarter of 2022", "2022-07-01", "2022-10-01"),
        ("two weekends ago", "2024-05-04", "2024-05-06"),
    ],
)
def test_a_phrase_about_time_means_this_period(text: str, start: str, end: str) -> None:
    wanted = Period(day(start), day(end))
    assert period_of(text, NOW) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "Update the README",
        "May I ask something?",
        "this may be wrong",
        "8 may fail",
        "What did May say?",
        "Do I like Christmas?",
        "Who left before the Christmas party?",
        "June said hi to April",
        "march on",
        "give me a second",
        "the date picker",
        "the last minute change",
        "elastic search",
        "weekly report",
        "release v2024-05-02-beta",
        "/var/log/2024-05-02/app.log",
        "31 February",
        "9999 years ago",
        "port 2024",
        "notes from 2021",
        "the budget for March",
        "a present for June",
        "Does it take up to 2000 users?",
        "What is JWT?",
        "",
    ],
)
def test_this_says_nothing_about_time(text: str) -> None:
    assert period_of(text, NOW) is None


@pytest.mark.parametrize(
    ("plan", "start", "end"),
    [
        ("Nights this week, next week free, 2 December team day.", "2024-05-20", "2024-05-27"),
        ("Finish the course by 30 June, half done.", "2024-06-30", "2024-07-01"),
        ("Tuesday site visit with Nell.", "2024-05-21", "2024-05-22"),
    ],
)
def test_a_plan_names_the_times_that_it_is_about(plan: str, start: str, end: str) -> None:
    assert Period(day(start), day(end)) in planned_times(plan, NOW)


def test_a_plan_is_of_the_days_of_who_asks() -> None:
    told = datetime(2024, 5, 15, 22, 0, tzinfo=UTC)
    there = told.astimezone(timezone(timedelta(hours=9)))
    (here,), (elsewhere,) = (planned_times("Call Ada tomorrow.", each) for each in (told, there))
    assert (here.start.day, elsewhere.start.day) == (16, 17)


def test_of_an_endless_plan_only_the_beginning_is_kept() -> None:
    long = "Call Ada tomorrow. " + "and the " * 10_000
    held = sys.getrefcount(long)
    assert planned_times(long, NOW)
    assert sys.getrefcount(long) == held


def test_four_times_the_spaces_take_four_times_as_long_and_not_sixteen() -> None:
    few, many = (
        cpu_time_of(partial(find_period, f"29 April{' ' * spaces}5 May", NOW))
        for spaces in (2_000, 8_000)
    )
    assert many < 8 * few


def test_the_words_about_time_can_be_taken_out() -> None:
    text = "What did we decide about Redis between March and May, in short?"
    found = find_period(text, NOW)
    assert found is not None
    assert text[slice(*found.span)] == "between March and May"
    assert found.removed_from(text) == "What did we decide about Redis , in short?"


def test_days_are_those_of_the_time_zone_of_now() -> None:
    zone = timezone(timedelta(hours=9))
    late = datetime(2024, 5, 16, 2, 0, tzinfo=zone)  # still the 15th in UTC
    midnight = datetime(2024, 5, 16, tzinfo=zone)
    assert period_of("today", late) == Period(midnight, midnight + timedelta(days=1))


WORDS = st.sampled_from(
    """last next this previous week weekend month quarter year monday Friday March May may june
    2023 2024-02-30 31 8th 0 12 a few two couple of days weeks minutes hours ago since between and
    from to until by before after yesterday tomorrow today morning night recently summer winter in
    on the at due will remind 9999 deploy , . ?""".split()
)
TEXTS = st.lists(WORDS, max_size=10).map(" ".join) | st.text(max_size=80)
MOMENTS = st.datetimes(timezones=st.just(UTC))


@given(TEXTS, MOMENTS)
def test_a_period_begins_before_it_ends_and_comes_from_the_text(text: str, now: datetime) -> None:
    found = find_period(text, now)
    if found is not None:
        assert found.period.start < found.period.end
        assert found.period.start.tzinfo is not None
        assert 0 <= found.span[0] < found.span[1] <= len(text)


@given(TEXTS, MOMENTS)
def test_the_same_question_at_the_same_time_means_the_same(text: str, now: datetime) -> None:
    assert find_period(text, now) == find_period(text, now)


@given(TEXTS, MOMENTS)
def test_white_space_around_a_text_changes_nothing(text: str, now: datetime) -> None:
    assert period_of(f"  {text}  ", now) == period_of(text, now)
