"""Text as the whole router compares it: normal form, tokens, stems, and lists of function words.

Two normal forms serve two purposes. ``normalise`` gives the key of the caches: it removes only what
cannot carry meaning (case, spacing, sentence punctuation), so C++ and C, ``-5`` and 5, ``.env`` and
env, #12 and 12 stay apart. ``tokens`` and ``stems`` give the terms of lexical retrieval over
Unicode text of any length, where losing a sign costs little and finding the word matters.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import Stemmer

# Marks that Unicode's compatibility forms leave alone, brought to the one that people type.
# CJK, Arabic and Indic stops end a clause wherever they stand, so they become a space; the ASCII
# comma and stop must not, because they also live inside numbers, paths and versions.
_MARKS: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201b\u02bc\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d", '"'),
        **dict.fromkeys("\u2010\u2011\u2212", "-"),
        **dict.fromkeys("\u3002\u3001\uff0c\uff61\uff64\uff1b\uff1a\uff01\u060c\u061b\u0964", " "),
        **dict.fromkeys("\u2013\u2014\u00a1\u00bf", " "),
        **dict.fromkeys("\u061f\u037e", "?"),
        **dict.fromkeys("\u00ad\u200b\u2060\ufeff", ""),
    }
)
_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK_GAP: Final = re.compile(rf"(?<=[{_CJK}])\s+(?=[{_CJK}])")
_SENTENCE_MARKS: Final = ".,;:!?"

_MEMO_ENTRIES: Final = 4096
_MEMO_CHARACTERS: Final = 1000
"""Longer texts are not memoised, so that a memo's memory stays bounded."""


def normalise(text: str) -> str:
    """The text with everything gone that cannot carry meaning; idempotent.

    NFKC, case folding, one space between words, straight quotes, no sentence punctuation except the
    question mark. Memoised, because the caches ask for the same texts again and again.
    """
    return _memoised(text) if len(text) <= _MEMO_CHARACTERS else _normalise(text)


def _normalise(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_MARKS))
        # Folding can undo the composition and composing can enable a fold, hence the second round.
        text = unicodedata.normalize("NFKC", text.casefold())
        text = unicodedata.normalize("NFKC", text.casefold()).translate(_MARKS)
        text = _CJK_GAP.sub("", text)
    kept: list[str] = []
    for word in text.casefold().split():
        if word[-1] in _SENTENCE_MARKS:
            word = _without_marks(word)
            if word == "?" and kept and kept[-1][-1] not in _SENTENCE_MARKS:
                kept[-1] += "?"
                continue
        if word:
            kept.append(word)
    return " ".join(kept)


_memoised: Final = lru_cache(_MEMO_ENTRIES)(_normalise)


def _without_marks(word: str) -> str:
    """The word without the sentence marks at its end, but for one question mark."""
    base = word.rstrip(_SENTENCE_MARKS)
    marks = word[len(base) :]
    question = "?" if "?" in marks else ""
    if not base:
        return word if word in (".", "..") else question  # these two are paths
    if base[-1].isdigit() and marks[0] == "!":
        return base + "!" + question  # a factorial
    if base[-1].isalnum() or base[-1] in "_\"')]}>%+#*$":
        return base + question
    return word  # a path such as "a/.." or an operator


_TOKEN: Final = re.compile(
    rf"[{_CJK}]+|(?:(?![{_CJK}])[^\W_])+(?:'[a-z]+)?(?:\+\+|#)?",
)
_IS_CJK: Final = re.compile(rf"[{_CJK}]")


def tokens(text: str) -> list[str]:
    """The case-folded words of a text in order, as retrieval counts them.

    Identifiers and paths fall apart into their words; ``c++`` and ``c#`` stay whole; scripts that
    write no spaces give overlapping pairs of characters.
    """
    if text.isascii():
        return _TOKEN.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text.translate(_MARKS)).casefold()
    words: list[str] = []
    for word in _TOKEN.findall(folded):
        if len(word) > 2 and _IS_CJK.match(word):
            words.extend(word[i : i + 2] for i in range(len(word) - 1))
        else:
            words.append(word)
    return words


MAX_WORD_LETTERS: Final = 40
"""What is longer is no word, and comes back from ``stem`` as it is."""


class _Stemmers(threading.local):
    """A stemmer for each thread: PyStemmer's objects keep state while they work."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english")


_stemmers: Final = _Stemmers()


def stem(word: str) -> str:
    """The English Snowball stem of one case-folded word; other languages come back nearly as is."""
    return _memoised_stem(word) if len(word) <= MAX_WORD_LETTERS else word


@lru_cache(maxsize=16_384)
def _memoised_stem(word: str) -> str:
    stemmed: str = _stemmers.english.stemWord(word)
    return stemmed


def stems(text: str) -> list[str]:
    """The stem of every token of a text, in order."""
    stemmed: list[str] = _stemmers.english.stemWords(tokens(text))
    return stemmed


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is separated by white space."""
    return frozenset(text.split())


FILLERS: Final = word_set(
    """
    a an the this that these those some any i me my we us our
    am is are was were be been being do does did have has had having
    there it its please pls plz kindly really actually basically simply maybe perhaps
    also already currently exactly
    um uh er hmm hey hi hello ok okay thanks thx
    """
)
"""English words that never change what is asked, wherever they stand: articles and demonstratives,
the speaker, auxiliaries without modality, politeness, hesitation, adverbs that only stress."""

STOPWORDS: Final = FILLERS | word_set(
    """
    just mine ours you your yours he him his she her hers they them their theirs
    and or but if then than so as because while
    of to in on at by for with from into onto about through via during within
    not no nor can could will would shall should may might must ought
    what which who whom whose when where why how
    all each every both such same own only very too more most other
    i'm i've i'd i'll it's that's what's there's let's don't doesn't didn't isn't aren't wasn't
    can't couldn't won't wouldn't shouldn't you're we're they're
    """
)
"""English function words, for weighting terms in retrieval. They are not safe to ignore when two
requests are compared: "not" is one of them."""

_FOREIGN: Final = word_set(
    """
    der die das und ist nicht ein eine einen ich wir mit auf von zu den dem wie bitte mir mein
    el la los las de del que una uno por para con y mi en lo pero sin al
    le les des du et un une est dans pour avec ne pas je mon ma sur au ce
    il di che per della non sono gli nel um uma os da na em meu minha
    het een van ik niet mijn op voor och att det som jag inte og ikke jeg
    w z nie jest ve bir bu icin ile untuk yang dan saya
    """
)


def is_english(words: Sequence[str]) -> bool:
    """Whether English rules may be applied to case-folded words.

    They may unless there are as many signs of another language (its commonest function words,
    letters outside ASCII) as English function words. "Fix bug" shows neither and is English.
    """
    if _FOREIGN.isdisjoint(words) and "".join(words).isascii():
        return True
    foreign = sum(1 for word in words if word in _FOREIGN or not word.isascii())
    return foreign < sum(1 for word in words if word in STOPWORDS)
