"""Finds the period that a sentence names: "last week", "in March", "since Monday", "8 May 2023".

English only, by rules. The current time is an argument. ``dates.py`` reads single dates; this
module reads the relations between them ("between", "since"), and decides whether a sentence is
about the future ("due on Friday", "by March", but not "were filed by March").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import chain
from typing import Final

from router.memory.model import Period
from router.memory.query.dates import (
    BEGINS,
    NUMBER_WORDS,
    Expression,
    checked,
    date_at,
    dates_in,
    length_of,
    number_in,
)
from router.memory.query.periods import INSTANT, ReferenceTime, days_from

MAX_PLAN_CHARACTERS: Final = 2_000
_AROUND: Final = timedelta(days=5)
"""How many days before and after "around" includes."""
_EVER: Final = datetime(1, 1, 2)
"""The start of a period that has only an end. Not the first day of all, because in some time zones
that would be before the first date there is."""
_AHEAD: Final = re.compile(
    r"\b(?:will|due|plans|upcoming|remind|deadlines?|scheduled?|going to|planned|coming|comes up|"
    r"must|do (?:I|we|you|they) (?:still )?(?:have|need) to|what(?:['\u2019]s| is) on|happening|"
    r"(?:do|have) (?:I|we) (?:have|got)(?: (?:anything|something))?(?= (?:on|this|next)\b))\b",
    re.IGNORECASE,
)
_DID: Final = re.compile(
    r"\b(?:(?:was|were|did|had)(?:n't)?|(?:what|who)\s+(?:(?:has|have)\s+)?\w{2,}[^\We]ed)\b"
    r"(?!.*\bto\b)",
    re.IGNORECASE | re.DOTALL,
)
"""Says that something is past: "What was filed by April?", "What happened by April?". Not if "to"
follows: "What did I promise to send by Friday?" may be about the future."""


def find_period(text: str, now: datetime) -> Expression | None:
    """The period that a text names, with aware ends, and where the words for it stand; None if it
    names none. ``now`` is aware; "today" is its day.

    If a text names several, a relation between dates ("between", "since") wins over a single date,
    and otherwise the first; of those that begin at the same word, the longest.
    """
    reference = ReferenceTime(now, ahead=_looks_ahead(text, now))
    return next(chain(_relations_in(text, reference), dates_in(text, reference)), None)


def planned_times(text: str, made_at: datetime) -> tuple[Period, ...]:
    """The periods that a plan names, where ``made_at`` is the time when it was made. Something to
    be done by a date belongs to the day of that date."""
    return _planned_times(text[:MAX_PLAN_CHARACTERS], made_at, made_at.tzinfo)


@lru_cache(4_096)
def _planned_times(text: str, made_at: datetime, _: tzinfo | None) -> tuple[Period, ...]:
    # The time zone is a part of the cache's key, because equal times of two zones are equal keys.
    reference = ReferenceTime(made_at, ahead=True)
    found = [
        each.period for each in chain(_relations_in(text, reference), dates_in(text, reference))
    ]
    return tuple(
        days_from(period.end - timedelta(days=1), 1) if period.start.year == _EVER.year else period
        for period in found
    )


def _relations_in(text: str, reference: ReferenceTime) -> Iterator[Expression]:
    """The periods that stand in a relation to dates, such as "since Monday"."""
    for lead in _RANGE.finditer(text):
        first = date_at(text, lead.end(), reference)
        joint = first and _JOINTS[lead["word"].casefold()].match(text, first.span[1])
        last = joint and date_at(text, joint.end(), reference)
        if first and last and (period := checked(_from_to, first.period, last.period)):
            yield Expression(period, (lead.start(), last.span[1]))
    for first in dates_in(text, reference) if _TO.search(text) else ():
        joint = _TO.match(text, first.span[1])
        last = joint and date_at(text, joint.end(), reference)
        if last and (period := checked(_from_to, first.period, last.period)):
            yield Expression(period, (first.span[0], last.span[1]))
    for pattern, read in _RELATIONS:
        for lead in pattern.finditer(text):
            point = date_at(
                text, lead.end(), ReferenceTime(reference.now) if read is _since else reference
            )
            if point and (period := checked(read, lead, point, reference)):
                yield Expression(period, (lead.start(), point.span[1]))


def _in_year(start: datetime, years: int) -> datetime:
    return start.replace(year=start.year + years)


def _from_to(first: Period, last: Period) -> Period:
    # "between November and February": November is that of the year before.
    return Period(first.start if first.start < last.end else _in_year(first.start, -1), last.end)


def _since(_: re.Match[str], point: Expression, reference: ReferenceTime) -> Period:
    return Period(point.period.start, max(reference.now + INSTANT, point.period.end))


def _after(_: re.Match[str], point: Expression, reference: ReferenceTime) -> Period:
    start, until = point.period.end, reference.now + INSTANT
    return Period(start, until if start < until else _in_year(start, 1))


def _beside(lead: re.Match[str], point: Expression, _: ReferenceTime) -> Period:
    """ "The week before Christmas"; "two weeks after Easter", give or take half a week."""
    start, end = point.period.start, point.period.end
    length = number_in(lead["count"]) * length_of(lead["unit"])
    is_before = lead["side"].casefold() == "before"
    if not lead["count"]:
        return Period(start - length, start) if is_before else Period(end, end + length)
    day = start - length if is_before else start + length
    margin = timedelta(days=0 if lead["unit"].casefold() == "day" else 3)
    return Period(day - margin, day + margin + timedelta(days=1))


def _around(_: re.Match[str], point: Expression, __: ReferenceTime) -> Period:
    return Period(point.period.start - _AROUND, point.period.end + _AROUND)


def _week_of(_: re.Match[str], point: Expression, __: ReferenceTime) -> Period | None:
    """The calendar week that holds a day or a feast."""
    start, end = point.period.start, point.period.end
    if end - start > timedelta(days=4):
        return None
    return days_from(start - timedelta(days=start.weekday()), 7)


def _until(lead: re.Match[str], point: Expression, reference: ReferenceTime) -> Period:
    """Before a date, or up to its end."""
    is_end = lead.string[lead.end() :].casefold().startswith("end")
    is_before = lead["word"].casefold() == "before" and not is_end
    end = point.period.start if is_before else point.period.end
    return Period(_EVER.replace(tzinfo=reference.now.tzinfo), end)


def _looks_ahead(text: str, now: datetime) -> bool:
    """Whether a sentence is about the future: by its words, or because it says "by" or "until" a
    date, unless the words before say that something is past ("Which tickets were filed by
    April?")."""
    if _AHEAD.search(text):
        return True
    leads = _UP_TO.finditer(text)
    up_to = next((lead for lead in leads if date_at(text, lead.end(), ReferenceTime(now))), None)
    return up_to is not None and not _DID.search(_clause_before(up_to))


def _clause_before(match: re.Match[str]) -> str:
    return re.split("[.?!;]", match.string[: match.start()])[-1]


def _lead(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"{BEGINS}(?:{pattern})\s+(?:the\s+)?", re.IGNORECASE)


_RANGE: Final = _lead(r"(?P<word>between|from)")
_TO: Final = re.compile(
    r"(?<!\s)(?:\s+(?:to|until|till|through|-)\s+|\s*\u2013\s*)(?:the\s+)?", re.IGNORECASE
)
"""Begins at the first of several spaces: to try each of them would take quadratic time."""
_JOINTS: Final = {
    "between": re.compile(r"\s+and\s+(?:the\s+)?", re.IGNORECASE),
    "from": _TO,
}
_UNTIL: Final = r"until|till|by|up\s+to(?!\s+\d{4}(?![-/]))"
"""A number after "up to" is none of a year: "up to 2000 users"."""
_UP_TO: Final = _lead(_UNTIL)
_RELATIONS: Final = (
    (_lead(r"(?:ever\s+)?since"), _since),
    (
        _lead(
            rf"(?:the\s+)?(?:(?P<count>\d{{1,3}}|{NUMBER_WORDS})\s+)?"
            r"(?P<unit>day|week|fortnight|month)s?\s+(?P<side>before|after)"
        ),
        _beside,
    ),
    (_lead("after"), _after),
    (_lead("around"), _around),
    (
        _lead(r"(?:(?:in|during|of|for|from)\s+)?(?:the\s+)?week\s+(?:of|beginning|starting)"),
        _week_of,
    ),
    (_lead(rf"(?P<word>before|{_UNTIL})"), _until),
)
"""The words before a date, and the function that makes a period of both."""
