"""Questions about what held before: "Where did I use to live?", "What did we use before MySQL?".

Words such as "used to" say when, not what, so they are left out of the search, as the words of a
period are. What follows "before" (MySQL) has often replaced the answer (Postgres), so the answer
need not contain it.
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
"""Not "is used to store", nor "What is Redis used to store?", which say what something is for."""
_SAYING_SO: Final = re.compile(
    r"\b(?:used? to|previously|formerly|originally|at first|in the past|back then|before)\b",
    re.IGNORECASE,
)
_FOLLOWING: Final = re.compile(r"\bbefore\b(?P<following>[^?.!,;]*)", re.IGNORECASE)


def asks_for_past(text: str) -> bool:
    """Whether a query asks for what held once, by its words; a period is not looked for."""
    return (_PAST.search(text) or _USED_TO.search(text)) is not None


def without_past_words(text: str) -> str:
    """The query without the adverbs that ask for the past; adjectives ("old") may be part of a
    name, so they stay."""
    return _SAYING_SO.sub(" ", text) if asks_for_past(text) else text


def stems_after_before(text: str) -> frozenset[str]:
    """The stems of what stands behind "before" in a query that asks for the past."""
    match = _FOLLOWING.search(text) if asks_for_past(text) else None
    following = match["following"].strip() if match else ""
    return frozenset(content_terms(following)) if following else frozenset()
