"""Of two memories about one matter, which one holds now?

People save what is true now and leave in place what was true before: "Our database is Postgres 14",
and later "We moved to MySQL 8". A memory that says by an attribute what has replaced it
(``superseded_by``) is believed. Otherwise a later statement is taken to replace an earlier one of
the same layer and scope

* if both give one attribute of one subject, and each another value (``frames.py``); where two such
  statements speak of two subjects, nothing is replaced;
* if it speaks of a change ("moved", "instead", but not "now"), of the same person, and not of a
  plan, and the two share at least ``SHARED_BY_CHANGE`` of the words of the shorter one. Related
  words count, numbers and words of change do not. They must also begin with the same matter, or
  hold related words, or the later one names what was replaced ("from Perl"). If the word of change
  is itself the related one ("I moved to Hamburg" after "I live in Berlin"), the words of the
  earlier one count, unless both are of one person.

That both name one person, "the user", "my wife" or a name that they begin with, is no shared word,
and where they begin with two names, nothing is replaced, unless the later one names the other, too.
Of 2,541 statements about the people of LoCoMo, which are nearly all true side by side, some 250
would be taken to be replaced if names were words; 24 are.

Events, talk and tasks are never replaced: what happened has happened.

Where none of this is sure, the later of two may still be the answer ("From now on people must order
for 18 euro at least" after "Minimum order is 12 euro"), the likelier the more words they share
(``likelihood_of_replacement``). That decides alone which of them a recall gives first.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

from router.memory.model import LayerQuery, MemoryItem, Scope, aware
from router.memory.query.past import asks_for_past
from router.memory.recall.frames import KIN, contradict, leading_name, speaks_of
from router.memory.texts.chunking import CHUNK_CHARACTERS
from router.memory.texts.related_words import related_to
from router.memory.texts.words import words_of
from router.text import stem, stems, tokens, word_set

LASTING_LAYERS: Final = frozenset(
    {"semantic", "project", "user", "procedural", "planning", "graph", "governance"}
)
"""Layers of what holds until it is replaced."""
USER_LAYER: Final = "user"
SHARED_BY_CHANGE: Final = 0.3
LIKELY_BY_SHARED: Final = 4.0
"""Log-odds of a replacement that is not sure, for two memories with all their words in common. This
and the next were fitted to the questions of twelve people (``benchmarks/memory_finding.py``)."""
LIKELY_BY_CHANGE: Final = 25.0
"""What is added to it where the later one tells of a change."""
MAX_WORDS: Final = 60
"""Longer texts are documents; they are compared by nobody here."""
SUPERSEDED_BY: Final = "superseded_by"
"""Attribute: the id of what has replaced an item."""
SUPERSEDED_AT: Final = "superseded_at"
"""Attribute: when, in ISO 8601."""

_PERHAPS_CHANGED: Final = word_set("now")
"""What is now so need not have been otherwise before: it makes a replacement only likely."""
_CHANGE_WORDS: Final = _PERHAPS_CHANGED | word_set(
    """
    since moved changed switched replaced replaces replace migrated instead anymore
    rewritten rewrote ported renamed upgraded gone followed successor bought promoted
    raised lowered deprecated
    """
)
_CHANGES: Final = frozenset(map(stem, _CHANGE_WORDS))
_NO_LONGER: Final = re.compile(r"\bno longer\b|(?:\bnot|n't) [^.;]*\bany more\b", re.IGNORECASE)
"""As sure a sign of a change as "anymore", though "longer" alone is none."""
_REPLACED: Final = re.compile(
    r"\b(?:from|replace[ds]?|instead of|followed|as my|as our) (?:the )?(\w+(?: \w+)?)",
    re.IGNORECASE,
)
"""What a text says has been replaced."""
_GENERAL: Final = frozenset(map(stem, word_set("use used run need get make")))
"""Words that say nothing of a matter."""
_PERSONS: Final = frozenset(map(stem, KIN)) | {"user"}
"""That two memories are about one person says nothing of their matter; nor does a name."""
_PLANS: Final = frozenset(
    map(stem, word_set("might could would want plan consider maybe perhaps hope wish if"))
)
"""What is only planned has replaced nothing yet."""


@dataclass(frozen=True, slots=True)
class Update:
    older: MemoryItem
    newer: MemoryItem


def updates_among(
    items: Iterable[MemoryItem], matters: Callable[[MemoryItem], bool] = lambda _: True
) -> list[Update]:
    """Every pair in which one item has replaced the other; the latest replacement of each. Pairs in
    which neither item ``matters`` are left out."""
    by_owner: dict[tuple[str, Scope], list[MemoryItem]] = defaultdict(list)
    for item in items:
        if item.layer in LASTING_LAYERS:
            by_owner[item.layer, item.scope].append(item)
    found: list[Update] = []
    for same in by_owner.values():
        same.sort(key=lambda item: item.created, reverse=True)
        mattering = {item.id for item in same if matters(item)}
        for place, older in enumerate(same):
            among = (i for i in same[:place] if older.id in mattering or i.id in mattering)
            newest = next((one for one in among if replaces(one, older)), None)
            if newest is not None:
                found.append(Update(older, newest))
    return sorted(found, key=lambda update: update.older.created)


def update_of(one: MemoryItem, other: MemoryItem) -> Update | None:
    """The two as if the later one had replaced the other; None where it cannot have: they are of
    two layers or scopes, of one time, or of a layer whose items are never replaced."""
    if (one.layer, one.scope) != (other.layer, other.scope) or one.layer not in LASTING_LAYERS:
        return None
    if one.created == other.created:
        return None
    return Update(*sorted((one, other), key=lambda item: item.created))


def replaces(newer: MemoryItem, older: MemoryItem) -> bool:
    """Whether ``newer`` says what holds in place of ``older``; see the module's text."""
    if newer.layer != older.layer or newer.scope != older.scope or newer.id == older.id:
        return False
    if older.attributes.get(SUPERSEDED_BY) == newer.id:
        return True
    if newer.created <= older.created or older.layer not in LASTING_LAYERS:
        return False
    told = contradict(newer.content, older.content)
    if told is not None:
        return told
    new, old = words_of(_compared(newer)), words_of(_compared(older))
    if not new.terms or not old.terms or max(len(new.terms), len(old.terms)) > MAX_WORDS:
        return False
    name, other = _leading_names(_compared(newer), _compared(older))
    if name and other and name != other and name not in _CHANGES and other not in new.bag:
        return False  # they speak of two people
    tells_change = bool(_changes_in(_compared(newer)) - _PERHAPS_CHANGED)
    return tells_change and _replaces_by_change(newer, older, name)


def _leading_names(one: str, other: str) -> tuple[str, str]:
    """The stems of the names that two texts begin with, empty without one."""
    first, second = (stem(leading_name(text) or "") for text in (one, other))
    return first, second


def _compared(item: MemoryItem) -> str:
    """What is compared of an item: its beginning, whose words are kept. Recalls compare every pair;
    forty items as long as they may be took seconds to split into words again and again."""
    return item.content[:CHUNK_CHARACTERS]


def likelihood_of_replacement(update: Update) -> float:
    """Log-odds that the newer one says what holds in place of the older, where that is not sure; 0
    where nothing speaks for it, or both are about two subjects or people."""
    newer, older = _compared(update.newer), _compared(update.older)
    if contradict(newer, older) is False or _are_of_two_people(speaks_of(newer), speaks_of(older)):
        return 0.0
    beside = _PERSONS | _CHANGES | {*_leading_names(newer, older)}
    said, before = ({*words_of(text).terms} - beside for text in (newer, older))
    share = len(said & before) / max(1, len(said | before))
    return share * (LIKELY_BY_SHARED + LIKELY_BY_CHANGE * bool(_changes_in(newer)))


def _are_of_two_people(one: str | None, other: str | None) -> bool:
    return one != other and one is not None and other is not None


def _replaces_by_change(newer: MemoryItem, older: MemoryItem, name: str) -> bool:
    """Whether what tells of a change tells it of what the other says; ``name`` is the stem of the
    name that it begins with, or empty."""
    text = _compared(newer)
    new, old = words_of(text), words_of(_compared(older))
    said, before = set(new.terms), set(old.terms)
    who, whom = speaks_of(newer.content), speaks_of(older.content)
    if whom is None and who == "I" and newer.layer == USER_LAYER:
        whom = leading_name(older.content) or who
    if _are_of_two_people(who, whom) or not _PLANS.isdisjoint(new.bag):
        return False
    related = related_to(before).items()
    linked = {word for word, others in related if others & said - _CHANGES}
    beside = _PERSONS | _CHANGES | _GENERAL | {*_leading_names(text, _compared(older))}
    shared = (said & before) - beside
    alike = linked | {word for word in shared if not word.isdigit()}
    is_of_one_matter = (
        linked
        or old.terms[0] in said
        or new.terms[0] in old.terms[:2]
        or not before.isdisjoint(stems(" ".join(_REPLACED.findall(text))))
    )
    if is_of_one_matter and len(alike) >= SHARED_BY_CHANGE * min(len(said), len(before)):
        return True
    if who != whom and name not in before:
        return False
    moved = {word for word, others in related if others & said}
    words = min(len(said), len(before)) if who or name in before else len(before)
    return bool(moved) and len(alike | moved) >= SHARED_BY_CHANGE * words


def tells_change(update: Update) -> bool:
    """Whether the newer one says itself that something has changed."""
    return bool(_changes_in(_compared(update.newer)))


@lru_cache(4_096)
def _changes_in(text: str) -> frozenset[str]:
    """The words of a text that tell of a change."""
    return _CHANGE_WORDS.intersection(tokens(_NO_LONGER.sub("anymore", text)))


def asks_for_history(query: LayerQuery) -> bool:
    """Whether a query asks for what held once, and not for what holds now."""
    past = query.period is not None and query.period.end <= query.now
    return past or asks_for_past(query.text)


def held_then(update: Update, query: LayerQuery) -> MemoryItem:
    """Which of the two held at the time that the query asks for."""
    if query.period is not None and query.period.end <= query.now:
        return update.newer if replaced_at(update) < query.period.end else update.older
    return update.older if asks_for_history(query) else update.newer


def replaced_at(update: Update) -> datetime:
    """When the older one ceased to hold."""
    said = update.older.attributes.get(SUPERSEDED_AT)
    if isinstance(said, str):
        with suppress(ValueError):
            return aware(datetime.fromisoformat(said))
    return update.newer.created
