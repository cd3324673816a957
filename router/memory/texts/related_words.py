"""Words that belong together: "eat" and "allergic", "live" and "flat".

People ask for what they saved in other words than they saved it in, and the bundled encoder knows
too little of such pairs. ``related_words.txt`` is a small English thesaurus of the matters that
people tell an assistant about themselves and their work, and has the irregular verbs whose past has
another stem. Each line is one group:

* the words before the colon mean the same or belong together: each stands for all others;
* a word behind the colon is one of several kinds. "pet: cat dog" says that who asks for a pet may
  mean a cat, and that a cat answers for a pet; but whoever asks for a dog does not mean a cat.

A shared group counts less than a shared word (see ``recall/relevance.py``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from router.text import stem, stems

_GROUPS: Final = Path(__file__).with_name("related_words.txt")
_UNITS: Final = frozenset(
    stems(
        "milliseconds ms seconds minutes hours days weeks months years cm metres meters inches "
        "pixels px mb kb gb megabytes kilograms kg kilo kilos grams tons pounds cents euro euros "
        "dollars percent daily weekly monthly hourly nightly"
    )
)
"""Stems of units, in which one amount may be told one way or the other."""


class _Thesaurus(NamedTuple):
    """By stem the stems that may stand for it, and the other kinds of what it is a kind of."""

    related: Mapping[str, frozenset[str]]
    other_kinds: Mapping[str, frozenset[str]]


def _read(path: Path) -> _Thesaurus:
    related: defaultdict[str, set[str]] = defaultdict(set)
    others: defaultdict[str, set[str]] = defaultdict(set)
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        alike, _, kinds = ({stem(word) for word in part.split()} for part in line.partition(":"))
        for word in alike:
            related[word] |= (alike | kinds) - {word}
        for word in kinds:
            related[word] |= alike - {word}
        for word in kinds - _UNITS:
            others[word] |= kinds - {word} - _UNITS
    return _Thesaurus(
        {word: frozenset(some) for word, some in related.items()},
        {
            word: frozenset(some - related[word])
            for word, some in others.items()
            if some - related[word]
        },
    )


_THESAURUS: Final = _read(_GROUPS)


def related_to(words: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each stem that stands in a group, the stems that may stand for it."""
    return {word: _THESAURUS.related[word] for word in words if word in _THESAURUS.related}


def other_kinds(words: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each stem that is a kind of something, the other kinds of that which do not stand for it:
    for "wife" among others "husband". Units are left out."""
    return {word: _THESAURUS.other_kinds[word] for word in words if word in _THESAURUS.other_kinds}
