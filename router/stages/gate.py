"""The content gate: may the answer to one request serve another one?

Edit distance cannot tell "tire change" from "oil change" or issue 12 from issue 21. So each request
becomes a ``Signature`` (``wording.py``), the ordered sequence of what carries its meaning, and two
requests match only when their sequences do:

* Words count by stem, but only inflection is forgiven (bug, bugs): Snowball also joins import and
  important, past and paste.
* The order always counts. "From A to B", "convert A to B" and "A not B" all live in the order, and
  requests that only swap words are too far apart for the cache anyway.
* Numbers, versions, paths, identifiers and quoted strings count to the letter, and so do negations,
  directions, modal verbs, quantifiers, question words and other people's pronouns.
* Of two opposite function words the rare one counts (off, out, from, without), and the plain ones
  (on, in, to, with) may be left out, but not exchanged: "for Ann" is "Ann", not "by Ann".
* Articles, auxiliaries, courtesy and urgency do not count. That a question was asked does, and so
  "how do I fix it" is not "fix it": the one wants an explanation, the other an action.
* One typo in a long word is forgiven unless the result looks like another real word.

Fillers, stems and inflection are English. For text in another language only case, punctuation,
spacing and typos in long words are forgiven, and there the typo must be a plain slip, because one
letter at the end or in the middle of a word often is grammar (Turkish "geliyor", "gelmiyor").

The relation is symmetric and reflexive, but not transitive: two forgiven differences may add up to
one that is not. ``typos.py`` says what counts as a typo or an inflection.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from router.stages.typos import is_inflection, is_typo
from router.stages.wording import DIRECTIONS, MODALS, NEGATIONS, QUESTIONS, SAME, Signature

MAX_TYPOS: Final = 2
"""Typos forgiven between two requests, one in a word."""


class Difference(StrEnum):
    """What kept two requests apart, from the most telling kind to the least."""

    NUMBER = "number"
    LITERAL = "literal"
    """An identifier, path, version, quoted string or other sign."""
    NEGATION = "negation"
    DIRECTION = "direction"
    QUESTION = "question"
    """Another question word, or a question against a statement."""
    MODALITY = "modality"
    WORD = "content word"
    ORDER = "order"
    RELATION = "preposition"


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Whether two requests mean the same, and if not, why.

    Attributes:
        difference: the kind of what differs; None when the pair passes.
        first: what only the first request has.
        second: what only the second request has.
    """

    difference: Difference | None = None
    first: str = ""
    second: str = ""

    @property
    def passes(self) -> bool:
        """Whether the one answer may serve both."""
        return self.difference is None

    @property
    def reason(self) -> str:
        """One clause for a person."""
        if self.difference is None:
            return "same content"
        return f"{self.difference.value} differs: {self.first or '-'} against {self.second or '-'}"


_PASS: Final = GateVerdict()


# What may stand at the end of a question (what is it for) without changing what is asked.
_STRANDED: Final = frozenset(("", " for", " with", " of", " to", " at", " about"))


def judge(first: Signature, second: Signature) -> GateVerdict:
    """Whether the answer to one request may serve the other; symmetric and reflexive."""
    if first.asks != second.asks:
        moods = ("a question", "a statement")
        return GateVerdict(Difference.QUESTION, *(moods if first.asks else reversed(moods)))
    if len(first.stems) != len(second.stems):
        return _explain(first, second)
    typos = 0
    for i, (one, other) in enumerate(zip(first.words, second.words, strict=True)):
        if one == other:
            continue
        if first.stems[i] == second.stems[i] and (
            not one.isalpha() or one in SAME or is_inflection(one, other, first=i == 0)
        ):
            continue
        typos += 1
        english = first.english and second.english
        if typos > MAX_TYPOS or not is_typo(one, other, english=english):
            return _explain(first, second)
    if first.relations != second.relations:
        last = len(first.stems)
        for i, (one, other) in enumerate(zip(first.relations, second.relations, strict=True)):
            # The last word of a text may be a particle (log in), which may not be left out.
            if one != other and (
                not _compatible(one, other) or (i == last and {one, other} - _STRANDED)
            ):
                return GateVerdict(Difference.RELATION, one.strip(), other.strip())
    return _PASS


def _compatible(one: str, other: str) -> bool:
    """Whether one side says nothing that the other does not say: "for me to" and "to"."""
    mine, theirs = set(one.split()), set(other.split())
    return mine <= theirs or theirs <= mine


def _explain(first: Signature, second: Signature) -> GateVerdict:
    """Name the most telling difference between two signatures that do not match."""
    mine = _left_over(first, second)
    theirs = _left_over(second, first)
    if not mine and not theirs:
        if first.stems != second.stems:
            return GateVerdict(Difference.ORDER, " ".join(first.words), " ".join(second.words))
        pairs = zip(first.words, second.words, strict=True)  # of one stem: import, important
        mine, theirs = zip(*(pair for pair in pairs if pair[0] != pair[1]), strict=True)
    kinds = {word: _kind(word) for word in (*mine, *theirs)}
    worst = min(kinds.values(), key=list(Difference).index)
    return GateVerdict(
        worst,
        " ".join(word for word in mine if kinds[word] is worst),
        " ".join(word for word in theirs if kinds[word] is worst),
    )


def _left_over(first: Signature, second: Signature) -> tuple[str, ...]:
    """The words of the first signature whose stems the second has not, or has less often."""
    missing = Counter(first.stems) - Counter(second.stems)
    words: list[str] = []
    for stem_, word in zip(reversed(first.stems), reversed(first.words), strict=True):
        if missing[stem_] > 0:
            missing[stem_] -= 1
            words.append(word)
    return tuple(reversed(words))


def _kind(word: str) -> Difference:
    if not word.isalpha():
        return Difference.NUMBER if any(c.isdigit() for c in word) else Difference.LITERAL
    if word in NEGATIONS:
        return Difference.NEGATION
    if word in DIRECTIONS:
        return Difference.DIRECTION
    if word in QUESTIONS:
        return Difference.QUESTION
    if word in MODALS:
        return Difference.MODALITY
    return Difference.WORD
