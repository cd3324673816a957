"""Finds what a memory states beside that which a later one changes.

People put two facts into one memory: "I live in Graz and have a wasp allergy". A later "I moved to
Linz" changes the first and leaves the second true. So a memory is not replaced as a whole if it has
a sentence, or a clause with a verb of its own, that shares no word with the later one beside what
both are about (``kept_words``). A reason is no fact of its own ("because riders complained"), nor
is what has no verb ("third floor").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from router.memory.recall.clauses import OPENING, SPEAKER, Clause, clause_of, is_helper
from router.memory.recall.frames import SENTENCE_END, VALUE_VERBS
from router.memory.texts.chunking import CHUNK_CHARACTERS
from router.memory.texts.related_words import related_to
from router.memory.texts.words import words_of
from router.text import word_set

_KEPT: Final = 4_096
_NOTHING: Final = frozenset[str]()
_REASON: Final = re.compile(
    r",? (?:because|since|so that|which|who|whose|due to|thanks to)\b.*", re.DOTALL
)
_JOINT: Final = re.compile(r"(,? (?:and|but)|,) ")
_PRONOUNS: Final = word_set("he she it they")
_OPENS_OBJECT: Final = OPENING | word_set("no not one two three")


class _Facts(NamedTuple):
    """The stems that each fact of a text consists of, and those that any of them is about."""

    stated: tuple[frozenset[str], ...]
    subjects: frozenset[str]


def kept_words(newer: str, older: str) -> frozenset[str]:
    """The stems of what ``older`` states beside that which ``newer`` may change; empty if it states
    one thing only."""
    facts = _facts(older[:CHUNK_CHARACTERS])
    if len(facts.stated) < 2:
        return frozenset()
    said = words_of(newer).bag.keys()
    related = related_to(frozenset(chain(*facts.stated)))
    shared = [
        {word for word in fact if word in said or related.get(word, _NOTHING) & said}
        for fact in facts.stated
    ]
    most = max(map(len, shared))
    kept = [
        fact - facts.subjects
        for fact, common in zip(facts.stated, shared, strict=True)
        if len(common) < most and common <= facts.subjects
    ]
    return frozenset(chain(*kept))


def subjects_of(text: str) -> frozenset[str]:
    """The stems of what the facts of a text are about."""
    return _facts(text[:CHUNK_CHARACTERS]).subjects


@lru_cache(_KEPT)
def _facts(text: str) -> _Facts:
    clauses = [each for sentence in SENTENCE_END.split(text) for each in _clauses(sentence.strip())]
    subjects = frozenset(chain(*(clause.subject for _, clause in clauses if clause)))
    return _Facts(tuple(frozenset(words_of(part).terms) for part, _ in clauses), subjects)


def _clauses(sentence: str) -> Iterator[tuple[str, Clause | None]]:
    """The clauses of a sentence that are known to have a verb; None in place of one whose subject
    is that of the clause before."""
    first, *others = _JOINT.split(_REASON.sub("", sentence).strip(" .!?;"))
    leading = clause_of(first)
    if leading is None:
        return
    if leading.following:  # "Ana retired, Ben is our cook" states one fact
        yield first, leading
    before = first.split()
    for joint, part in zip(others[::2], others[1::2], strict=True):
        words, clause = part.split(), clause_of(part)
        if len(words) > 1 and clause is not None and _has_subject(words, clause):
            yield part, clause
        elif joint != "," and _begins_with_verb(words, before, leading):
            yield part, None
        before = words or before


def _has_subject(words: list[str], clause: Clause) -> bool:
    opens = words[0].lower()
    is_named = bool(clause.subject) and words[0][0].isupper()
    return opens in SPEAKER or opens in OPENING or opens in _PRONOUNS or is_named


def _begins_with_verb(words: list[str], before: list[str], leading: Clause) -> bool:
    """Whether a clause without a subject begins with its verb: "keeps the key", "have a dog".
    ``before`` are the words of the part before it, ``leading`` is the clause that has the
    subject."""
    word, following = (*words[:2], "", "")[:2]
    if not following or not word.islower() or word in OPENING:
        return False
    if is_helper(word) or f"{word} {following}" in VALUE_VERBS:
        return True
    ends_in_s = word.endswith("s") and not word.endswith("ss")
    if not leading.subject:
        return not ends_in_s and following in _OPENS_OBJECT
    return ends_in_s and not before[-1].endswith("s")  # "apples and pears" are two things
