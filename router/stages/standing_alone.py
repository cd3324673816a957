"""Whether a text can be understood without the turns before it, told by its form and its words."""

from __future__ import annotations

import re
from typing import Final

from router.text import STOPWORDS, tokens

MAX_WORDS_OF_FOLLOW_UP: Final = 2
"""A request with at most this many content words is a follow-up."""
MAX_WORDS_OF_DETAIL: Final = 3
"""A request with at most this many words, one of them a number, only adds a detail."""
MAX_WORDS_WITH_POINTER: Final = 5
"""A request with at most this many content words is a follow-up where it also refers back."""
MIN_WORDS_OF_QUESTION: Final = 3
"""A question of fewer words is no whole sentence: "which gate?"."""

_OPENING: Final = re.compile(
    r"\s*(?:(?:ok(?:ay)?|well|hm+|oh|ah|great|thanks?|thx|good|fine|yes|yeah|yep|no|nope|nah|not|"
    r"right|sure|sorry|please)\b[\s,.!?:;-]*)*"
    r"(?:and|but|or|so|then|now|also|next|instead|rather|what about|how about|same|again|another|"
    r"only|just|too|still|even|apart from|except|without|with|"
    r"(?:a (?:bit|little)|slightly|much) \w{2,}er|(?:(?:a (?:bit|little)|slightly|much) )?(?:more|"
    r"less|(?:short|long|small|bigg|larg|fast|quick|slow|dark|light|bright|loud|warm|cold|high|low|"
    r"bett|simpl|clean|cheap|earli|lat)er))\b",
    re.IGNORECASE,
)
"""How people begin when they continue a subject. A comparison ("a bit darker") is such a beginning;
the words "Docker" and "Server" are not, though they end in "er"."""
_REPLY: Final = re.compile(
    r"\s*(?:ok(?:ay)?|hm+|yes|yeah|yep|no|nope|nah|not|right|sure|sorry|exactly)\b",
    re.IGNORECASE,
)
"""How people begin when they answer."""
_POINTER: Final = re.compile(
    r"\b(?:it|its|that|those|these|this|them|they|their|he|she|his|her|him|one|ones|same|other|"
    r"others|another|again|instead|rather|too|also|then|first|second|third|last|next|previous|"
    r"rest|both|above|earlier|later|more|less|still|"
    r"(?<!\bis )(?<!\bare )there(?!['\u2019]s| is| are))\b",
    re.IGNORECASE,
)
"""Words that point to something said before, or compare with it. "Is there a bus?" points to
nothing."""
_PRONOUN: Final = re.compile(r"\b(?:it|that|this|them|those|these|him)\b", re.IGNORECASE)
_EMPTY: Final = frozenset(
    (
        *("ok", "okay", "yes", "yeah", "yep", "no", "nope", "nah", "not", "thanks", "thank", "thx"),
        *("please", "pls", "well", "hm", "hmm", "oh", "great", "good", "fine", "right", "sure"),
        *("sorry", "now", "then", "again", "same", "too", "also", "instead", "rather", "still"),
        *("just", "only", "even", "actually", "next", "last", "first", "second", "third", "other"),
        *("another", "one", "ones", "thing", "things", "bit", "part", "way", "go", "try", "make"),
        *("do", "get", "give", "let", "want", "need", "like", "show", "tell"),
    )
)
"""Words that do not count as content words, besides the function words."""
_QUESTION: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|oh|hm+|well|hey|hi|please|sorry)\W+)*"
    r"(?:(?:what(?! if\b)|who|when|where|why|how)(?:['\u2019]?s|['\u2019]re)?|whom|whose|which|is|"
    r"are|was|were|am|do|does|did|has|have|had|should|may|must|(?:can|could|will|would)(?!\s+you\b)|"
    r"tell me|explain)\b",
    re.IGNORECASE,
)
"""How questions begin. "Can you …?" is a request for an action, and an action may be a detail of
the one before: "can you remove the logo?"."""
_DETAIL: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|no|and|but|or|also|only|just|now|then|please)\W+)*"
    r"(?:in|at|by|for|from|to|with|without|as|on|until|till|before|after|except|via|under|over|"
    r"between|per)\b",
    re.IGNORECASE,
)
"""How people begin when they add a detail: with a preposition."""


def stands_alone(text: str) -> bool:
    """Whether a request can be understood without the turns before it: it is no follow-up."""
    words = len(content_words(text))
    if words <= MAX_WORDS_OF_FOLLOW_UP:
        return False
    return words > MAX_WORDS_WITH_POINTER or not points_back(text)


def points_back(text: str) -> bool:
    """Whether a text begins as people continue or answer, or has a word that points back."""
    return bool(_OPENING.match(text) or _REPLY.match(text)) or has_pointer(text)


def has_pointer(text: str) -> bool:
    """Whether a text has a word that points back, as "do it"."""
    return _POINTER.search(text) is not None


def is_whole_question(text: str) -> bool:
    """Whether a text is a question with a subject of its own that points to nothing said before, as
    "how do I make pancakes?". A question of what was said may look the same: "when is lunch?"."""
    whole = _QUESTION.match(text) is not None and len(text.split()) >= MIN_WORDS_OF_QUESTION
    return whole and bool(content_words(text)) and not points_back(text)


def adds_a_detail(text: str) -> bool:
    """Whether a text only adds a detail to what was said before, as "for Anna too", "10 copies" and
    "what about German?": it begins with a preposition, is a few words with a number, or has one
    content word at most."""
    short = len(text.split()) <= MAX_WORDS_OF_DETAIL
    numbered = short and any(character.isdigit() for character in text)
    return numbered or len(content_words(text)) <= 1 or _DETAIL.match(text) is not None


def verb_beside_pronoun(text: str) -> str:
    """The only content word of a request whose object is a pronoun, as "cancel" of "cancel it";
    else empty."""
    own = content_words(text)
    return own[0] if len(own) == 1 and _PRONOUN.search(text) else ""


def why_not_alone(text: str) -> str:
    """Why a request was not taken to stand alone, for the user."""
    begins = _OPENING.match(text) or _REPLY.match(text)
    if begins is not None:
        return f'it begins with "{begins[0].strip()}"'
    points = _POINTER.search(text)
    if points is not None:
        return f'"{points[0]}" points back'
    return "it has few words of its own"


def content_words(text: str) -> list[str]:
    """The words of a text that say what it is about. Function words and words of talk do not."""
    return [word for word in tokens(text) if word not in STOPWORDS and word not in _EMPTY]
