"""Text as the whole router compares it: normal form, tokens, stems, and lists of function words.

Two normal forms serve two purposes. ``normalise`` gives the key of the caches: it removes only what
cannot carry meaning (case, spacing, sentence punctuation), so C++ and C, ``-5`` and 5, ``.env`` and
env, #12 and 12 stay apart. ``tokens`` and ``stems`` give the terms of lexical retrieval over
Unicode text of any length, where losing a sign costs little and finding the word matters.

Both bring characters to one form with ``compatible``, which takes linear time on any text. Only
this file calls ``unicodedata.normalize``, which does not.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeVar

import Stemmer

T = TypeVar("T")

MAX_MARKS: Final = 30
"""Combining marks in a row that count; what follows them is dropped. No language needs as many:
Unicode's Stream-Safe Text Format has the same bound."""
MAX_LIGATURES: Final = 300
"""Squared words and Arabic ligatures that are spelt out in one text. One can stand for 18 letters;
a text with more of them keeps them as they are."""
_LIGATURE: Final = re.compile("[\u3300-\u33ff\ufd50-\ufdff]")
_NO_LIGATURES: Final = re.compile("[^\u3300-\u33ff\ufd50-\ufdff]+")
_MARKS_WITHOUT_CLASS: Final = frozenset("\u0f73\u0f75\u0f81\uff9e\uff9f")
"""Characters that become combining marks in a normal form, beside those with a combining class."""

_TOO_MANY: Final = bytes([True]) * (MAX_MARKS + 1)
_LONG_RUN: Final = re.compile(
    "[\u0300-\u1dff\u20d0-\u20ff\u2cef-\u2dff\u302a-\u309a\ua66f-\uabed\ufb1e\ufe20-\uff9f"
    rf"\U000101fd-\U0001efff]{{{MAX_MARKS + 1},}}"
)
"""Finds runs of more than ``MAX_MARKS`` characters from the blocks that hold marks. Letters of
these blocks (Cyrillic, Arabic, Thai) are found too; ``_cut_marks`` leaves them. To ask Unicode
which characters are the marks would take 10 ms at the first text."""


def bounded_marks(text: str) -> str:
    """The text with at most ``MAX_MARKS`` combining marks in a row.

    Unicode's normal forms sort the marks of a character, which takes quadratic time.
    """
    return text if text.isascii() else _LONG_RUN.sub(_cut_marks, text)


def _cut_marks(run: re.Match[str]) -> str:
    found = run.group()
    are_marks = bytes(map(bool, map(unicodedata.combining, found)))
    if _TOO_MANY not in are_marks and _MARKS_WITHOUT_CLASS.isdisjoint(found):
        return found  # of letters, as most are
    kept: list[str] = []
    marks = 0
    for character in found:
        is_mark = unicodedata.combining(character) or character in _MARKS_WITHOUT_CLASS
        marks = marks + 1 if is_mark else 0
        if marks <= MAX_MARKS:
            kept.append(character)
    return "".join(kept)


def composed(text: str) -> str:
    """The text in Unicode's form NFC. A text with more than ``MAX_MARKS`` combining marks in a row
    comes back as it is, so that two different texts never become one by losing marks."""
    is_bounded = bounded_marks(text) == text
    return unicodedata.normalize("NFC", text) if is_bounded else text


def compatible(text: str) -> str:
    """The case-folded text in Unicode's form NFKC, with bounded runs of marks; idempotent.

    Where there are more than ``MAX_LIGATURES`` ligatures, they stay as they are.
    """
    if text.isascii():
        return text.lower()
    text = bounded_marks(text)
    if len(_LIGATURE.findall(text)) > MAX_LIGATURES:
        return _NO_LIGATURES.sub(lambda part: _compatible(part.group()), text)
    return _compatible(text)


def _compatible(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    for _ in range(2):  # composing can enable a fold, and folding can undo the composition
        folded = text.casefold()
        if folded == text:
            break
        text = unicodedata.normalize("NFKC", folded)
    return bounded_marks(text)


# Punctuation that Unicode's compatibility forms leave alone, brought to what people type.
# CJK, Arabic and Indic stops end a clause wherever they stand, so they become a space; the ASCII
# comma and stop must not, because they also live inside numbers, paths and versions.
_PUNCTUATION: Final[dict[str, str]] = {
    **dict.fromkeys("\u2018\u2019\u201b\u02bc\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d", '"'),
    **dict.fromkeys("\u2010\u2011\u2212", "-"),
    "\u2044": "/",
    **dict.fromkeys("\u3002\u3001\uff0c\uff61\uff64\uff1b\uff1a\uff01\u060c\u061b\u0964", " "),
    **dict.fromkeys("\u2013\u2014\u00a1\u00bf", " "),
    **dict.fromkeys("\u061f\u037e", "?"),
    **dict.fromkeys("\u00ad\u200b\u2060\ufeff", ""),
}
_PUNCTUATION_MARK: Final = re.compile(f"[{''.join(_PUNCTUATION)}]")


def _plain_punctuation(text: str) -> str:
    """Also what ``str.translate`` would do, which takes ten times as long on a text in which few
    characters change."""
    return _PUNCTUATION_MARK.sub(lambda mark: _PUNCTUATION[mark.group()], text)


# The compatibility forms would join these to the number beside them: two to the third would become
# 23, and one and a half 11/2.
_RAISED: Final = re.compile("[\u00b2\u00b3\u00b9\u2070\u2071\u2074-\u207f]+")
_LOWERED: Final = re.compile("[\u2080-\u208e]+")
_NUMBERS: Final = (
    "\u00bc-\u00be\u2150-\u215e\u2189"  # fractions
    "\u2460-\u249b\u24ea\u3251-\u325f\u32b1-\u32bf\U0001f100-\U0001f10a"  # in circles, brackets
)
_NUMBER_SIGN: Final = re.compile(rf"(?<=[\w.])(?=[{_NUMBERS}])|(?<=[{_NUMBERS}])(?=[\w.])")
_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK_GAP: Final = re.compile(rf"(?<=[{_CJK}])\s+(?=[{_CJK}])(?![\u3099\u309a])")
_SENTENCE_MARKS: Final = ".,;:!?"

SHORT_TEXT: Final = 1_000
LONG_TEXT: Final = 20_000
"""Lengths in characters. Thousands of short texts are remembered, and a few long ones, which
several stages read within one request. None that is longer is remembered, so that the memory in use
is bounded."""


class _Memo(dict[str, T]):
    """The results of a function of a text. One that is there costs what reading a dict costs, and
    when ``most`` are there, all are forgotten."""

    def __init__(self, work: Callable[[str], T], most: int, longest: int) -> None:
        self._work = work
        self._of_long = lru_cache(16)(work)
        self._most = most
        self._longest = longest

    def __missing__(self, text: str) -> T:
        if len(text) > self._longest:
            return self._of_long(text) if len(text) <= LONG_TEXT else self._work(text)
        result = self._work(text)
        if len(self) >= self._most:
            self.clear()
        self[text] = result
        return result


def memoised(
    *, short: int, longest: int = SHORT_TEXT
) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Makes a function of a text remember its results for at most ``short`` texts of at most
    ``longest`` characters, and for a few longer ones."""
    return lambda work: _Memo(work, short, longest).__getitem__


@memoised(short=4096)  # the caches ask for the same texts again and again
def normalise(text: str) -> str:
    """The text with everything gone that cannot carry meaning; idempotent.

    NFKC, case folding, one space between words, straight quotes, no sentence punctuation except the
    question mark.
    """
    if not text.isascii():
        text = _RAISED.sub(r"^\g<0>", _plain_punctuation(text))
        text = _LOWERED.sub(r"_\g<0>", text)
        text = _NUMBER_SIGN.sub(" ", text)
        text = _CJK_GAP.sub("", _plain_punctuation(compatible(text)))
    kept: list[str] = []
    for word in bounded_marks(text.casefold()).split():  # folding takes some letters apart
        if word[-1] in _SENTENCE_MARKS:
            word = _without_marks(word)
            if word == "?" and kept and kept[-1][-1] not in _SENTENCE_MARKS:
                kept[-1] += "?"
                continue
        if word:
            kept.append(word)
    return " ".join(kept)


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
_ASCII_TOKEN: Final = re.compile(r"[a-z0-9]+(?:'[a-z]+)?(?:\+\+|#)?")
_SPACED_TOKEN: Final = re.compile(r"[^\W_]+(?:'[a-z]+)?(?:\+\+|#)?")
"""The same for case-folded ASCII, and for text without Chinese, Japanese and Korean, in less than
half the time."""
LETTERS: Final = re.compile(rf"(?:(?![{_CJK}])[^\W\d_])+")
"""What a word of letters alone is in a text as it was written; see ``compatible``."""
_IS_CJK: Final = re.compile(rf"[{_CJK}]")


def tokens(text: str) -> list[str]:
    """The case-folded words of a text in order, as retrieval counts them.

    Identifiers and paths fall apart into their words; ``c++`` and ``c#`` stay whole; scripts that
    write no spaces give overlapping pairs of characters.
    """
    if text.isascii():
        return _ASCII_TOKEN.findall(text.lower())
    folded = compatible(_plain_punctuation(text))
    if folded.isascii():
        return _ASCII_TOKEN.findall(folded)
    if _IS_CJK.search(folded) is None:
        return _SPACED_TOKEN.findall(folded)
    words: list[str] = []
    for word in _TOKEN.findall(folded):
        if len(word) > 2 and _IS_CJK.match(word):
            words.extend(word[i : i + 2] for i in range(len(word) - 1))
        else:
            words.append(word)
    return words


MAX_WORD_LETTERS: Final = 40
"""What is longer is no word, and comes back from ``stem`` as it is."""
_LAST_LATIN: Final = "\u024f"


class _Stemmers(threading.local):
    """A stemmer for each thread: PyStemmer's objects keep state while they work."""

    def __init__(self) -> None:
        self.english = Stemmer.Stemmer("english", 0)  # no memory of its own beside that of ``stem``


_stemmers: Final = _Stemmers()


def stem(word: str) -> str:
    """The English Snowball stem of one case-folded word. Words of other languages change little,
    and those of other scripts than the Latin one not at all."""
    return stems_of((word,))[0]


@lru_cache(maxsize=16_384)
def _memoised_stem(word: str) -> str:
    stemmed: str = _stemmers.english.stemWord(word)
    return stemmed


def stems_of(words: Iterable[str]) -> list[str]:
    """The stem of each word, as ``stem`` gives it."""
    return [
        word if len(word) > MAX_WORD_LETTERS or word[:1] > _LAST_LATIN else _memoised_stem(word)
        for word in words
    ]


def stems(text: str) -> list[str]:
    """The stem of every token of a text, in order."""
    words = tokens(text)
    if text.isascii():
        stemmed: list[str] = _stemmers.english.stemWords(words)
        return stemmed
    return stems_of(words)


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


def words(text: str) -> list[str]:
    """The content words of a text, in order."""
    return content_words(tokens(text))


def words_of_each(texts: Iterable[str]) -> list[tuple[list[str], list[str]]]:
    """For each text all its words in order, and its content words."""
    return [(spoken, content_words(spoken)) for spoken in map(tokens, texts)]


def content_words(spoken: Iterable[str]) -> list[str]:
    """Those of some words that say what a text is about: no function words, and no numbers, which
    say how many or which one."""
    return [word for word in spoken if word not in STOPWORDS and not word.isdigit()]


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
