"""Of two memories about one matter, which one holds now?

People save what is true now and leave in place what was true before: "Our database is Postgres 14",
and later "We moved to MySQL 8". A memory that says by an attribute what has replaced it
(``superseded_by``) is believed. Otherwise a later statement is taken to replace an earlier one of
the same layer and scope

* if both give one attribute of one subject, and each another value (``frames.py``); where two such
  statements speak of two subjects or of two matters, nothing is replaced;
* if it says that somebody let go of ("sold", "gave up", "broke up with") what the other says that
  they have, of the same person, and what they let go of is at least ``SHARED_BY_LETTING_GO`` of its
  words. Where the two share a part of it alone, "coffee" and not "tea", nothing is replaced;
* if it speaks of a change ("moved", "instead"), of the same person, and not of a plan, and the two
  share at least ``SHARED_BY_CHANGE`` of the words of the shorter one. Related words count, numbers
  and words of change do not; "now" and "since" alone, and a word of the earlier one's subject that
  is called new ("the new website"), ask for ``SHARED_BY_FRAME``. They must also
  begin with the same matter, or hold related words, or the later one names what was replaced ("from
  Perl"). If the word of change is itself the related one ("I moved to Hamburg" after "I live in
  Berlin"), the words of the earlier one count, unless both are of one person; or
* if both begin with the same word and share at least ``SHARED_BY_FRAME`` of all their words, but
  each has something of its own, such as another number.

That both name one person, "the user", "my wife" or a name that they begin with, is no shared word,
and where they begin with two names, nothing is replaced, unless the later one names the other, too.
Of 2,541 statements about the people of LoCoMo, which are nearly all true side by side, 434 were
taken to be replaced while names were words, and any "new" was a change; 37 are now.

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
SHARED_BY_FRAME: Final = 0.6
SHARED_BY_LETTING_GO: Final = 0.25
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

_WEAK: Final = word_set("now since")
"""What is now so need not have been otherwise before."""
_CHANGE_WORDS: Final = _WEAK | word_set(
    """
    moved changed switched replaced replaces replace migrated instead anymore
    rewritten rewrote ported renamed upgraded gone followed successor bought quit stopped promoted
    raised lowered deprecated
    """
)
_CHANGES: Final = frozenset(map(stem, _CHANGE_WORDS))
_SWITCHES: Final = word_set("moved switched replaced migrated ported rewritten rewrote")
_IN_USE: Final = re.compile(
    r"\w+ (?:(?:is|are) (?:hosted|written|stored|kept|built|deployed)|us(?:e|es)|runs?|lies?) "
)
_NO_LONGER: Final = re.compile(r"\bno longer\b|(?:\bnot|n't) [^.;]*\bany more\b", re.IGNORECASE)
"""As sure a sign of a change as "anymore", though "longer" alone is none."""
_LET_GO: Final = re.compile(
    r"\b(?:sold|got rid of|traded(?: in)?|gave up(?: on)?|gave away|quit|stopped(?= \w+ing\b)"
    r"|cancell?ed(?=[\w' ]* (?:subscription|membership|contract)\b))"
    r"((?: (?!(?:and|but|for|in|to|at|on|of|from|with|when|now|last|because|since|after)\b)"
    r"[\w'-]+)+)",
    re.IGNORECASE,
)
_PARTED: Final = re.compile(
    r"\b(?:broke up with|split up with|separated from|divorced(?: from)?) (\w+)"
    r"|\b(\w+) and I (?:\w+ )?(?:split up|broke up|broken up|separated|divorced)\b"
)
_DENIED: Final = re.compile(r"(?:\b(?:not|never|almost|nearly)|n't)(?: \w+)? $", re.IGNORECASE)
_PARTNERS: Final = word_set("wife husband partner girlfriend boyfriend")
_SMALL_WORD: Final = re.compile(r"\b[a-z][\w-]*")
_NEW: Final = re.compile(r"\bnew (\w+(?: \w+)?)", re.IGNORECASE)
_GENERAL: Final = frozenset(map(stem, word_set("use used run need get make")))
"""Words that say nothing of a matter."""
_REPLACED: Final = re.compile(
    r"\b(?:from|replace[ds]?|instead of|followed|as my|as our) (?:the )?(\w+(?: \w+)?)",
    re.IGNORECASE,
)
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
    two layers or scopes, about two entities, of one time, or of a layer whose items are never
    replaced."""
    if _are_about_two_entities(one, other):
        return None
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
    if _are_about_two_entities(newer, older):
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
    is_gone = _lets_go(_compared(newer), _compared(older), name)
    if is_gone is not None:
        return is_gone
    if _changes_in(_compared(newer)) or _renews(newer, older):
        return _replaces_by_change(newer, older, name)
    if new.terms[0] != old.terms[0]:
        return False  # so most pairs are told apart before their words are compared
    said, before = (set(words.terms) - _PERSONS - {name} for words in (new, old))
    shared = len(said & before)
    return SHARED_BY_FRAME * len(said | before) <= shared < min(len(said), len(before))


def _are_about_two_entities(one: MemoryItem, other: MemoryItem) -> bool:
    its, others = one.attributes.get("entity"), other.attributes.get("entity")
    return its is not None and others is not None and its != others


def _leading_names(one: str, other: str) -> tuple[str, str]:
    """The stems of the names that two texts begin with, empty without one. What the other text
    has in small letters is no name: "Climbing gym: ..." and "Switched climbing gym"."""
    first, second = leading_name(one), leading_name(other)
    return (
        "" if first is None or first in _small_words(other) else stem(first),
        "" if second is None or second in _small_words(one) else stem(second),
    )


@lru_cache(4_096)
def _small_words(text: str) -> frozenset[str]:
    """The words of a text that are written in small letters."""
    return frozenset(_SMALL_WORD.findall(text))


def _is_of_use(newer: str, older: str) -> bool:
    """Whether one tells of a switch from what the other says is in use: "Billing uses Stripe", and
    "Billing switched to Adyen". Then the name that both begin with is what they are about."""
    return bool(_IN_USE.match(older)) and not _SWITCHES.isdisjoint(_changes_in(newer))


def _compared(item: MemoryItem) -> str:
    """What is compared of an item: its beginning, whose words are kept. Recalls compare every pair;
    forty items as long as they may be took seconds to split into words again and again."""
    return item.content[:CHUNK_CHARACTERS]


def likelihood_of_replacement(update: Update) -> float:
    """Log-odds that the newer one says what holds in place of the older, where that is not sure; 0
    where nothing speaks for it, or both are about two subjects or two matters."""
    newer, older = _compared(update.newer), _compared(update.older)
    if contradict(newer, older) is False or _are_of_two_people(speaks_of(newer), speaks_of(older)):
        return 0.0
    beside = _PERSONS | _CHANGES | {*_leading_names(newer, older)}
    said, before = ({*words_of(text).terms} - beside for text in (newer, older))
    changes = _changes_in(newer) or _let_go(newer)
    share = len(said & before) / max(1, len(said | before))
    return share * (LIKELY_BY_SHARED + LIKELY_BY_CHANGE * bool(changes))


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
    shared = (said & before) - _PERSONS - _CHANGES - _GENERAL
    if newer.layer == USER_LAYER or not _is_of_use(text, _compared(older)):
        shared -= {*_leading_names(text, _compared(older))}
    alike = linked | {word for word in shared if not word.isdigit()}
    is_of_one_matter = (
        linked
        or old.terms[0] in said
        or new.terms[0] in old.terms[:2]
        or not before.isdisjoint(stems(" ".join(_REPLACED.findall(text))))
    )
    is_sure = _changes_in(text) - _WEAK
    least = SHARED_BY_CHANGE if is_sure else SHARED_BY_FRAME
    if is_of_one_matter and len(alike) >= least * min(len(said), len(before)):
        return True
    if who != whom and name not in before:
        return False
    moved = {word for word, others in related if others & said}
    words = min(len(said), len(before)) if who or name in before else len(before)
    return bool(moved) and len(alike | moved) >= SHARED_BY_CHANGE * words


def _lets_go(newer: str, older: str, name: str) -> bool | None:
    """Whether one text says that somebody let go of what the other says that they have; None where
    it does not say so, or of something else. ``name`` is the stem of the name that it begins
    with."""
    for thing, is_person in _let_go(newer):
        before, whom = {*words_of(older).terms}, speaks_of(older)
        is_theirs = whom == "I" or (whom in _PARTNERS if is_person else whom is None)
        if not is_theirs or (speaks_of(newer) != "I" and name not in before):
            continue
        if thing <= before and len(thing) >= SHARED_BY_LETTING_GO * len(before):
            return True
        if thing & before and not thing <= before:
            return False
    return None


@lru_cache(4_096)
def _let_go(text: str) -> tuple[tuple[frozenset[str], bool], ...]:
    """The words of each thing or person that a text says was let go of, and whether of a person."""
    if not _PLANS.isdisjoint(stems(text)):
        return ()
    return tuple(
        (frozenset(words), way is _PARTED)
        for way in (_LET_GO, _PARTED)
        for match in way.finditer(text)
        if not _DENIED.search(text[: match.start()])
        and (words := {*words_of(match[1] or match[2]).terms} - {"old", "own"})
    )


def tells_change(update: Update) -> bool:
    """Whether the newer one says itself that something has changed."""
    text = _compared(update.newer)
    return bool(_changes_in(text) or _let_go(text) or _renews(update.newer, update.older))


def _renews(newer: MemoryItem, older: MemoryItem) -> bool:
    """Whether one calls new what the other is about: "The new website" after "The website", "a new
    job" after "I work". A new tent says nothing of who bought it."""
    called_new = {*stems(" ".join(_NEW.findall(_compared(newer))))}
    about = {*words_of(_compared(older)).terms[:2]}
    return bool(called_new & about.union(*related_to(about).values()))


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
