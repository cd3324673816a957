"""Questions about the past: "Where did I use to live?", "What did we use before MySQL?".

Words such as "used to" say when, not what, so they are left out of the search, as the words of a
period are. What stands after "before" (MySQL) has often replaced the answer (Postgres), so the
answer need not contain it.
"""

from __future__ import annotations

import re
from typing import Final

from router.memory.texts.words import content_terms

_PAST: Final = re.compile(
    r"\b(?:did\b.* use to|previous(?:ly)?|former(?:ly)?|original(?:ly)?|at first|"
    r"in the past|back then|history of|(?<!how )(?<!years )(?<!year-)old(?! (?:is|are|was|were)\b)|"
    r"(?:did|had|was|were)\b.* before)\b",
    re.IGNORECASE,
)
_USED_TO: Final = re.compile(
    r"\b(?:I|we|you|he|she|who|that) used to\b|"
    r"(?:^|[.?!;])(?:(?!\b(?:am|is|are|be|being|get|what's)\b)[^.?!;])*\bused to\b",
    re.IGNORECASE,
)
"""Does not match "is used to store" and "What is Redis used to store?", which name a purpose."""
_PAST_ADVERBS: Final = re.compile(
    r"\b(?:used? to|previously|formerly|originally|at first|in the past|back then|before)\b",
    re.IGNORECASE,
)
_FOLLOWING: Final = re.compile(r"\bbefore\b(?P<following>[^?.!,;]*)", re.IGNORECASE)


def asks_for_past(text: str) -> bool:
    """Whether the words of a query ask about the past. Its period is not looked at."""
    return (_PAST.search(text) or _USED_TO.search(text)) is not None


def without_past_words(text: str) -> str:
    """The query without adverbs of the past. Adjectives ("old") stay, because they may be part of a
    name."""
    return _PAST_ADVERBS.sub(" ", text) if asks_for_past(text) else text


def stems_after_before(text: str) -> frozenset[str]:
    """The stems of the words after "before" in a query that asks about the past; else empty."""
    match = _FOLLOWING.search(text) if asks_for_past(text) else None
    following = match["following"].strip() if match else ""
    return frozenset(content_terms(following)) if following else frozenset()
