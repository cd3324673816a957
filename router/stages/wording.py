"""The words of an English request that count: contractions written out, politeness left out.

``split`` takes the text apart, ``without_courtesies`` cuts the phrases that open and close a polite
request, ``without_fillers`` drops the words that are fillers where they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from router.stages.gate_words import (
    AUXILIARIES,
    CLITICS,
    CLOSINGS,
    GIVING,
    IRREGULAR,
    LONGEST_PHRASE,
    OPENINGS,
    PLAIN_MODALS,
    PLAIN_RELATIONS,
    QUESTIONS,
)
from router.text import FILLERS, STOPWORDS

_CHUNK: Final = re.compile(r"""["`][^"`]*["`]|(?<!\w)'[^']+'(?!\w)|\S+""")
_HYPHENATED: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?")


def split(text: str) -> list[str]:
    """Words with contractions written out, and literals (all that is not letters) as they are."""
    words: list[str] = []
    for chunk in _CHUNK.findall(text):
        if chunk.isalpha() and chunk not in IRREGULAR:
            words.append(chunk)
            continue
        if chunk[0] not in "\"'`":
            chunk = chunk.rstrip("?")
            if chunk[:1] == "(":
                chunk = chunk[1:].removesuffix(")")
            elif "(" not in chunk:
                chunk = chunk.removesuffix(")")
        if not chunk or chunk in ".,;:!":
            continue
        if _HYPHENATED.fullmatch(chunk):
            for part in chunk.split("-"):
                words.extend(_written_out(part))
        else:
            words.append(chunk)
    return words


def _written_out(word: str) -> Iterable[str]:
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("n't"):
        return (word[:-3], "not")
    base, mark, clitic = word.partition("'")
    if mark and mark + clitic in CLITICS:
        return (base, *CLITICS[mark + clitic])
    return (word,)


def without_courtesies(words: list[str]) -> list[str]:
    """The words without the phrases that open and close a polite request."""
    start, end = 0, len(words)
    while start < end and (size := _opening(words[start : start + LONGEST_PHRASE])):
        start += size
    while start < end and (size := _closing(words[max(start, end - LONGEST_PHRASE) : end])):
        end -= size
    return words[start:end]


def _opening(words: list[str]) -> int:
    """How many words of courtesy the words begin with."""
    if words[:2] in (["show", "me"], ["show", "us"]) and not QUESTIONS.isdisjoint(words[2:3]):
        return 2  # show me how
    return _matching(OPENINGS, words)


def _closing(words: list[str]) -> int:
    """How many words of courtesy the words end with."""
    return _matching(CLOSINGS, words[::-1])


def _matching(phrases: Mapping[str, Sequence[tuple[str, ...]]], words: list[str]) -> int:
    """How many words the longest phrase takes that the words begin with."""
    for phrase in phrases.get(words[0], ()):
        if tuple(words[: len(phrase)]) == phrase:
            return len(phrase)
    return 0


def without_fillers(words: list[str]) -> list[str]:
    """What is left without the fillers that are fillers where they stand."""
    kept: list[str] = []
    question = bool(words) and (words[0] in AUXILIARIES or words[0] in QUESTIONS)
    for i, word in enumerate(words):
        before = words[i - 1] if i else ""
        after = words[i + 1] if i + 1 < len(words) else ""
        if word in FILLERS:
            match word:
                case "have" | "has" | "had" if after == "to":
                    kept.append("must")
                    continue
                case "a" | "i":  # from A to B, part I
                    filler = bool(after) and (word == "i" or after not in STOPWORDS)
                case "am":  # 10 am
                    filler = not before[-1:].isdigit()
                case "be" | "do":  # a to do list, to be called Tom
                    filler = before != "to"
                case "any":  # do I have any files; but delete any file
                    filler = question
                case "me":  # show me; but call me Mary
                    filler = not before or before in GIVING or before in PLAIN_RELATIONS
                case "us":  # show us; but fly to US cities
                    filler = not before or before in GIVING
                case _:
                    filler = True
            if filler:
                continue
        elif word == "just" and before in FILLERS:
            continue  # "I just lost it", "it was just lost"; but "lose just one"
        elif word in PLAIN_MODALS and words[0] in ("how", "where", "when"):
            continue  # "how can I" and "how would I" are "how do I"
        elif (
            word in ("get", "gets", "got", "getting")
            and after.endswith("ed")
            and (question or words[0] in FILLERS)
        ):
            continue  # "did it get deleted" is "was it deleted"; but "get deleted files"
        kept.append(word)
    return kept
