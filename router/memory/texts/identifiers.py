"""Codes and numbers by which a text names one thing of a kind: "E-17", "room 12", "tickets of class
B".

Two texts that name different things of one kind are about different things. The kind of a thing is
the noun before it, or the letters that a code begins with. A number that counts or measures
something names nothing ("40 euros", "12 screws"), nor does a date or a version.

A word in -s behind a number is a plural in "holds 7 trays" and a verb in "bus 7 leaves the mill".
No rule tells them apart without a list of verbs, but none is needed: a question that names a thing
("When does bus 9 leave?") has no such verb. So the question says which kinds have numbers, and in
what is compared with it every number directly behind a noun may name one
(``possible_identifiers_in``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from router.memory.query.dates import MONTHS, WEEKDAYS
from router.memory.texts.chunking import CHUNK_CHARACTERS
from router.text import STOPWORDS, stem, word_set

_KEPT: Final = 4_096
_WORD: Final = re.compile(
    r"(?<![\w.,:/$\u20ac£-])[^\W_]+(?:-[^\W_]+)*(?!['\u2019]?[\w/]|[.,:-]\w|\s?[%\u00b0$\u20ac£])"
)
"""A word that is no part of a path, a decimal number, a time or a price."""
_CODE: Final = re.compile(r"([a-z]{1,6})-?\d[a-z\d-]*")
_NUMBER: Final = re.compile(r"\d+(?:-\d+)*")
_DATE: Final = re.compile(r"(?:19|20)\d\d(?:-\d\d?){0,2}")
_LETTER: Final = re.compile(r"[B-HJ-Z]")
"""A and I are words by themselves."""
_UNIT: Final = re.compile(r" +([^\W\d_]+)")
_PLURAL: Final = re.compile(r"(?<!s)s\Z")
_IRREGULAR_PLURALS: Final = word_set("people children men women feet")
_OF_PERIODS: Final = re.compile(r"q[1-4]|h[12]|[ck]w-?\d+")
"""Quarters, half-years and weeks, unless a noun stands before them: "lamp H1"."""
_NUMBERS: Final = word_set("number no nr")
"""Stand between a noun and its number."""
_NO_NOUNS: Final = (
    STOPWORDS
    | {*MONTHS, *WEEKDAYS}
    | {month[:3] for month in MONTHS}
    | word_set("version release next last first past least most top about around exactly every")
)


def identifiers_in(text: str) -> Mapping[str, frozenset[str]]:
    """The codes, numbers and letters that name a thing, by the kinds of the thing; those of short
    texts are cached."""
    return (_kept if len(text) <= CHUNK_CHARACTERS else _found_in)(text, False)


def possible_identifiers_in(text: str) -> Mapping[str, frozenset[str]]:
    """The same with all numbers behind a noun, also before a word in -s, which may be a verb. Only
    for kinds that another text has in ``identifiers_in``."""
    return (_kept if len(text) <= CHUNK_CHARACTERS else _found_in)(text, True)


def _found_in(text: str, with_possible: bool) -> Mapping[str, frozenset[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    words = list(_WORD.finditer(text))
    for place, match in enumerate(words):
        written = match.group()
        word = written.lower()
        code = _CODE.fullmatch(word)
        if _DATE.fullmatch(word):
            continue
        if not (code or _LETTER.fullmatch(written) or _NUMBER.fullmatch(word)):
            continue
        if word.isdecimal() and not with_possible and _is_amount(text, match.end()):
            continue
        noun = _noun_before(text, match, words[max(0, place - 2) : place])
        kinds = [noun] if noun else []
        kinds += [f"{code[1]}-"] if code and not _OF_PERIODS.fullmatch(word) else []
        for kind in kinds:
            found[kind].add(word.replace("-", ""))
    return {kind: frozenset(codes) for kind, codes in found.items()}


def _is_amount(text: str, end: int) -> bool:
    """Whether the number that ends there counts or measures what follows: a plural, or a short
    unit."""
    unit = _UNIT.match(text, end)
    word = unit[1].lower() if unit else ""
    is_plural = _PLURAL.search(word) or word in _IRREGULAR_PLURALS
    return bool(word) and word not in STOPWORDS and bool(is_plural or len(word) <= 2)


def _noun_before(text: str, word: re.Match[str], before: list[re.Match[str]]) -> str:
    """The stem of the noun directly before a word; empty if there is none."""
    for one in reversed(before):
        noun = one.group().lower()
        if text[one.end() : word.start()].strip(" ") or not noun.isalpha() or len(noun) < 2:
            return ""
        if noun not in _NUMBERS:
            return "" if noun in _NO_NOUNS else stem(noun)
        word = one
    return ""


_kept: Final = lru_cache(maxsize=_KEPT)(_found_in)
