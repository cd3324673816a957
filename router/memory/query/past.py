"""Questions about the past: "Where did I use to live?", "What did we use before MySQL?".

Words such as "used to" say when, not what, so they are left out of the search, as the words of a
period are. What stands after "before" (MySQL) has often replaced the answer (Postgres), so the
answer need not contain it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from router.memory.texts.chunking import CHUNK_CHARACTERS
from router.memory.texts.words import content_terms
from router.text import STOPWORDS, tokens, word_set

_OVER_TIME: Final = r"over (?:time|the years)"
_IN_TURN: Final = re.compile(rf"\b(?:history of|{_OVER_TIME})\b", re.IGNORECASE)
"""Asks for everything that was valid, in turn."""
_FIRST_OF_ALL: Final = r"original(?:ly)?|at first|(?:was|were)\b.* (?:first|earliest)(?= \w)"
_FIRST: Final = re.compile(rf"\b(?:{_FIRST_OF_ALL})\b", re.IGNORECASE)
_PAST: Final = re.compile(
    rf"\b(?:did\b.* use to|previous(?:ly)?|former(?:ly)?|{_FIRST_OF_ALL}|"
    rf"in the past|back then|history of|{_OVER_TIME}|"
    r"(?<!how )(?<!years )(?<!year-)old(?! (?:is|are|was|were)\b)|"
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
    r"\b(?:used? to|previously|formerly|originally|at first|in the past|back then|before|"
    rf"{_OVER_TIME})\b",
    re.IGNORECASE,
)
_PAST_TENSE: Final = word_set("did had was were ever")
_DIRECTIONS: Final = word_set("from to")
_WRITTEN_NAME: Final = re.compile(r"(?<=[^\s.?!:;] )[\"'(]?([^\W\d_a-z][\w.-]*)|\b(\w*\d[\w.-]*)")
"""A word with a digit, or one with a capital letter that does not begin a sentence."""
_VERB: Final = re.compile(
    r"^(?:I|[Ww]e|[Hh]e|[Ss]he|[Tt]hey|[Yy]ou)\b|\b(?:are|[a-z]+(?:s|ed))\b|[:=]"
)
"""The first word that may be a verb, or a pronoun that a text begins with: in both cases what is
said of the subject follows."""
_REPLACED: Final = re.compile(
    r"\b(?:from|replaced|dropped|instead of|left|cancelled|sold) (?:the )?(\w+)", re.IGNORECASE
)
"""What a text names as replaced: it is no name of what is valid now."""
_ASKS_OF_CHANGE: Final = word_set(
    "leave left move moved drop dropped replace replaced switch switched stop stopped"
)
_FOLLOWING: Final = re.compile(r"\bbefore\b(?P<following>[^?.!,;]*)", re.IGNORECASE)


def asks_for_past(text: str) -> bool:
    """Whether the words of a query ask about the past. Its period is not looked at."""
    return (_PAST.search(text) or _USED_TO.search(text)) is not None


def asks_for_previous(text: str) -> bool:
    """Whether a query asks for what was valid before the present ("our previous database"), and not
    for what was first of all, for everything in turn, or for what something that it names has
    replaced."""
    is_another = _FIRST.search(text) or _IN_TURN.search(text) or stems_after_before(text)
    return asks_for_past(text) and not is_another


def without_past_words(text: str) -> str:
    """The query without adverbs of the past. Adjectives ("old") stay, because they may be part of a
    name."""
    return _PAST_ADVERBS.sub(" ", text) if asks_for_past(text) else text


def stems_after_before(text: str) -> frozenset[str]:
    """The stems of the words after "before" in a query that asks about the past; else empty."""
    match = _FOLLOWING.search(text) if asks_for_past(text) else None
    following = match["following"].strip() if match else ""
    return frozenset(content_terms(following)) if following else frozenset()


def is_in_past_tense(text: str) -> bool:
    """Whether a query asks about something that was or happened: "Why did we leave Postgres?"."""
    return not _PAST_TENSE.isdisjoint(tokens(text))


def names_only(query: str, one: str, other: str) -> bool:
    """Whether a query contains a name that is in what the text ``one`` says of its subject and not
    in ``other``, or that stands after another direction there: "to MySQL" is not in "We moved from
    MySQL". The subject's own name counts only if ``other`` contains all the rest: "She moved to
    Oslo", after "Ada lives in Bergen", need not say again who moved. What ``other`` itself names as
    replaced ("from Postgres") is a name of ``one``, unless the query asks about the change. Of long
    texts only the beginning is read, because a recall asks this of every update that it finds."""
    one, other = one[:CHUNK_CHARACTERS], other[:CHUNK_CHARACTERS]
    verb = _VERB.search(one)
    said = one[verb.end() :] if verb else one
    asked, others = _words_and_directions(query), _words_and_directions(other)
    if _ASKS_OF_CHANGE.isdisjoint(tokens(query)):
        others -= {(word,) for name in _REPLACED.findall(other) for word in tokens(name)}
    told = (_words_and_directions(said) - others) or (_words_and_directions(one) - others)
    names = {*_names(query), *_names(one)}
    return any(words[-1] in names for words in asked & told)


def _words_and_directions(text: str) -> set[tuple[str, ...]]:
    """The words of a text, and those after "from" and "to" also with that word."""
    words = tokens(text)
    pairs = {pair for pair in pairwise(words) if pair[0] in _DIRECTIONS}
    return {(word,) for word in words} | pairs


def _names(text: str) -> Iterator[str]:
    for match in _WRITTEN_NAME.finditer(text):
        yield from (word for word in tokens(match[0]) if word not in STOPWORDS)
