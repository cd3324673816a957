"""Questions about what held before: "Where did I use to live?", "What did we use before MySQL?".

Words such as "used to" say when, not what, so they are left out of the search, as the words of a
period are.
"""

from __future__ import annotations

import re
from typing import Final

_PAST: Final = re.compile(
    r"\b(?:did\b.* use to|(?:I|we|you|he|she|who|that) used to|"
    r"previous(?:ly)?|former(?:ly)?|original(?:ly)?|at first|in the past|back then|history of|"
    r"(?<!how )(?<!years )(?<!year-)old(?! (?:is|are|was|were)\b)|"
    r"(?:did|had|was|were)\b.* before)\b",
    re.IGNORECASE,
)
_SAYING_SO: Final = re.compile(
    r"\b(?:used? to|previously|formerly|originally|at first|in the past|back then|before)\b",
    re.IGNORECASE,
)


def asks_for_past(text: str) -> bool:
    """Whether a query asks for what held once, by its words; a period is not looked for."""
    return _PAST.search(text) is not None


def without_past_words(text: str) -> str:
    """The query without the adverbs that ask for the past; adjectives ("old") may be part of a
    name, so they stay."""
    return _SAYING_SO.sub(" ", text) if asks_for_past(text) else text
