"""The features that the classifier reads from a query: its words, its grammar, and classes of
words.

Which memory a query needs depends on how it is worded (who asks, about whom, in which tense), and
not on its topic. So a query becomes a set of features, called cues, each of which stands for some
of its words:

    depend          a word, by its stem; so "depends" and "dependent" are one
    what+depend     two words in a row; "^" is the start and "$" the end
    <relation>      a word of one of the classes in ``word_classes.txt``, so that a rare word counts
                    like a common one of its class
    <relation> on   two neighbours in the pattern of the query: function words as they are, other
                    words by their class, and all words without a class as one "_"
    (you) (past)    whom it is about, and in which tense or form of question

Words are whole words: "elastic" holds no "last", "causes" no "uses", "update" no "date".
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from router.text import STOPWORDS, stem, stems_of, tokens, word_set

MAX_WORDS: Final = 400
"""Words of a query that are looked at, at most; 2,000 characters rarely contain more."""

_WORD_CLASSES: Final = Path(__file__).with_name("word_classes.txt")


def _by_stem(path: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, words = line.partition(":")
        if not line.startswith("#"):
            for word in words.split():
                found.setdefault(stem(word), {})[f"<{name}>"] = None
    return {key: tuple(names) for key, names in found.items()}


_CLASSES_OF: Final = _by_stem(_WORD_CLASSES)
"""The classes of a word, by its stem."""

_PERSONS: Final = {
    word: person
    for person, words in {
        "(i)": "i me my mine i'm i've i'd i'll",
        "(we)": "we us our ours we're we've",
        "(you)": "you your yours you're you've",
    }.items()
    for word in words.split()
}
QUESTION_WORDS: Final = word_set("what which who whom whose when where why how")
_AUXILIARIES: Final = {
    word: form
    for form, words in {
        "(do)": "do does did",
        "(be)": "is are am was were",
        "(have)": "has have had",
        "(may)": "can could may might must should would shall will",
    }.items()
    for word in words.split()
}
_PAST: Final = word_set("did was were had went")
_PAST_ENDING_LETTERS: Final = 5
"""A word in "-ed" of at least this length counts as a past form."""


def cues(text: str) -> dict[str, str]:
    """The cues of a text, each with the words of it, in lower case, that the cue stands for."""
    words = tokens(text)[:MAX_WORDS]
    asks = text.rstrip().endswith("?")
    stemmed = stems_of(words)
    found: dict[str, str] = {}
    for word, key in zip(words, stemmed, strict=True):
        found[key] = word
        for name in _CLASSES_OF.get(key, ()):
            found.setdefault(name, word)
    _add_grammar(found, words, asks=asks)
    if asks:
        words.append("?")
        stemmed.append("?")
    _add_pairs(found, ["^", *stemmed, "$"], ["", *words, ""], "+")
    _add_pairs(found, *_pattern(words, stemmed), " ")
    return found


def classes_of(words: Iterable[str]) -> set[str]:
    """The classes that some words are in, such as ``<owner>``."""
    return {name for word in words for name in _CLASSES_OF.get(stem(word), ())}


def _add_grammar(found: dict[str, str], words: list[str], *, asks: bool) -> None:
    """Add the persons that the query is about, its form and tense, and each person with both."""
    spoken = {_PERSONS[word]: word for word in words if word in _PERSONS} or {"(nobody)": ""}
    asking = next((word for word in words if word in QUESTION_WORDS), None)
    opening = words[0] if words else ""
    form = asking or _AUXILIARIES.get(opening) or ("(question)" if asks else "(statement)")
    past = any(map(_is_past, words))
    found["form " + form] = asking or opening
    if past:
        found["(past)"] = ""
    tense = "(past)" if past else "(present)"
    everybody = "".join(sorted(spoken))
    found[f"only {everybody}"] = " ".join(spoken.values())
    for person, word in spoken.items():
        found[person] = word
        found[f"{person} {form}"] = f"{asking or opening} {word}".strip()
        found[f"{person} {tense}"] = word


def _is_past(word: str) -> bool:
    return word in _PAST or (len(word) >= _PAST_ENDING_LETTERS and word.endswith("ed"))


def _pattern(words: list[str], stemmed: list[str]) -> tuple[list[str], list[str]]:
    """The words as a pattern, and for each of its parts the words behind it."""
    parts, behind = ["^"], [""]
    for word, key in zip(words, stemmed, strict=True):
        if key in _CLASSES_OF:
            part = _CLASSES_OF[key][0]
        elif word in STOPWORDS or word == "?":
            part = word
        else:
            part = "#" if word[0].isdigit() else "_"
        if part == "_" and parts[-1] == "_":
            behind[-1] += f" {word}"
        else:
            parts.append(part)
            behind.append(word)
    return [*parts, "$"], [*behind, ""]


def _add_pairs(found: dict[str, str], parts: list[str], words: list[str], mark: str) -> None:
    for left, right, one, other in zip(parts, parts[1:], words, words[1:], strict=False):
        found.setdefault(f"{left}{mark}{right}", f"{one} {other}".strip())
