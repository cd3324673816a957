"""The content gate: whether two similar requests mean the same, so that one answer serves both.

Edit distance alone cannot tell "tire change" from "oil change", or issue 12 from issue 21. So each
request becomes a ``Signature`` (``wording.py``): the ordered sequence of the words that carry its
meaning. Two requests match when their sequences match, by these rules:

* Words are compared by stem, but only an inflection (bug, bugs) counts as equal. The stemmer also
  gives import and important, or past and paste, the same stem; these stay different.
* The order counts, because "from A to B" is not "from B to A".
* Numbers, versions, paths, identifiers and quoted strings must be equal to the letter, and so must
  negations, directions, modal verbs, quantifiers, question words and other people's pronouns.
* Plain prepositions (on, in, to, with) may be missing in one of the two requests, but not differ:
  "for Ann" matches "Ann", and does not match "by Ann". Their rarer opposites (off, out, from,
  without) count like other words.
* Articles, auxiliary verbs, courtesy and urgency are ignored. Whether a request is a question is
  not: "how do I fix it" wants an explanation, and "fix it" an action.
* One typo in a long word is forgiven, unless the result looks like another real word.

The rules for ignored words, stems and inflections are for English. In other languages only
differences in case, punctuation and spacing and typos in long words are forgiven. There the typo
must look like a slip of the finger, because one letter at the end or in the middle of a word is
often grammar (Turkish "geliyor", "gelmiyor").

The relation is symmetric and reflexive, but not transitive: two forgiven differences may add up to
one that is not forgiven. ``typos.py`` defines typos and inflections.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from router.stages.typos import is_inflection, is_typo
from router.stages.wording import DIRECTIONS, MODALS, NEGATIONS, QUESTIONS, SAME, Signature

MAX_TYPOS: Final = 2
"""How many words of two requests may differ by a typo."""


class Difference(StrEnum):
    """The kind of difference between two requests. Where there are several, the first in this order
    is named."""

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


# Prepositions that may be missing at the end of a question, as in "what is it for".
_AT_QUESTION_END: Final = frozenset(("", " for", " with", " of", " to", " at", " about"))


def compare_signatures(first: Signature, second: Signature) -> GateVerdict:
    """Whether the answer to one request may serve the other."""
    if first.is_question != second.is_question:
        moods = ("a question", "a statement")
        return GateVerdict(Difference.QUESTION, *(moods if first.is_question else reversed(moods)))
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
            # The last word of a text may be a part of the verb (log in), which must not be missing.
            if one != other and (
                not _compatible(one, other) or (i == last and {one, other} - _AT_QUESTION_END)
            ):
                return GateVerdict(Difference.RELATION, one.strip(), other.strip())
    return _PASS


def _compatible(one: str, other: str) -> bool:
    """Whether one side has no preposition that the other has not: "for me to" and "to"."""
    only_first, only_second = set(one.split()), set(other.split())
    return only_first <= only_second or only_second <= only_first


def _explain(first: Signature, second: Signature) -> GateVerdict:
    """Name the most telling difference between two signatures that do not match."""
    only_first = _missing_in(first, second)
    only_second = _missing_in(second, first)
    if not only_first and not only_second:
        if first.stems != second.stems:
            return GateVerdict(Difference.ORDER, " ".join(first.words), " ".join(second.words))
        pairs = zip(first.words, second.words, strict=True)  # of one stem: import, important
        only_first, only_second = zip(*(pair for pair in pairs if pair[0] != pair[1]), strict=True)
    kinds = {word: _kind(word) for word in (*only_first, *only_second)}
    worst = min(kinds.values(), key=list(Difference).index)
    return GateVerdict(
        worst,
        " ".join(word for word in only_first if kinds[word] is worst),
        " ".join(word for word in only_second if kinds[word] is worst),
    )


def _missing_in(first: Signature, second: Signature) -> tuple[str, ...]:
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
