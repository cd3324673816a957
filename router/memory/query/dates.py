"""Reads single dates in a text: "8 May 2023", "yesterday", "the first week of May", "Q3", "over
Easter".

A phrase counts only if it can mean nothing else: "may" is a month after "in" or with a year, but
not in "may I"; "march" is none in "march on"; "update", "second" and "date picker" are never about
time.

This module has the forms in which dates are written, also parts of longer periods ("late last
month", "mid-July"); ``periods.py`` computes which period of the calendar each of them means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final, ParamSpec

from router.memory.model import Period
from router.memory.query.periods import (
    INSTANT,
    WEEKEND,
    ReferenceTime,
    calendar_unit,
    day_of_month,
    days_from,
    easter,
    latest_weekend,
    months_from,
    nearest_weekday,
    nth_of,
    of_each_year,
    shifted,
    week_of_year,
    weekday_of_week,
)

P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Expression:
    """A phrase about time.

    Attributes:
        period: the period that it means.
        span: its start and end in the text, with its preposition.
    """

    period: Period
    span: tuple[int, int]

    def removed_from(self, text: str) -> str:
        """The text without the phrase."""
        start, end = self.span
        return " ".join(f"{text[:start]} {text[end:]}".split())


@dataclass(frozen=True)
class Form:
    """A way to write a time, as a regular expression, and how to read its groups."""

    pattern: str
    read: Callable[[re.Match[str], ReferenceTime], Period | None]

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(rf"(?:{self.pattern}){_ENDS}", re.IGNORECASE)

    def at(
        self, text: str, start: int, reference: ReferenceTime, which: str = ""
    ) -> Expression | None:
        """The expression of this form that begins at ``start``; None if there is none. Its year is
        that which ``which`` names, or the words behind it: "last", "this" or "next" year."""
        match = self._compiled.match(text, start)
        if match is None:
            return None
        year = None if which else _OF_YEAR.match(text, match.end())
        if which or year:
            named = which or (year or match)["which"]
            period = checked(self._of_year, match, reference, named.casefold())
            if period is not None:
                return Expression(period, (start, (year or match).end()))
            if which:
                return None
        period = checked(self.read, match, reference)
        return Expression(period, match.span()) if period else None

    def _of_year(self, match: re.Match[str], reference: ReferenceTime, which: str) -> Period | None:
        """What it means in the year that is named, where "this month" is that of today's date; None
        if it does not come every year."""
        number = reference.now.year + _SHIFTS[which]
        if self.read is _calendar_unit and _said(match, "which") == "this":
            return self.read(match, ReferenceTime(reference.now.replace(year=number)))
        end = reference.today.replace(year=number, month=12, day=31)
        period = self.read(match, ReferenceTime(end)) if self.read in _YEARLY else None
        return period if period is not None and period.start.year == number else None


BEGINS: Final = r"(?<![\w/.-])"
_ENDS: Final = r"(?![\w/]|[.-]\w)"
"""A letter, slash, dot or hyphen next to it makes it part of a name, a path or a version."""
_OF_YEAR: Final = re.compile(
    rf",?\s+(?:of\s+(?:the\s+)?)?(?P<which>last|this|next)\s+year{_ENDS}", re.IGNORECASE
)
"""May stand behind every date that each year has."""
_IN_YEAR: Final = re.compile(
    r"(?P<which>last|this|next)\s+year,?\s+(?:in|on|at|over|during)\s+(?:the\s+)?", re.IGNORECASE
)
"""The same before it: "last year in March"."""


def checked(read: Callable[P, Period | None], *args: P.args, **kwargs: P.kwargs) -> Period | None:
    """The period that ``read`` gives; None if the calendar has no such time."""
    try:
        period = read(*args, **kwargs)
    except (ValueError, OverflowError):  # 31 February, or a year that the calendar does not have
        return None
    return period if period is not None and period.start < period.end else None


MONTHS: Final = (
    "january february march april may june july august september october november december".split()
)
WEEKDAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""Their first months, in the northern hemisphere."""
_FEASTS: Final = {
    "christmas": (12, 24, 3),
    "christmas day": (12, 25, 1),
    "christmas eve": (12, 24, 1),
    "boxing day": (12, 26, 1),
    "new year": (1, 1, 1),
    "new year's day": (1, 1, 1),
    "new year's eve": (12, 31, 1),
    "valentine's day": (2, 14, 1),
    "halloween": (10, 31, 1),
    "all saints'": (11, 1, 1),
    "all saints' day": (11, 1, 1),
    "all souls' day": (11, 2, 1),
}
"""Those that every year has on the same days: month and day of their beginning, and how many days
they last. Christmas is what people celebrate, from the eve on."""
_EASTER_FEASTS: Final = {
    "good friday": (-2, 1),
    "easter": (-2, 4),
    "easter sunday": (0, 1),
    "easter monday": (1, 1),
    "ascension day": (39, 1),
    "pentecost": (49, 2),
    "whitsun": (49, 2),
}
"""How many days after Easter Sunday they begin, and how many they last."""
_NUMBERS: Final = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(), start=1
    )
} | {"a": 1, "an": 1}
_DAYS: Final = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth twenty-first "
    "twenty-second twenty-third twenty-fourth twenty-fifth twenty-sixth twenty-seventh "
    "twenty-eighth twenty-ninth thirtieth thirty-first"
).split()
_VAGUE: Final = {"a couple of": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4}
_PARTS: Final = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
"""Hours of the day from midnight; a night ends in the morning."""
_WHOLE_DAY: Final = (0, 24)
_LATELY: Final = timedelta(days=7)
"""How far "recently" reaches back."""
NUMBER_WORDS: Final = "|".join(_NUMBERS)

_MONTH: Final = rf"(?:{'|'.join(MONTHS)}|sept?|jan|feb|mar|apr|jun|jul|aug|oct|nov|dec)"
_DAY: Final = r"(?P<day>0?[1-9]|[12]\d|3[01])(?P<th>st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_PART: Final = "|".join(_PARTS)
_VAGUELY: Final = "|".join(_VAGUE)
_COUNT: Final = rf"(?P<count>\d{{1,4}}|{NUMBER_WORDS}|{_VAGUELY})"
_UNIT: Final = r"(?P<unit>minute|hour|day|week|fortnight|month|year)s?"


def _said(match: re.Match[str], name: str) -> str:
    """What a group holds, in lower case; empty where it holds nothing, or the form has no such
    group."""
    return " ".join((match.groupdict().get(name) or "").casefold().split())


def _yearly(
    match: re.Match[str], reference: ReferenceTime, of_year: Callable[[datetime], Period]
) -> Period | None:
    """What every year has, of the year that a match names."""
    return of_each_year(reference, of_year, year=_said(match, "year"), which=_said(match, "which"))


def _piece(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    """A piece of a longer time: "the first week of May", "the end of the year", "late July"."""
    whole = _read(_WHOLES, match["whole"], reference)
    if whole is None:
        return None
    start, end = whole.start, whole.end
    days = (end - start).days
    third = timedelta(days=round(days / 3))
    edge = min(third, timedelta(days=31))
    match _said(match, "piece").split():
        case [which, "half"]:
            middle = shifted(start, 6) if days > 364 else start + timedelta(days=days // 2)
            return Period(start, middle) if which == "first" else Period(middle, end)
        case ["beginning" | "start"]:
            return Period(start, start + edge)
        case ["end"]:
            return Period(end - edge, end)
        case ["early"]:
            return Period(start, start + third)
        case ["middle" | "mid"]:
            return Period(start + third, end - third)
        case ["late"]:
            return Period(end - third, end)
        case [ordinal, count, units]:
            length = number_in(count) * length_of(units.removesuffix("s"))
            return (
                Period(start, start + length) if ordinal == "first" else Period(end - length, end)
            )
        case [ordinal, unit]:
            number = 0 if ordinal == "last" else _ordinal(ordinal)
            weekday = WEEKEND if unit == "weekend" else None
            weekday = WEEKDAYS.index(unit) if unit in WEEKDAYS else weekday
            return nth_of(whole, number, {"week": 7, "weekend": 2}.get(unit, 1), weekday)
    return None


def _ordinal(word: str) -> int:
    return int(word[:-2]) if word[0].isdecimal() else _DAYS.index(word) + 1


def _quarter(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    """A quarter of the calendar year, such as Q3 or "the first quarter of 2026"."""
    named = _said(match, "quarter")
    number = int(named) if named.isdecimal() else _ordinal(named)
    return _months(match, reference, 3 * number - 2, 3)


def _half_year(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    return _months(match, reference, 6 * int(match["half"]) - 5, 6)


def _months(
    match: re.Match[str], reference: ReferenceTime, month: int, count: int
) -> Period | None:
    """So many months of a year, the first of which has this number."""
    return _yearly(match, reference, lambda first: months_from(first.replace(month=month), count))


def _week_number(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    number = int(match["number"])
    return _yearly(match, reference, lambda first: week_of_year(first, number))


def _days_of_month(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    """ "Between 3 and 5 November": two days of one month."""
    month, first, last = _month_number(match), int(match["day"]), int(match["until"])

    def of_year(january: datetime) -> Period:
        start = january.replace(month=month, day=first)
        return Period(start, start.replace(day=last) + timedelta(days=1))

    return _yearly(match, reference, of_year) if last >= first else None


def _month_number(match: re.Match[str]) -> int:
    name = _said(match, "month")[:3]
    return next(n for n, month in enumerate(MONTHS, start=1) if month[:3] == name)


def _calendar_day(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    ordinal = _said(match, "ordinal")
    is_plain = not match["year"] and not match["th"] and not ordinal
    if is_plain and match["month"] in ("may", "march"):
        return None  # "8 may fail"
    month, day = _month_number(match), _ordinal(ordinal) if ordinal else int(match["day"])
    return _yearly(match, reference, partial(_days_of_year, month, day, 1))


def _days_of_year(month: int, day: int, count: int, first: datetime) -> Period:
    """So many days from a day of the year that begins on ``first``."""
    return days_from(first.replace(month=month, day=day), count)


def _iso_day(match: re.Match[str], reference: ReferenceTime) -> Period:
    year, month, day = int(match["year"]), int(match["number"]), int(match["day"])
    return days_from(reference.today.replace(year=year, month=month, day=day), 1)


def _iso_month(match: re.Match[str], reference: ReferenceTime) -> Period:
    year, month = int(match["year"]), int(match["number"])
    return months_from(reference.today.replace(year=year, month=month, day=1), 1)


def _slashed_day(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    """ "03/28/2026", "28/03/2026" or "28/03". Which is the month in "03/04/2026" nobody can say."""
    month, day = sorted((int(match["one"]), int(match["other"])))
    if day <= 12 and day != month:
        return None
    return _yearly(match, reference, partial(_days_of_year, month, day, 1))


def _feast(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    name = _said(match, "feast").replace("\u2019", "'")
    if name in _FEASTS:
        return _yearly(match, reference, partial(_days_of_year, *_FEASTS[name]))
    shift, days = _EASTER_FEASTS[name]
    return _yearly(
        match, reference, lambda first: days_from(easter(first) + timedelta(days=shift), days)
    )


def _day_of_month(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    """ "The 5th", of the month that is named, or the nearest."""
    day, which = int(match["day"]), _said(match, "which")
    if not which:
        return day_of_month(reference, day)
    return days_from(calendar_unit(reference, "month", _SHIFTS[which]).start.replace(day=day), 1)


def _month(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    return _months(match, reference, _month_number(match), 1)


def _season(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    return _months(match, reference, _SEASONS[_said(match, "season")], 3)


def _year(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    return _months(match, reference, 1, 12)


def _named_day(match: re.Match[str], reference: ReferenceTime) -> Period:
    shift = {"last": -1, "yesterday": -1, "tomorrow": 1}.get(_said(match, "named"), 0)
    return _part_of(reference.today + timedelta(days=shift), match)


def _part_of(day: datetime, match: re.Match[str]) -> Period:
    """A day, or the part of it that is named."""
    start, end = _PARTS.get(_said(match, "part"), _WHOLE_DAY)
    return Period(day + timedelta(hours=start), day + timedelta(hours=end))


def _weekday(match: re.Match[str], reference: ReferenceTime) -> Period:
    number = WEEKDAYS.index(_said(match, "weekday"))
    return _part_of(nearest_weekday(reference, number, _said(match, "which")), match)


_SHIFTS: Final = {
    "the": 0,
    "this": 0,
    "last": -1,
    "previous": -1,
    "next": 1,
    "coming": 1,
    "after next": 2,
    "before last": -2,
}


def _calendar_unit(match: re.Match[str], reference: ReferenceTime) -> Period:
    return calendar_unit(reference, _said(match, "unit"), _SHIFTS[_said(match, "which")])


def _weekday_of_week(match: re.Match[str], reference: ReferenceTime) -> Period:
    """ "Tuesday of last week"."""
    number, shift = WEEKDAYS.index(_said(match, "weekday")), _SHIFTS[_said(match, "which")]
    return days_from(weekday_of_week(reference, number, shift), 1)


def _rest_of_unit(match: re.Match[str], reference: ReferenceTime) -> Period:
    """ "Earlier this month", "later this week"."""
    whole = _calendar_unit(match, reference)
    if _said(match, "rest") == "earlier":
        return Period(whole.start, reference.now + INSTANT)
    return Period(reference.now, whole.end)


def _next_units(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    """The next so many units."""
    return Period(reference.now, reference.now + _length_in(match))


def _units_ahead(match: re.Match[str], reference: ReferenceTime) -> Period | None:
    """ "In two weeks", which may also say how long something took: the sentence must look ahead."""
    return _next_units(match, reference) if reference.ahead else None


def _last_units(match: re.Match[str], reference: ReferenceTime) -> Period:
    """The last so many units, or the last one, up to now."""
    return Period(reference.now - _length_in(match), reference.now + INSTANT)


def _ago(match: re.Match[str], reference: ReferenceTime) -> Period:
    """Around a time so long ago, as exactly as it was said: "three days ago" is a day, "three
    hours ago" an hour and a half before and after, "a few days ago" one to six days ago."""
    count, unit = number_in(match["count"]), _said(match, "unit")
    if _said(match, "count") in _VAGUE:
        return Period(
            reference.now - 2 * _length_in(match), reference.now - length_of(unit) + INSTANT
        )
    if unit == "day":
        return days_from(reference.today - _length_in(match), 1)
    if unit in ("fortnight", "week"):
        return days_from(reference.today - _length_in(match) - timedelta(days=3), 7)
    if unit in ("month", "year"):
        return calendar_unit(reference, unit, -count)
    return Period(reference.now - 1.5 * _length_in(match), reference.now - 0.5 * _length_in(match))


def _weekdays_ago(match: re.Match[str], reference: ReferenceTime) -> Period:
    """ "Two Fridays ago": today is none of them."""
    number, count = WEEKDAYS.index(_said(match, "weekday")), number_in(match["count"])
    last = nearest_weekday(reference, number, "last")
    return days_from(last - timedelta(weeks=count - 1), 1)


def _weekends_ago(match: re.Match[str], reference: ReferenceTime) -> Period:
    return calendar_unit(reference, "weekend", -number_in(match["count"]))


def _and_a_half_ago(match: re.Match[str], reference: ReferenceTime) -> Period:
    """Around a time so many and a half units ago, give or take a quarter of the unit."""
    unit = length_of(match["unit"])
    whole = number_in(match["count"]) if _said(match, "count") else 0
    middle = reference.now - (whole + 0.5) * unit
    return Period(middle - unit / 4, middle + unit / 4)


def _length_in(match: re.Match[str]) -> timedelta:
    return number_in(_said(match, "count")) * length_of(match["unit"])


def number_in(words: str | None) -> int:
    given = " ".join((words or "one").casefold().split())
    return int(given) if given.isdecimal() else (_NUMBERS | _VAGUE)[given]


def length_of(unit: str) -> timedelta:
    days = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1, "week": 7}
    days |= {"fortnight": 14, "month": 30, "year": 365}
    return timedelta(days=days[unit.casefold()])


_QUARTERS: Final = rf"Q(?P<quarter>[1-4])(?:[\s/]+{_YEAR})?"
_HALF: Final = r"H(?P<half>[12])"
_LAST_WORD: Final = (
    r"(?=\s*(?:[^\w\s]|$|and\b|to\b|until\b|(?:of\s+)?(?:this|last|next)\s+year\b|this\b|last\b))"
)
"""Not in "before the Christmas party" or "the 24th item"."""
_FEAST_NAMES: Final = "|".join(
    name.replace("'", "['\u2019]").replace(" ", r"\s+")
    for name in sorted((*_FEASTS, *_EASTER_FEASTS), key=len, reverse=True)
)
_FEAST: Final = rf"(?P<feast>{_FEAST_NAMES})(?:,?\s+{_YEAR})?{_LAST_WORD}"
_NTH: Final = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)"
_WEEKDAY: Final = rf"(?P<weekday>{'|'.join(WEEKDAYS)})"
_ON_WEEKDAY: Final = rf"(?:(?:{'|'.join(WEEKDAYS)}),?\s+(?:the\s+)?)?"
"""A date may name its weekday, too."""
_SEASON: Final = rf"(?P<season>{'|'.join(_SEASONS)})"
_NAMED_MONTH: Final = rf"(?P<month>{'|'.join(MONTHS)})"
_FAR: Final = r"(?P<which>before\s+last|after\s+next)"
_THIS_MONTH: Final = (
    rf"(?P<which>this)\s+(?P<month>{'|'.join(sorted({*MONTHS} - {'may', 'march'}))}"
    r"|(?-i:May|March)|(?:may|march)(?=\W*\Z))"
)
"""Not in "this may fail" and "this march was long"."""


def _any_of(forms: Iterable[Form]) -> str:
    """A pattern that matches what one of the forms does, without their groups."""
    return re.sub(r"\?P<\w+>", "?:", "|".join(f"(?:{form.pattern})" for form in forms))


_WHOLES: Final = (
    Form(rf"(?P<month>{_MONTH})\.?(?:,?\s+(?:of\s+)?{_YEAR})?", _month),
    Form(rf"{_SEASON}(?:\s+(?:of\s+)?{_YEAR})?", _season),
    Form(rf"(?P<which>last|next|this)\s+{_SEASON}", _season),
    Form(rf"(?P<which>last|next)\s+{_NAMED_MONTH}", _month),
    Form(_THIS_MONTH, _month),
    Form(_YEAR, _year),
    Form(
        r"(?P<which>the|this|last|next|previous|coming)\s+(?P<unit>week|month|quarter|year)",
        _calendar_unit,
    ),
)
"""Times that are long enough to have pieces."""
_WHOLE: Final = rf"(?P<whole>{_any_of(_WHOLES)})"
_FIRST_FOUR: Final = rf"{'|'.join(_DAYS[:4])}|1st|2nd|3rd|4th"
_PIECES: Final = (
    r"(?:first|second|last)\s+half|beginning|start|middle|end"
    rf"|(?:{_FIRST_FOUR}|last)\s+(?:day|week|weekend|{'|'.join(WEEKDAYS)})"
    rf"|(?:first|last)\s+(?:\d\d?|{NUMBER_WORDS})\s+(?:days|weeks|months)"
)
_DATES: Final = (
    Form(rf"(?P<piece>{_PIECES})\s+(?:of|in)\s+(?:the\s+)?{_WHOLE}", _piece),
    Form(rf"(?P<piece>early|mid|late)(?:\s+in)?[\s-]+(?:the\s+)?{_WHOLE}", _piece),
    Form(_QUARTERS, _quarter),
    Form(rf"{_YEAR}[\s/-]+Q(?P<quarter>[1-4])", _quarter),
    Form(rf"{_HALF}[\s/]+{_YEAR}", _half_year),
    Form(rf"{_YEAR}[\s/-]+{_HALF}", _half_year),
    Form(
        rf"(?P<quarter>{_FIRST_FOUR})\s+quarter(?:\s+(?:of\s+)?{_YEAR})?",
        _quarter,
    ),
    Form(rf"{_YEAR}[-/](?P<number>0?[1-9]|1[0-2])[-/](?P<day>0?[1-9]|[12]\d|3[01])", _iso_day),
    Form(rf"(?P<day>0?[1-9]|[12]\d|3[01])\.(?P<number>0?[1-9]|1[0-2])\.{_YEAR}", _iso_day),
    Form(rf"(?P<one>\d\d?)/(?P<other>\d\d?)/{_YEAR}", _slashed_day),
    Form(
        rf"{_ON_WEEKDAY}(?:{_DAY}|(?P<ordinal>{'|'.join(_DAYS)}))\s+(?:of\s+)?"
        rf"(?P<month>{_MONTH})\.?(?:,?\s+{_YEAR})?",
        _calendar_day,
    ),
    Form(
        rf"{_ON_WEEKDAY}(?P<month>{_MONTH})\.?\s+(?:the\s+)?{_DAY}(?:,?\s+{_YEAR})?", _calendar_day
    ),
    Form(rf"(?P<month>{_MONTH})\.?,?\s+(?:of\s+)?{_YEAR}", _month),
    Form(rf"(?:{'|'.join(WEEKDAYS)})\s+the\s+{_NTH}", _day_of_month),
    Form(rf"{_NTH}\s+of\s+(?P<which>the|this|last|next)\s+month", _day_of_month),
    Form(rf"(?P<which>last|next|this)\s+{_SEASON}", _season),
    Form(rf"{_SEASON}\s+(?:of\s+)?{_YEAR}", _season),
    Form(rf"(?P<named>yesterday|tomorrow)(?:\s+(?P<part>{_PART}))?", _named_day),
    Form(r"(?:earlier\s+)?(?P<named>today)", _named_day),
    Form(r"(?P<named>this)\s+(?P<part>morning|afternoon|evening)", _named_day),
    Form(r"(?P<named>last(?=\s)|to(?=n))\s*(?P<part>night)", _named_day),
    Form(rf"{_WEEKDAY}\s+(?:of\s+)?(?P<which>last|this|next)\s+week", _weekday_of_week),
    Form(rf"(?P<which>last|this|next)\s+week(?:['\u2019]s|\s+on)?\s+{_WEEKDAY}", _weekday_of_week),
    Form(
        rf"(?:(?P<which>last|this|next|previous|coming)\s+)?{_WEEKDAY}(?:\s+(?P<part>{_PART}))?",
        _weekday,
    ),
    Form(
        r"(?P<rest>earlier|later)\s+(?P<which>this)\s+(?P<unit>week|month|quarter|year)",
        _rest_of_unit,
    ),
    Form(
        rf"(?P<unit>week|weekend|month|quarter|year)\s+{_FAR}",
        _calendar_unit,
    ),
    Form(
        r"(?P<which>last|this|next|previous|coming)\s+(?P<unit>week|weekend|month|quarter|year)",
        _calendar_unit,
    ),
    Form(rf"(?P<which>last|next)\s+{_NAMED_MONTH}", _month),
    Form(_THIS_MONTH, _month),
    Form(rf"(?P<which>last|next|this)\s+{_FEAST}", _feast),
    Form(rf"{_NAMED_MONTH}\s+{_FAR}", _month),
    Form(rf"{_SEASON}\s+{_FAR}", _season),
    Form(rf"(?P<feast>{_FEAST_NAMES})\s+{_FAR}", _feast),
    Form(rf"{_WEEKDAY}\s+{_FAR}", _weekday),
    Form(rf"{_COUNT}\s+{_UNIT}\s+ago", _ago),
    Form(rf"{_COUNT}\s+{_WEEKDAY}s?\s+ago", _weekdays_ago),
    Form(rf"{_COUNT}\s+weekends?\s+ago", _weekends_ago),
    Form(rf"{_COUNT}\s+{_UNIT}\s+and\s+a\s+half\s+ago", _and_a_half_ago),
    Form(rf"{_COUNT}\s+and\s+a\s+half\s+{_UNIT}\s+ago", _and_a_half_ago),
    Form(rf"half\s+an?\s+{_UNIT}\s+ago", _and_a_half_ago),
)
"""Dates that need no other word."""
_NTH_DAY: Final = Form(_NTH + _LAST_WORD, _day_of_month)
_SLASHED: Final = Form(r"(?P<one>1[3-9]|2\d|3[01])/(?P<other>0?[1-9]|1[0-2])", _slashed_day)
"""Without a year only the day first, because 10/20 is more often a score or a share."""
_BARE: Final = (
    Form(_NAMED_MONTH, _month),
    Form(_SEASON, _season),
    Form(_YEAR, _year),
    Form(_FEAST, _feast),
    Form(_HALF + _LAST_WORD, _half_year),
    Form(rf"{_YEAR}[-/](?P<number>0[1-9]|1[0-2])", _iso_month),
    Form(rf"(?P<number>0?[1-9]|1[0-2])/{_YEAR}", _iso_month),
    Form(
        r"(?:(?:calendar\s+)?week|[CK]W)\s+(?P<number>\d\d?)"
        rf"(?:\s+(?:of\s+)?{_YEAR})?(?!\s+of\b(?!\s+(?:last|this|next)\s+year\b))",
        _week_number,
    ),
)
"""Dates only beside a preposition: otherwise a person's name, a verb, a number."""
ALL_DATES: Final = (*_DATES, *_BARE, _NTH_DAY, _SLASHED)
_YEARLY: Final = frozenset(
    {
        _piece,
        _quarter,
        _half_year,
        _week_number,
        _days_of_month,
        _calendar_day,
        _slashed_day,
        _feast,
        _month,
        _season,
    }
)
"""The readers of what comes every year."""
_THROUGH: Final = r"\s+(?:to|until|till|through)\s+(?:the\s+)?|\s*[-\u2013]\s*"
_UNTIL_DAY: Final = r"(?P<until>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_DAYS_OF_A_MONTH: Final = (
    Form(
        rf"{_DAY}(?:{_THROUGH}){_UNTIL_DAY}\s+(?:of\s+)?(?P<month>{_MONTH})\.?(?:,?\s+{_YEAR})?",
        _days_of_month,
    ),
    Form(
        rf"(?P<month>{_MONTH})\.?\s+(?:the\s+)?{_DAY}(?:{_THROUGH}){_UNTIL_DAY}(?!:\d)"
        rf"(?:,?\s+{_YEAR})?",
        _days_of_month,
    ),
)
"""Two days of one month, and those between them: "Oct 10-20"."""
_TWO_DAYS: Final = (
    Form(
        rf"{_DAY}\s*(?:and|/)\s*(?:the\s+)?{_UNTIL_DAY}\s+(?:of\s+)?"
        rf"(?P<month>{_MONTH})\.?(?:,?\s+{_YEAR})?",
        _days_of_month,
    ),
    Form(
        rf"(?P<month>{_MONTH})\s+(?:the\s+)?{_DAY}\s+and\s+(?:the\s+)?{_UNTIL_DAY}"
        rf"(?:,?\s+{_YEAR})?",
        _days_of_month,
    ),
)
"""Two days of one month, which a preposition must introduce."""
_SPANS: Final = (
    Form(rf"(?:last|past)\s+{_COUNT}\s+{_UNIT}", _last_units),
    Form(r"past\s+(?P<unit>hour|day|week|fortnight|month|year)", _last_units),
    Form(r"last\s+(?P<unit>hour|day|fortnight)", _last_units),
    Form(rf"(?:next|coming)\s+{_COUNT}\s+{_UNIT}", _next_units),
)
"""Times up to now, or from now."""
_VAGUE_DATES: Final = (
    Form(
        r"recently|lately|other\s+day",
        lambda _, reference: Period(reference.now - _LATELY, reference.now + INSTANT),
    ),
    Form(
        r"just\s+now|a\s+moment\s+ago",
        lambda _, reference: Period(reference.now - timedelta(hours=1), reference.now + INSTANT),
    ),
)


def _read(forms: Iterable[Form], text: str, reference: ReferenceTime) -> Period | None:
    """What a text means that one of the forms matches as a whole."""
    for form in forms:
        found = form.at(text, 0, reference)
        if found is not None and found.span[1] == len(text):
            return found.period
    return None


def date_at(
    text: str, start: int, reference: ReferenceTime, forms: Iterable[Form] = ALL_DATES
) -> Expression | None:
    """The longest date that begins at a place of the text."""
    found = [date for form in forms if (date := form.at(text, start, reference))]
    if year := _IN_YEAR.match(text, start):
        found += [
            Expression(date.period, (start, date.span[1]))
            for form in ALL_DATES
            if (date := form.at(text, year.end(), reference, year["which"]))
        ]
    return max(found, key=lambda date: date.span[1], default=None)


def dates_in(text: str, reference: ReferenceTime) -> Iterator[Expression]:
    """The dates of a text in order, each with its preposition; where several begin at one place,
    the longest. None is within another."""
    end = 0
    for word in _WORD.finditer(text):
        if word.start() < end:
            continue
        before = text[max(0, word.start() - _LONGEST_LEAD) : word.start()]
        found = []
        for lead, forms in _SINGLES:
            begins = lead.search(before)
            date = begins and date_at(text, word.start(), reference, forms)
            if begins and date:
                start = word.start() - len(begins[0])
                found.append(Expression(date.period, (start, date.span[1])))
        if found:
            longest = max(found, key=lambda date: date.span[1])
            end = longest.span[1]
            yield longest


def _lead(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{BEGINS}{pattern}\Z", re.IGNORECASE)


_NAMED: Final = "|".join((*MONTHS, *WEEKDAYS, *_SEASONS, *_NUMBERS, *_DAYS))
_WORD: Final = re.compile(
    rf"{BEGINS}(?=\d|(?:{_NAMED}|{_MONTH}|Q[1-4]|H[12]|half|calendar|[CK]W"
    r"|last|this|next|previous|coming|past|beginning|start|middle|end|early|mid|late|earlier|later"
    r"|couple|few|several|yesterday|today|tomorrow|tonight|weekend|week|month|quarter|year"
    rf"|{_FEAST_NAMES}"
    r"|recently|lately|other|just)\b)",
    re.IGNORECASE,
)
"""What a date can begin with."""
_LONGEST_LEAD: Final = 40
_PLANNED: Final = "|".join(
    f"(?<={word} )" for word in ("planned", "scheduled", "due", "tasks", "plans")
)
"""Behind these "for March" says when; elsewhere it may say what, as in "the budget for March"."""
_SINGLES: Final = (
    (_lead(r"(?:(?:on|in|during|from|for|of|at|over)\s+)?(?:the\s+)?"), _DATES),
    (_lead(r"(?:in|during|throughout)\s+(?:the\s+)?"), _BARE),
    (_lead(r"(?:on|from|of|for)\s+the\s+"), (_NTH_DAY,)),
    (_lead(r"on\s+(?:the\s+)?"), (_SLASHED,)),
    (_lead(r"(?:(?:in|within|over|during|for|from)\s+)?(?:the\s+)?"), _SPANS),
    (
        _lead(r"(?:over|during|on|at)\s+the\s+"),
        (Form("weekend", lambda _, reference: latest_weekend(reference)),),
    ),
    (_lead(r"(?:between|from|on)\s+(?:the\s+)?"), _TWO_DAYS),
    (
        _lead(r"(?:(?:between|from|on|in|during|for|of|over)\s+)?(?:the\s+)?"),
        _DAYS_OF_A_MONTH,
    ),
    (_lead(r"over\s+(?:the\s+)?"), (Form(_SEASON, _season),)),
    (_lead(r"(?:at|on|over)\s+"), (Form(_FEAST, _feast),)),
    (_lead(rf"(?:{_PLANNED})for\s+"), (Form(_NAMED_MONTH, _month),)),
    (
        _lead(r"(?:in|within)\s+"),
        (Form(rf"{_COUNT}\s+{_UNIT}(?:['\u2019]?\s+time)?", _units_ahead),),
    ),
    (_lead(r"(?:the\s+)?"), _VAGUE_DATES),
)
"""Which words may or must stand before which dates."""
