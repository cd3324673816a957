"""Of two memories about one matter, which one holds now?

People save what is true now and leave in place what was true before: "Our database is Postgres 14",
and later "We moved to MySQL 8". A memory that says by an attribute what has replaced it
(``superseded_by``) is believed. Otherwise a later statement is taken to replace an earlier one of
the same layer and scope

* if both give one attribute of one subject, and each another value (``frames.py``); where two such
  statements speak of two subjects or of two matters, nothing is replaced;
* if it speaks of a change ("now", "moved", "instead"), of the same person, and not of a plan, and
  shares at least ``SHARED_BY_CHANGE`` of the words of the shorter one, related words included and
  numbers not; where the word of change is itself the related one ("I moved to Hamburg" after "I
  live in Berlin"), and the two are not of one person, so many of the earlier one; or
* if both begin with the same word and share at least ``SHARED_BY_FRAME`` of all their words, but
  each has something of its own, such as another number.

That both name one person, "the user", "my wife" or in the layer ``user`` a name, is no shared word.

Events, talk and tasks are never replaced: what happened has happened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from router.memory.model import LayerQuery, MemoryItem, Scope, aware
from router.memory.query.past import asks_for_past
from router.memory.recall.frames import KIN, contradict, leading_name, speaks_of
from router.memory.texts.related_words import related_to
from router.memory.texts.words import words_of
from router.text import stem, word_set

LASTING_LAYERS: Final = frozenset(
    {"semantic", "project", "user", "procedural", "planning", "graph", "governance"}
)
"""Layers of what holds until it is replaced."""
SHARED_BY_CHANGE: Final = 0.3
SHARED_BY_FRAME: Final = 0.6
MAX_WORDS: Final = 60
"""Longer texts are documents; they are compared by nobody here."""
SUPERSEDED_BY: Final = "superseded_by"
"""Attribute: the id of what has replaced an item."""
SUPERSEDED_AT: Final = "superseded_at"
"""Attribute: when, in ISO 8601."""

_CHANGES: Final = frozenset(
    map(
        stem,
        word_set(
            """
            now moved changed switched replaced replaces migrated became become instead anymore
            since rewritten rewrote ported renamed upgraded new longer gone followed successor
            bought quit stopped promoted raised lowered deprecated
            """
        ),
    )
)

_PERSONS: Final = frozenset(map(stem, KIN)) | {"user"}
"""That two memories are about one person says nothing of their matter; nor does a name."""
_PLANS: Final = frozenset(
    map(stem, word_set("might could would want plan consider maybe perhaps hope wish if"))
)
"""What is only planned has replaced nothing yet."""


@dataclass(frozen=True, slots=True)
class Update:
    """A memory and what has taken its place."""

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
    new, old = words_of(newer.content), words_of(older.content)
    if not new.terms or not old.terms or max(len(new.terms), len(old.terms)) > MAX_WORDS:
        return False
    said, before = set(new.terms), set(old.terms)
    name = stem(leading_name(newer.content) or "") if newer.layer == "user" else ""
    shared = (said & before) - _PERSONS - {name}
    if not _CHANGES.isdisjoint(new.bag):
        who, whom = speaks_of(newer.content), speaks_of(older.content)
        is_of_another = who != whom and who is not None and whom is not None
        if is_of_another or not _PLANS.isdisjoint(new.bag):
            return False
        related = related_to(before).items()
        alike = {word for word in shared if not word.isdigit()}
        alike |= {word for word, others in related if others & said - _CHANGES}
        if len(alike) >= SHARED_BY_CHANGE * min(len(said), len(before)):
            return True
        is_of_one = name in before
        if who != whom and not is_of_one:
            return False
        moved = {word for word, others in related if others & said}
        least = min(len(said), len(before)) if who or is_of_one else len(before)
        return len(alike | moved) >= SHARED_BY_CHANGE * least
    if new.terms[0] != old.terms[0]:
        return False
    said, before = (words - _PERSONS - {name} for words in (said, before))
    is_alike = len(shared) >= SHARED_BY_FRAME * len(said | before)
    return is_alike and len(shared) < min(len(said), len(before))


def tells_change(update: Update) -> bool:
    """Whether the newer one says itself that something has changed."""
    return not _CHANGES.isdisjoint(words_of(update.newer.content).bag)


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
