"""Tells apart statements about two cases of one matter, which are both true: what a hall costs on
weekdays and what it costs on Sundays.

Two statements are of two cases if different words stand behind the same preposition in each, and
these are not the value itself: there is another difference, a number or a "not". Behind "of" no
other difference is needed ("the end of act one", "the end of act two"), unless the later statement
tells of a change. Words for times of a day, a week or a year count as behind one preposition
("in the evening", "on Saturdays"). A phrase with a number is a value, and no case.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from router.memory.query.dates import MONTHS, WEEKDAYS
from router.memory.recall.clauses import BESIDE_VERBS, PREPOSITIONS
from router.text import STOPWORDS, stem, word_set

_KEPT: Final = 4_096
_CHARACTERS: Final = 200
_CLAUSE_END: Final = re.compile(r"[.;:!?](?=\s|$)|, | (?:and|but|because|since|so|when|if)\b")
_WORD: Final = re.compile(r"[^\W_](?:[\w'.:/-]*\w)?")
_BEFORE_CASES: Final = PREPOSITIONS | {"of"}
_TIME: Final = "time"
_TIMES: Final = frozenset(
    map(
        stem,
        {
            *WEEKDAYS,
            *MONTHS,
            *word_set(
                "morning afternoon evening night noon weekday weekend holiday spring summer autumn "
                "fall winter season"
            ),
        },
    )
)
_NO_CASES: Final = STOPWORDS | BESIDE_VERBS


class _Said(NamedTuple):
    """The stems behind each preposition of a first clause, and its numbers."""

    behind: dict[str, frozenset[str]]
    numbers: frozenset[str]


def name_two_cases(
    one: str, other: str, *, is_one_negated: bool, is_other_negated: bool, is_change: bool = False
) -> bool:
    """Whether two statements are of two cases; see the module's text."""
    ours, theirs = _said(one[:_CHARACTERS]), _said(other[:_CHARACTERS])
    different = {
        preposition
        for preposition, words in ours.behind.items()
        if words - theirs.behind.get(preposition, words) and theirs.behind[preposition] - words
    }
    if not different:
        return False
    numbers_differ = bool(ours.numbers - theirs.numbers and theirs.numbers - ours.numbers)
    if numbers_differ or is_one_negated != is_other_negated:
        return True
    return "of" in different and not is_change


@lru_cache(_KEPT)
def _said(text: str) -> _Said:
    clause = _CLAUSE_END.split(text.replace("\u2019", "'"), maxsplit=1)[0]
    words = [word.lower() for word in _WORD.findall(clause)]
    behind: dict[str, set[str]] = {}
    starts = [place for place, word in enumerate(words) if word in _BEFORE_CASES]
    for start, end in pairwise([*starts, len(words)]):
        phrase = [word for word in words[start + 1 : end] if word not in _NO_CASES]
        if any(map(str.isdigit, "".join(phrase))):
            continue
        for word in map(stem, phrase):
            behind.setdefault(words[start], set()).add(word)
            if word in _TIMES:
                behind.setdefault(_TIME, set()).add(word)
    numbers = frozenset(word for word in words if word[0].isdigit())
    return _Said({slot: frozenset(said) for slot, said in behind.items()}, numbers)
