"""What counts as a typo or an inflection: the differences within a word that the gate forgives.

Only those that seldom lead to another real word: a typo that is not recognised costs one cache
miss, but a real word taken for a typo gets the answer to another request.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Final

from rapidfuzz.distance import OSA

from router.text import MAX_WORD_LETTERS, word_set

MIN_TYPO_LETTERS: Final = 6
"""Shorter words have too many real neighbours: form and from, test and text."""
MIN_SLIP_LETTERS: Final = 7
"""The same for those typos that more often give another real word; ``is_typo`` tells the kinds."""
MIN_FOREIGN_SLIP_LETTERS: Final = 10

_KEY_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SLIPS: Final = frozenset(
    {frozenset(pair) for row in _KEY_ROWS for pair in itertools.pairwise(row)}
    | {frozenset((a, b)) for a in "aeiou" for b in "aeiou" if a != b}
)
"""Letters taken for one another: neighbours on a row of the keyboard, and any two vowels."""
# Real words that look like typos of each other. General English; the rules keep the list short.
_REAL_PAIRS: Final = frozenset(
    frozenset(pair.split("/"))
    for pair in word_set(
        """
        contact/contract contacts/contracts contacted/contracted contacting/contracting
        confirm/conform confirmed/conformed confirming/conforming confirmation/conformation
        complement/compliment complements/compliments complementary/complimentary silver/sliver
        stationary/stationery casual/causal united/untied martial/marital sacred/scared
        complaint/compliant perfect/prefect cavalry/calvary desert/dessert deserts/desserts
        mediation/medication conviction/convection uniformed/uninformed lighting/lightning
        college/collage colleges/collages statute/stature statutes/statures summary/summery
        interment/internment ordnance/ordinance tortuous/torturous compiler/complier
        counties/countries installation/instillation
        """
    )
)
_INFLECTED: Final = re.compile("(?:ings?|ed|e?s)$")
_DOUBLED_ENDING: Final = re.compile("(?:ing|ings|ed|er|ers)$")
_ALPHABETIC: Final = re.compile("[a-z\u00df-\u024f\u0370-\u058f\u10a0-\u10ff]+")


def may_be_misspelt(words: Iterable[str]) -> set[str]:
    """Those of some words that are long enough for a typo to be told from another word."""
    return {
        word
        for word in words
        if MIN_TYPO_LETTERS <= len(word) <= MAX_WORD_LETTERS and word.isalpha()
    }


def is_typo(one: str, other: str, *, english: bool = True) -> bool:
    """Whether one word is a likely misspelling of the other.

    One edit, after the second letter and before the last, of a kind that fingers make and that
    seldom leads to another real word. Real words mostly differ at the start (import, export), at
    the end (compile, compiler; formal, format) or by an unrelated consonant (project, protect):

    * two letters swapped, or one doubled or not, in words of six letters and more;
    * after the third letter, and in words of seven letters and more (not counting -ing, -ed, -s:
      starting, staring), one letter too many or too few, a vowel for a vowel, or the key beside.

    In other languages the latter need ten letters and leave the last three alone.
    """
    if len(one) > len(other):
        one, other = other, one
    if (
        len(may_be_misspelt((one, other))) < 2
        or one[:2] != other[:2]
        or one[-1] != other[-1]
        or not (_ALPHABETIC.fullmatch(one) and _ALPHABETIC.fullmatch(other))
        or OSA.distance(one, other, score_cutoff=1) != 1
        or frozenset((one, other)) in _REAL_PAIRS
    ):
        return False
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if at is None:  # only the last letter is doubled: princes and princess
        return False
    if len(one) == len(other):
        if one[at + 1 :] != other[at + 1 :]:
            return True  # swapped
        slip = frozenset((one[at], other[at])) in _SLIPS
    else:
        extra = other[at]
        if extra == other[at - 1]:
            # shoping and shopping are one word, but filing and filling, striped and stripped two
            return not (len(one) < 9 and _DOUBLED_ENDING.fullmatch(one, at))
        slip = english or extra != "m"  # in Turkish an m in the middle of a verb negates it
    if not slip or at < 3:
        return False
    if english:
        return len(_INFLECTED.sub("", one)) >= MIN_SLIP_LETTERS
    return len(one) >= MIN_FOREIGN_SLIP_LETTERS and one[-3:] == other[-3:]


_ENDINGS: Final = frozenset(("", "s", "es", "d", "ed", "ing", "e", "y", "ies", "ied", "ying"))


def is_inflection(one: str, other: str, *, first: bool) -> bool:
    """Whether two words of one stem differ only by number, person or tense.

    The first word of a request mostly is what to do, and "closed issues" is not "close issues".
    """
    if first and one.endswith("ed") != other.endswith("ed"):
        return False
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    tails = []
    for word in (one, other):
        tail = word[shared:]
        if len(tail) > 2 and shared and tail[0] == word[shared - 1]:  # plan, planning
            tail = tail[1:]
        tails.append(tail)
    return set(tails) <= _ENDINGS and set(tails) not in ({"", "e"}, {"", "y"})  # past, paste
