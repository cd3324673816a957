"""Periods of the calendar: a month, the last Friday of it, Easter, the week before last.

Days, weeks (from Monday), months and years are those of the calendar in the time zone of who asks.
Of a period that every year has, such as March, the latest one that has begun is meant; if the
sentence is about the future, the first one that is not over. "This March" is that of the present
year.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Final

from router.memory.model import Period

INSTANT: Final = timedelta(seconds=1)
"""Added to the end of a period that lasts until now, so that items saved at this moment are in
it."""
WEEKEND: Final = 5
"""The weekday on which the weekend begins; Monday is 0."""
_YEARS_LOOKED_AT: Final = 10
"""Years that are tried, from the one before; the next 29 February may be eight years ahead."""


@dataclass(frozen=True, slots=True)
class ReferenceTime:
    """When the question was asked, and whether it is about the future (``ahead``)."""

    now: datetime
    ahead: bool = False

    @property
    def today(self) -> datetime:
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0)


def days_from(start: datetime, days: int) -> Period:
    return Period(start, start + timedelta(days=days))


def months_from(first: datetime, months: int) -> Period:
    """The period of so many calendar months from the first of a month."""
    return Period(first, shifted(first, months))


def shifted(first: datetime, months: int) -> datetime:
    """The first of the month that is so many months later."""
    index = first.year * 12 + first.month - 1 + months
    return first.replace(year=index // 12, month=index % 12 + 1)


def of_each_year(
    reference: ReferenceTime,
    of_year: Callable[[datetime], Period],
    *,
    year: str = "",
    which: str = "",
) -> Period | None:
    """One of the periods that every year has: that of the named ``year``, or the "last", "this" or
    "next" one (``which``), or that "before last" or "after next". "This" one is the one that lasts
    now, or else that of the present year, unless it is over and the sentence is about the future.
    Without ``year`` and ``which`` it is the latest that has begun; if the sentence is about the
    future, the first that is not over.

    Args:
        of_year: gives the period of the year that begins on a day.
    """
    first = reference.today.replace(month=1, day=1)
    if year:
        return of_year(first.replace(year=int(year)))

    def in_turn(start: int, step: int) -> Iterator[Period]:
        for shift in range(start, start + step * _YEARS_LOOKED_AT, step):
            with suppress(ValueError):  # this year has no 29 February
                yield of_year(first.replace(year=first.year + shift))

    if which in ("next", "after next"):
        found = (period for period in in_turn(0, 1) if period.start > reference.now)
    elif which in ("last", "before last"):
        found = (period for period in in_turn(0, -1) if period.end <= reference.now)
    elif reference.ahead:
        found = (period for period in in_turn(-1, 1) if period.end > reference.now)
    elif which == "this":
        found = (
            period
            for period in in_turn(-1, 1)
            if period.end > reference.now or period.start.year == first.year
        )
    else:
        found = (period for period in in_turn(0, -1) if period.start <= reference.now)
    return next(islice(found, which in ("before last", "after next"), None), None)


def day_of_month(reference: ReferenceTime, day: int) -> Period | None:
    """The latest such day up to today; if the sentence is about the future, the next one."""
    first = reference.today.replace(day=1)
    for months in (0, 1, 2) if reference.ahead else (0, -1, -2):
        month = months_from(shifted(first, months), 1)
        start = month.start + timedelta(days=day - 1)
        if start < month.end and (
            start >= reference.today if reference.ahead else start <= reference.now
        ):
            return days_from(start, 1)
    return None


def weekday_of_week(reference: ReferenceTime, weekday: int, weeks: int) -> datetime:
    """A day of the week that is so many weeks away."""
    return reference.today + timedelta(days=weekday - reference.today.weekday() + 7 * weeks)


def nearest_weekday(reference: ReferenceTime, weekday: int, which: str) -> datetime:
    """The "last", "this" or "next" one, or that "before last" or "after next"; or the latest, or
    the coming one for who looks ahead."""
    if which in ("before last", "after next"):
        side, nearer = which.split()
        weeks = timedelta(weeks=-1 if side == "before" else 1)
        return nearest_weekday(reference, weekday, nearer) + weeks
    back = (reference.today.weekday() - weekday) % 7  # 0 is today
    if which == "this":
        return weekday_of_week(reference, weekday, 0)
    if which in ("last", "previous"):
        shift = -(back or 7)
    elif which in ("next", "coming") or reference.ahead:
        shift = (7 - back) if back or which else 0
    else:
        shift = -back
    return reference.today + timedelta(days=shift)


def latest_weekend(reference: ReferenceTime) -> Period:
    """The latest one that has begun, or the coming one for who looks ahead."""
    saturday = weekday_of_week(reference, WEEKEND, 0)
    is_to_come = saturday > reference.now and not reference.ahead
    return days_from(saturday - timedelta(weeks=is_to_come), 2)


def calendar_unit(reference: ReferenceTime, unit: str, shift: int) -> Period:
    """The week, weekend, month, quarter or year that is so many of them away."""
    today = reference.today
    if unit == "week":
        return days_from(weekday_of_week(reference, 0, shift), 7)
    if unit == "weekend":
        return days_from(weekday_of_week(reference, WEEKEND, shift), 2)
    if unit == "month":
        return months_from(shifted(today.replace(day=1), shift), 1)
    if unit == "quarter":
        first = today.replace(month=(today.month - 1) // 3 * 3 + 1, day=1)
        return months_from(shifted(first, 3 * shift), 3)
    return months_from(today.replace(year=today.year + shift, month=1, day=1), 12)


def week_of_year(first: datetime, number: int) -> Period:
    """A week by its number in ISO 8601, of the year that begins on a day. Raises ValueError if that
    year has no such week."""
    monday = date.fromisocalendar(first.year, number, 1)
    return days_from(first.replace(year=monday.year, month=monday.month, day=monday.day), 7)


def nth_of(whole: Period, number: int, length: int, weekday: int | None) -> Period | None:
    """Within a longer period the first (1), second, ... or last (0) period of ``length`` days that
    begins on a weekday, or on any day."""
    starts = [
        start
        for day in range((whole.end - whole.start).days - length + 1)
        if weekday in (None, (start := whole.start + timedelta(days=day)).weekday())
    ]
    place = (number - 1) * (length if weekday is None else 1) if number else len(starts) - 1
    return days_from(starts[place], length) if 0 <= place < len(starts) else None


def easter(first: datetime) -> datetime:
    """Easter Sunday of the year that begins on a day (the anonymous algorithm of Nature, 1876, for
    the Gregorian calendar, as Jean Meeus gives it)."""
    golden, century = first.year % 19, first.year // 100
    moon = (
        19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15
    ) % 30
    sunday = (32 + 2 * (century % 4) + 2 * (first.year % 100 // 4) - moon - first.year % 4) % 7
    late = (golden + 11 * moon + 22 * sunday) // 451
    month, before = divmod(moon + sunday - 7 * late + 114, 31)
    return first.replace(month=month, day=before + 1)
