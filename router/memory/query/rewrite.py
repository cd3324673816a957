"""A query, rewritten once for all layers: its content terms and the time that it speaks of.

Any language is accepted. Stop words and times are known in English only; elsewhere every word is a
term.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from router.errors import InvalidRequest
from router.memory.model import MAX_QUERY_CHARACTERS, LayerQuery
from router.memory.query.listing import COMING_UP
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
"""They say when, not what; the period has taken what could be understood of them."""

_THEIR_OWN: Final = re.compile(
    r"(?<!\ba )(?<!\beach )(?<!\bevery )(?<!\banother )\b(?:the )?user['\u2019]s\b", re.IGNORECASE
)
"""Not of "a user's session", which is anybody's."""
_THEY_DO: Final = re.compile(
    r"\b((?:do|does|did|is|was|has|had|can|could|may|might|should|would|will|must)"
    r"(?:n?['\u2019]t)?) the user\b"
    r"(?! (?:tables?|interface|guide|story|stories|services?|accounts?|ids?|models?|data)\b)",
    re.IGNORECASE,
)
"""Not of "the user table", as far as compounds are common."""
_THEM: Final = re.compile(r"\bthe user(?=\W*$)", re.IGNORECASE)


def rewrite(text: str, *, now: datetime) -> LayerQuery:
    """Read a query of 1 to 2,000 characters of any language. ``now`` is aware: what "yesterday"
    counts from."""
    check_text("query", text, MAX_QUERY_CHARACTERS)
    if now.tzinfo is None:
        raise InvalidRequest("now: a time without a time zone is ambiguous")
    found = find_period(text, now)
    timeless = without_past_words(text if found is None else found.removed_from(text))
    timeless = COMING_UP.sub(" ", timeless)
    terms = tuple(
        word for word in tokens(timeless) if word not in STOPWORDS and word not in _TIME_WORDS
    )
    period = None if found is None else found.period
    return LayerQuery(text, terms, period, now, timeless)


def in_first_person(text: str) -> str:
    """A query about "the user", as the user would put it: "What are the user's allergies?" is "What
    are my allergies?". Agents ask so, of memories that people told of themselves. "The user table"
    stays."""
    return _THEM.sub("me", _THEY_DO.sub(r"\1 I", _THEIR_OWN.sub("my", text)))
