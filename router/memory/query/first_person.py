"""A query about "the user", as the user would put it: "What are the user's allergies?" is "What are
my allergies?". Agents ask so, of memories that people told of themselves.
"""

from __future__ import annotations

import re
from typing import Final

_OWN: Final = re.compile(
    r"(?<!\ba )(?<!\beach )(?<!\bevery )(?<!\banother )\b(?:the )?user['\u2019]s\b", re.IGNORECASE
)
"""Not of "a user's session", which is anybody's."""
_ASKED: Final = re.compile(
    r"\b((?:do|does|did|is|was|has|had|can|could|may|might|should|would|will|must)"
    r"(?:n?['\u2019]t)?) the user\b"
    r"(?! (?:tables?|interface|guide|story|stories|services?|accounts?|ids?|models?|data)\b)",
    re.IGNORECASE,
)
"""Not of "the user table", as far as compounds are common."""
_LAST: Final = re.compile(r"\bthe user(?=\W*$)", re.IGNORECASE)


def in_first_person(text: str) -> str:
    """The text with "I", "me" and "my" where it says "the user" of whoever asks; "the user table"
    stays."""
    return _LAST.sub("me", _ASKED.sub(r"\1 I", _OWN.sub("my", text)))
