"""Rewrites a query once for all layers: its content terms, and the period that it names.

Any language is accepted. Stop words and times are known in English only; in other languages every
word is a term.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from router.errors import InvalidRequest
from router.memory.model import MAX_QUERY_CHARACTERS, LayerQuery
from router.memory.query.listing import COMING_UP, REPORT
from router.memory.query.past import without_past_words
from router.memory.query.time_expressions import find_period
from router.request import check_text
from router.text import STOPWORDS, tokens, word_set

_TIME_WORDS: Final = word_set(
    """
    ago yesterday today tonight tomorrow recently lately earlier last past previous latest
    day days week weeks weekend month months year years hour hours minute minutes
    morning afternoon evening night noon midnight when since until
    """
)
"""Words that say when, not what. What could be understood of them is in the period of the query."""

_POSSESSIVE: Final = re.compile(
    r"(?<!\ba )(?<!\beach )(?<!\bevery )(?<!\banother )\b(?:the )?user['\u2019]s\b", re.IGNORECASE
)
"""Matches "the user's", but not "a user's session", which may be anybody's."""
_AFTER_AUXILIARY: Final = re.compile(
    r"\b((?:do|does|did|is|was|has|had|can|could|may|might|should|would|will|must)"
    r"(?:n?['\u2019]t)?) the user\b"
    r"(?! (?:tables?|interface|guide|story|stories|services?|accounts?|ids?|models?|data)\b)",
    re.IGNORECASE,
)
"""Matches "does the user", but not common compounds such as "is the user table"."""
_AT_THE_END: Final = re.compile(r"\bthe user(?=\W*$)", re.IGNORECASE)


def rewrite(text: str, *, now: datetime) -> LayerQuery:
    """Read a query of 1 to 2,000 characters of any language. ``now`` is an aware time; "yesterday"
    is the day before it."""
    check_text("query", text, MAX_QUERY_CHARACTERS)
    if now.tzinfo is None:
        raise InvalidRequest("now: a time without a time zone is ambiguous")
    found = find_period(text, now)
    timeless = without_past_words(text if found is None else found.removed_from(text))
    timeless = REPORT.sub(" ", COMING_UP.sub(" ", timeless)).strip()
    terms = tuple(
        word for word in tokens(timeless) if word not in STOPWORDS and word not in _TIME_WORDS
    )
    period = None if found is None else found.period
    return LayerQuery(text, terms, period, now, timeless)


def in_first_person(text: str) -> str:
    """A query about "the user" in the user's own words: "What are the user's allergies?" becomes
    "What are my allergies?". Agents ask in the third person, but many memories are in the first.
    "The user table" is not changed."""
    text = _POSSESSIVE.sub("my", text)
    return _AT_THE_END.sub("me", _AFTER_AUXILIARY.sub(r"\1 I", text))
