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
from typing import Final

from router.text import stem

_GROUPS: Final = Path(__file__).with_name("related_words.txt")


def _read(path: Path) -> Mapping[str, frozenset[str]]:
    related: defaultdict[str, set[str]] = defaultdict(set)
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        alike, _, kinds = ({stem(word) for word in part.split()} for part in line.partition(":"))
        for word in alike:
            related[word] |= (alike | kinds) - {word}
        for word in kinds:
            related[word] |= alike - {word}
    return {word: frozenset(others) for word, others in related.items()}


_RELATED: Final = _read(_GROUPS)


def related_to(stems: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each stem that stands in a group, the stems that may stand for it."""
    return {word: _RELATED[word] for word in stems if word in _RELATED}
