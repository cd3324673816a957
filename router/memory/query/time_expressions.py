"""The time that a sentence speaks of: "last week", "in March", "since Monday", "8 May 2023".

English, by rules, against an injected now; nothing is guessed. A phrase counts only when it can be
nothing else: "may" is a month after "in" or with a year, never in "may I"; "march" never in "march
on"; "update", "second" and "date picker" never are about time.

Days, weeks (from Monday), months and years are those of the calendar in the time zone of ``now``.
A month or weekday without a year is the latest one that has begun, or the coming one where the
sentence looks ahead ("due on Friday", "by March", but not "were filed by March").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from router.memory.model import Period


@dataclass(frozen=True, slots=True)
class Expression:
    """A phrase about time.

    Attributes:
        period: what it means.
        span: where it stands: ``text[start:end]``, its preposition included.
    """

    period: Period
    span: tuple[int, int]

    def removed_from(self, text: str) -> str:
        """The text without the phrase."""
        start, end = self.span
        return " ".join(f"{text[:start]} {text[end:]}".split())


def find_period(text: str, now: datetime) -> Expression | None:
    """The period that a text speaks of, its ends aware, and the words that say so; None when it
    speaks of none. ``now`` is aware; "today" is its day.

    Of several phrases a relation between dates ("between", "since") wins over a single date, and
    otherwise the first one, the longest of those that begin there.
    """
    asked = _Asked(now, ahead=_looks_ahead(text))
    for relation in _RELATIONS:
        if found := _first(relation, text, asked):
            return found
    singles = [found for form in _SINGLES if (found := _first(form, text, asked))]
    return min(singles, key=lambda found: (found.span[0], -found.span[1]), default=None)


@dataclass(frozen=True, slots=True)
class _Asked:
    """When the question was put, and whether it looks ahead."""

    now: datetime
    ahead: bool = False

    @property
    def today(self) -> datetime:
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True, slots=True)
class _Form:
    """A way to write a time, as a regular expression, and how to read its groups."""

    pattern: str
    read: Callable[[re.Match[str], _Asked], Period | None]

    def in_text(self, before: str = "") -> _Reader:
        """Finds it in a text, maybe behind other words, and reads it."""
        # A letter, slash, dot or hyphen next to it makes it part of a name, a path or a version.
        whole = rf"(?<![\w/.-]){before}(?:{self.pattern})(?![\w/]|[.-]\w)"
        return re.compile(whole, re.IGNORECASE), self.read


_Reader = tuple[re.Pattern[str], Callable[[re.Match[str], _Asked], Period | None]]


def _first(reader: _Reader, text: str, asked: _Asked) -> Expression | None:
    pattern, read = reader
    for match in pattern.finditer(text):
        period = _checked(read, match, asked)
        if period is not None:
            return Expression(period, match.span())
    return None


def _checked(
    read: Callable[[re.Match[str], _Asked], Period | None], match: re.Match[str], asked: _Asked
) -> Period | None:
    try:
        period = read(match, asked)
    except (ValueError, OverflowError):  # 31 February, or a year that the calendar does not have
        return None
    return period if period is not None and period.start < period.end else None


_MONTHS: Final = (
    "january february march april may june july august september october november december".split()
)
_WEEKDAYS: Final = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SEASONS: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""Their first months, in the northern hemisphere."""
_FEASTS: Final = {
    "christmas": (12, 25),
    "christmas day": (12, 25),
    "christmas eve": (12, 24),
    "new year": (1, 1),
    "new year's day": (1, 1),
    "new year's eve": (12, 31),
    "halloween": (10, 31),
}
"""Those that every year has on the same day."""
_ENDS: Final = {"week": 2, "month": 10, "quarter": 31, "year": 31}
"""Days that are the end of a longer time."""
_NUMBERS: Final = {
    word: number
    for number, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(), start=1
    )
} | {"a": 1, "an": 1}
_ORDINALS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_VAGUE: Final = {"a couple of": 2, "couple of": 2, "a few": 3, "few": 3, "several": 4}
_PARTS: Final = {"morning": (5, 12), "afternoon": (12, 18), "evening": (18, 24), "night": (18, 30)}
"""Hours of the day from midnight; a night ends in the morning."""
_LATELY: Final = timedelta(days=7)
"""How far "recently" reaches."""
_INSTANT: Final = timedelta(seconds=1)
"""A period that lasts until now includes what is remembered at this very moment."""

_AHEAD: Final = re.compile(
    r"\b(?:will|due|plans|upcoming|remind|deadlines?|scheduled?|going to|planned|coming|comes up|"
    r"do (?:I|we|you|they) (?:still )?(?:have|need) to)\b",
    re.IGNORECASE,
)
_DID: Final = re.compile(r"\b(?:was|were|did|had)(?:n't)?\b(?!.*\bto\b)", re.IGNORECASE | re.DOTALL)
"""Says that something was so; "What did I promise to send by Friday?" may still look ahead."""
_MONTH: Final = rf"(?:{'|'.join(_MONTHS)}|sept?|jan|feb|mar|apr|jun|jul|aug|oct|nov|dec)"
_DAY: Final = r"(?P<day>0?[1-9]|[12]\d|3[01])(?P<th>st|nd|rd|th)?"
_YEAR: Final = r"(?P<year>(?:19|20)\d\d)"
_PART: Final = "|".join(_PARTS)
_VAGUELY: Final = "|".join(_VAGUE)
_COUNT: Final = rf"(?P<count>\d{{1,4}}|{'|'.join(_NUMBERS)}|{_VAGUELY})"
_WITHIN: Final = r"(?:(?:in|within|over|during|for|from)\s+)?(?:the\s+)?"
_UNIT: Final = r"(?P<unit>minute|hour|day|week|fortnight|month|year)s?"


def _optional(match: re.Match[str], name: str) -> str | None:
    """A group that not every form with the same reading has."""
    return match.groupdict().get(name)


def _part_of_month(match: re.Match[str], asked: _Asked) -> Period:
    """The first or second half, the beginning, the middle or the end of a month."""
    whole = _month(match, asked)
    first = whole.start
    tenth, half, twentieth = (first + timedelta(days=days) for days in (10, 15, 20))
    return {
        "first half": Period(whole.start, half),
        "second half": Period(half, whole.end),
        "last half": Period(half, whole.end),
        "beginning": Period(whole.start, tenth),
        "start": Period(whole.start, tenth),
        "middle": Period(tenth, twentieth),
        "end": Period(twentieth, whole.end),
    }[" ".join(match["half"].casefold().split())]


def _quarter(match: re.Match[str], asked: _Asked) -> Period:
    """A quarter of the calendar year, such as Q3 or "the first quarter of 2026"."""
    named = match["quarter"].casefold()
    number = int(named) if named.isdecimal() else _ORDINALS[named]
    first = asked.today.replace(month=3 * number - 2, day=1)
    if year := _optional(match, "year"):
        return _months(first.replace(year=int(year)), 3)
    if first > asked.now and not asked.ahead:
        first = _in_year(first, -1)
    elif asked.ahead and _shifted(first, 3) <= asked.now:
        first = _in_year(first, 1)
    return _months(first, 3)


def _weekend(_: re.Match[str], asked: _Asked) -> Period:
    """ "Over the weekend": the latest one that has begun, or the coming one."""
    saturday = asked.today + timedelta(days=5 - asked.today.weekday())
    if saturday > asked.now and not asked.ahead:
        saturday -= timedelta(weeks=1)
    return _days(saturday, 2)


def _days_of_month(match: re.Match[str], asked: _Asked) -> Period | None:
    """ "Between 3 and 5 November": two days of one month."""
    month, first, last = _month_number(match["month"]), int(match["day"]), int(match["until"])
    start = _dated(match, asked, month, first)
    return Period(start, start.replace(day=last) + timedelta(days=1)) if last >= first else None


def _days(start: datetime, days: int) -> Period:
    return Period(start, start + timedelta(days=days))


def _months(first: datetime, months: int) -> Period:
    """So many calendar months from the first of one."""
    return Period(first, _shifted(first, months))


def _shifted(first: datetime, months: int) -> datetime:
    index = first.year * 12 + first.month - 1 + months
    return first.replace(year=index // 12, month=index % 12 + 1)


def _month_number(name: str) -> int:
    return next(n for n, month in enumerate(_MONTHS, start=1) if month[:3] == name.casefold()[:3])


def _nearest_year(asked: _Asked, month: int, day: int = 1) -> datetime:
    """The latest such day that has come, or the next one for who looks ahead."""
    start = asked.today.replace(month=month, day=day)
    if asked.ahead and (start.month, start.day) < (asked.today.month, asked.today.day):
        return start if month == asked.today.month and day == 1 else _in_year(start, 1)
    return start if asked.ahead or start <= asked.now else _in_year(start, -1)


def _dated(match: re.Match[str], asked: _Asked, month: int, day: int = 1) -> datetime:
    """Such a day of the year that is named; without one, the nearest."""
    if year := _optional(match, "year"):
        return asked.today.replace(year=int(year), month=month, day=day)
    return _nearest_year(asked, month, day)


def _in_year(start: datetime, years: int) -> datetime:
    return start.replace(year=start.year + years)


def _calendar_day(match: re.Match[str], asked: _Asked) -> Period | None:
    if not match["year"] and match["month"] in ("may", "march") and not match["th"]:
        return None  # "8 may fail"
    return _days(_dated(match, asked, _month_number(match["month"]), int(match["day"])), 1)


def _iso_day(match: re.Match[str], asked: _Asked) -> Period:
    year, month, day = int(match["year"]), int(match["number"]), int(match["day"])
    return _days(asked.today.replace(year=year, month=month, day=day), 1)


def _feast(match: re.Match[str], asked: _Asked) -> Period:
    month, day = _FEASTS[" ".join(match["feast"].casefold().replace("\u2019", "'").split())]
    return _days(_dated(match, asked, month, day), 1)


def _end_of(match: re.Match[str], asked: _Asked) -> Period:
    """The last days of a week, month, quarter or year."""
    end = _calendar_unit(match, asked).end
    return Period(end - timedelta(days=_ENDS[match["unit"].casefold()]), end)


def _month(match: re.Match[str], asked: _Asked) -> Period:
    return _months(_dated(match, asked, _month_number(match["month"])), 1)


def _season(match: re.Match[str], asked: _Asked) -> Period:
    month = _SEASONS[match["season"].casefold()]
    if _optional(match, "year"):
        return _months(_dated(match, asked, month), 3)
    latest = _nearest_year(_Asked(asked.now), month)
    over = _shifted(latest, 3) <= asked.now
    which = match["which"].casefold()
    shift = {"last": 0 if over else -1, "next": 1, "this": 1 if over else 0}[which]
    return _months(_in_year(latest, shift), 3)


def _named_day(match: re.Match[str], asked: _Asked) -> Period:
    shift = {"yesterday": -1, "today": 0, "this": 0, "tomorrow": 1}[match["named"].casefold()]
    return _part_of(asked.today + timedelta(days=shift), _optional(match, "part"))


def _part_of(day: datetime, part: str | None) -> Period:
    if part is None:
        return _days(day, 1)
    start, end = _PARTS[part.casefold()]
    return Period(day + timedelta(hours=start), day + timedelta(hours=end))


def _night(match: re.Match[str], asked: _Asked) -> Period:
    shift = 0 if match[0].casefold().endswith("tonight") else -1
    return _part_of(asked.today + timedelta(days=shift), "night")


def _weekday(match: re.Match[str], asked: _Asked) -> Period:
    number = _WEEKDAYS.index(match["weekday"].casefold())
    back = (asked.today.weekday() - number) % 7  # 0 is today
    which = (match["which"] or "").casefold()
    if which in ("last", "previous"):
        shift = -(back or 7)
    elif which in ("next", "coming") or (not which and asked.ahead):
        shift = (7 - back) if back or which else 0
    elif which == "this":
        shift = number - asked.today.weekday()
    else:
        shift = -back
    return _part_of(asked.today + timedelta(days=shift), match["part"])


def _calendar_unit(match: re.Match[str], asked: _Asked) -> Period:
    shift = {"the": 0, "this": 0, "next": 1, "coming": 1}.get(match["which"].casefold(), -1)
    today = asked.today
    monday = today - timedelta(days=today.weekday())
    unit = match["unit"].casefold()
    if unit == "week":
        return _days(monday + timedelta(weeks=shift), 7)
    if unit == "weekend":
        return _days(monday + timedelta(days=5, weeks=shift), 2)
    if unit == "month":
        return _months(_shifted(today.replace(day=1), shift), 1)
    if unit == "quarter":
        first = today.replace(month=(today.month - 1) // 3 * 3 + 1, day=1)
        return _months(_shifted(first, 3 * shift), 3)
    return _months(_in_year(today.replace(month=1, day=1), shift), 12)


def _last_units(match: re.Match[str], asked: _Asked) -> Period:
    """The last so many units, or the last one, up to now."""
    length = _number(_optional(match, "count")) * _length(match["unit"])
    return Period(asked.now - length, asked.now + _INSTANT)


def _ago(match: re.Match[str], asked: _Asked) -> Period:
    """Around a time so long ago, as exactly as it was said: "three days ago" is a day, "three
    hours ago" an hour and a half before and after, "a few days ago" one to six days ago."""
    count, unit = _number(match["count"]), match["unit"].casefold()
    length = _length(unit)
    if " ".join(match["count"].casefold().split()) in _VAGUE:
        return Period(asked.now - 2 * count * length, asked.now - length + _INSTANT)
    if unit == "day":
        return _days(asked.today - count * length, 1)
    if unit in ("fortnight", "week"):
        return _days(asked.today - count * length - timedelta(days=3), 7)
    if unit == "month":
        return _months(_shifted(asked.today.replace(day=1), -count), 1)
    if unit == "year":
        return _months(_in_year(asked.today.replace(month=1, day=1), -count), 12)
    return Period(asked.now - 1.5 * count * length, asked.now - 0.5 * count * length)


def _number(words: str | None) -> int:
    given = " ".join((words or "one").casefold().split())
    return int(given) if given.isdecimal() else (_NUMBERS | _VAGUE)[given]


def _length(unit: str) -> timedelta:
    days = {"minute": 1 / 1440, "hour": 1 / 24, "day": 1, "week": 7}
    days |= {"fortnight": 14, "month": 30, "year": 365}
    return timedelta(days=days[unit.casefold()])


_HALVES: Final = r"first\s+half|second\s+half|last\s+half|beginning|start|middle|end"
_QUARTERS: Final = rf"Q(?P<quarter>[1-4])(?:[\s/]+{_YEAR})?"
_FEAST: Final = (
    r"(?P<feast>christmas(?:\s+(?:day|eve))?|new\s+year(?:['\u2019]s\s+(?:day|eve))?|halloween)"
    rf"(?:,?\s+{_YEAR})?(?=\s*(?:[^\w\s]|$|and\b|to\b|until\b|this\b|last\b))"
)
"""Not in "before the Christmas party"."""
_DATES: Final = (
    _Form(rf"(?P<half>{_HALVES})\s+of\s+(?P<month>{_MONTH})\.?(?:,?\s+{_YEAR})?", _part_of_month),
    _Form(_QUARTERS, _quarter),
    _Form(
        rf"(?P<quarter>first|second|third|fourth)\s+quarter(?:\s+(?:of\s+)?{_YEAR})?",
        _quarter,
    ),
    _Form(rf"{_YEAR}[-/](?P<number>0?[1-9]|1[0-2])[-/](?P<day>0?[1-9]|[12]\d|3[01])", _iso_day),
    _Form(rf"{_DAY}\s+(?:of\s+)?(?P<month>{_MONTH})\.?(?:,?\s+{_YEAR})?", _calendar_day),
    _Form(rf"(?P<month>{_MONTH})\.?\s+{_DAY}(?:,?\s+{_YEAR})?", _calendar_day),
    _Form(rf"(?P<month>{_MONTH})\.?,?\s+(?:of\s+)?{_YEAR}", _month),
    _Form(rf"(?P<which>last|next|this)\s+(?P<season>{'|'.join(_SEASONS)})", _season),
    _Form(rf"(?P<season>{'|'.join(_SEASONS)})\s+(?:of\s+)?{_YEAR}", _season),
    _Form(rf"(?P<named>yesterday|tomorrow)(?:\s+(?P<part>{_PART}))?", _named_day),
    _Form(r"(?:earlier\s+)?(?P<named>today)", _named_day),
    _Form(r"(?P<named>this)\s+(?P<part>morning|afternoon|evening)", _named_day),
    _Form(r"end\s+of\s+(?P<which>the|this|next|last)\s+(?P<unit>week|month|quarter|year)", _end_of),
    _Form(r"last\s+night|tonight", _night),
    _Form(
        r"day\s+(?:(?P<back>before\s+yesterday)|after\s+tomorrow)",
        lambda match, asked: _days(asked.today + timedelta(days=-2 if match["back"] else 2), 1),
    ),
    _Form(
        rf"(?:(?P<which>last|this|next|previous|coming)\s+)?(?P<weekday>{'|'.join(_WEEKDAYS)})"
        rf"(?:\s+(?P<part>{_PART}))?",
        _weekday,
    ),
    _Form(
        r"(?P<which>last|this|next|previous|coming)\s+(?P<unit>week|weekend|month|quarter|year)",
        _calendar_unit,
    ),
    _Form(rf"(?:last|next)\s+(?P<month>{'|'.join(_MONTHS)})", _month),
    _Form(rf"{_COUNT}\s+{_UNIT}\s+ago", _ago),
)
"""Dates that need no other word."""
_BARE: Final = (
    _Form(rf"(?P<month>{'|'.join(_MONTHS)})", _month),
    _Form(_YEAR, lambda match, asked: _months(_dated(match, asked, 1), 12)),
    _Form(_FEAST, _feast),
)
"""Dates only beside a preposition: otherwise a person's name, a verb, a number."""


def _date(text: str, asked: _Asked) -> Period | None:
    for form in (*_DATES, *_BARE):
        match = re.fullmatch(form.pattern, text, re.IGNORECASE)
        if match and (period := _checked(form.read, match, asked)):
            return period
    return None


_ANY_DATE: Final = re.sub(
    r"\?P<\w+>", "?:", "|".join(f"(?:{form.pattern})" for form in (*_DATES, *_BARE))
)


def _between(match: re.Match[str], asked: _Asked) -> Period | None:
    """From the beginning of the one to the end of the other."""
    first, last = _date(match["first"], asked), _date(match["last"], asked)
    if first is None or last is None:
        return None
    # "between November and February": it began the year before.
    start = first.start if first.start < last.end else _in_year(first.start, -1)
    return Period(start, last.end)


def _since(match: re.Match[str], asked: _Asked) -> Period | None:
    point = _date(match["point"], _Asked(asked.now))
    if point is None:
        return None
    return Period(point.start, max(asked.now + _INSTANT, point.end))


def _after(match: re.Match[str], asked: _Asked) -> Period | None:
    point = _date(match["point"], asked)
    if point is None:
        return None
    until = asked.now + _INSTANT
    return Period(point.end, until if point.end < until else _in_year(point.end, 1))


def _until(match: re.Match[str], asked: _Asked) -> Period | None:
    """Before a date, or up to its end."""
    if _is_by_somebody(match):
        return None
    point = _date(match["point"], asked)
    if point is None:
        return None
    end = point.start if match["before"] else point.end
    return Period(datetime(1, 1, 2, tzinfo=asked.now.tzinfo), end)


_BY_NAME: Final = re.compile(r"by (?:April|May|June|August)")
_WHO: Final = re.compile(r"\bwho(?:m|se)?\b", re.IGNORECASE)
_PASSIVE: Final = re.compile(r"\b(?:am|is|are|was|were|been)\b", re.IGNORECASE)
_PARTICIPLE: Final = re.compile(
    r"\w+ed|beaten|bitten|bought|brought|built|caught|chosen|"
    r"driven|fed|forgiven|found|given|heard|held|hidden|hit|hurt|kept|known|led|left|lent|made|met|"
    r"paid|seen|sent|shown|sold|spoken|taken|taught|told|understood|won|written",
    re.IGNORECASE,
)


def _is_by_somebody(match: re.Match[str]) -> bool:
    """Whether "by June" names a person, as in "Who was mentored by June?", but not in "Who is free
    by June?"."""
    if not _BY_NAME.fullmatch(match[0]):
        return False
    clause = re.split("[.?!;]", match.string[: match.start()])[-1]
    who = _WHO.search(clause)
    if who is None or not _PARTICIPLE.fullmatch(clause.split()[-1]):
        return False
    return _PASSIVE.search(clause, who.end()) is not None


_UP_TO, _ = _Form(rf"(?:until|till|by)\s+(?:the\s+)?(?:{_ANY_DATE})", _until).in_text()


def _looks_ahead(text: str) -> bool:
    """Whether a sentence is about what comes: by its words, or up to a date, unless it says before
    the date that something was so ("Which tickets were filed by April?")."""
    if _AHEAD.search(text):
        return True
    up_to = _UP_TO.search(text)
    return up_to is not None and not _DID.search(re.split("[.?!;]", text[: up_to.start()])[-1])


_RELATIONS: Final = tuple(
    form.in_text()
    for form in (
        _Form(
            rf"between\s+(?:the\s+)?(?P<first>{_ANY_DATE})\s+and\s+(?:the\s+)?(?P<last>{_ANY_DATE})",
            _between,
        ),
        _Form(
            rf"(?:between|from)\s+(?:the\s+)?{_DAY}\s+(?:and|to|until|till)\s+(?:the\s+)?"
            rf"(?P<until>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})"
            rf"\.?(?:,?\s+{_YEAR})?",
            _days_of_month,
        ),
        _Form(
            rf"(?:between|from)\s+(?P<month>{_MONTH})\s+(?:the\s+)?{_DAY}\s+(?:and|to|until|till)"
            rf"\s+(?:the\s+)?(?P<until>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?:,?\s+{_YEAR})?",
            _days_of_month,
        ),
        _Form(
            rf"from\s+(?:the\s+)?(?P<first>{_ANY_DATE})\s+(?:to|until|till|through)\s+"
            rf"(?:the\s+)?(?P<last>{_ANY_DATE})",
            _between,
        ),
        _Form(rf"(?:ever\s+)?since\s+(?:the\s+)?(?P<point>{_ANY_DATE})", _since),
        _Form(rf"after\s+(?P<point>{_ANY_DATE})", _after),
        _Form(
            rf"(?:(?<!day )(?P<before>before)|until|till|by)\s+(?:the\s+)?(?P<point>{_ANY_DATE})",
            _until,
        ),
    )
)
_PLANNED: Final = "|".join(
    f"(?<={word} )" for word in ("planned", "scheduled", "due", "tasks", "plans")
)
"""Behind these "for March" says when; elsewhere it may say what, as in "the budget for March"."""
_SINGLES: Final = (
    *(form.in_text(r"(?:(?:on|in|during|from|for|of|at|over)\s+)?(?:the\s+)?") for form in _DATES),
    *(form.in_text(r"(?:in|during|throughout)\s+(?:early\s+|late\s+|mid-?\s*)?") for form in _BARE),
    *(
        form.in_text()
        for form in (
            _Form(rf"{_WITHIN}(?:last|past)\s+{_COUNT}\s+{_UNIT}", _last_units),
            _Form(rf"{_WITHIN}past\s+(?P<unit>hour|day|week|month|year)", _last_units),
            _Form(rf"{_WITHIN}last\s+(?P<unit>hour|day)", _last_units),
            _Form(r"(?:over|during|on|at)\s+the\s+weekend", _weekend),
            _Form(
                rf"(?:in|during|over)\s+(?:the\s+)?(?P<season>{'|'.join(_SEASONS)})",
                lambda match, asked: _months(
                    _nearest_year(asked, _SEASONS[match["season"].casefold()]), 3
                ),
            ),
            _Form(rf"(?:at|on|over)\s+{_FEAST}", _feast),
            _Form(rf"(?:{_PLANNED})for\s+(?P<month>{'|'.join(_MONTHS)})", _month),
            _Form(
                r"recently|lately|(?:the\s+)?other\s+day",
                lambda _, asked: Period(asked.now - _LATELY, asked.now + _INSTANT),
            ),
            _Form(
                r"just\s+now|a\s+moment\s+ago",
                lambda _, asked: Period(asked.now - timedelta(hours=1), asked.now + _INSTANT),
            ),
        )
    ),
)
