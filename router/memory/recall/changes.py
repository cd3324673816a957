"""Reads what a statement about a change is of: what it names as replaced, what it says was changed,
and what it calls new.

That two statements share a word does not make a change of the one a change of the other: "peanut
butter" is no "peanut allergy", and that an oven was moved does not say how often it is cleaned.
``changes_another`` finds changes that are not of what an earlier statement says:

* the later one only adds something ("too"), or names as replaced what the earlier one does not
  name, or a day other than that of the earlier one;
* it says that a thing was changed that the earlier one does not name ("the vegetarian menu"), or
  that a thing was moved of which the earlier one gives no place;
* it is of a side of its subject of which the earlier one gives no value: a place, a name or an
  amount, as the new value is ("the team owns the ledger", "the team moved to the second floor");
* its subject is something that the earlier one only speaks of ("we sell rye bread", "rye bread is
  now sliced");
* the earlier one denies something ("I can't eat gluten"), or says how somebody is or what they have
  ("I am allergic to nuts"), and the later one says that they do or use something else.

A word that only says which kind of a thing is meant counts for nothing if the other statement does
not name that thing (``only_qualifying``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from router.memory.query.dates import WEEKDAYS
from router.memory.recall.clauses import (
    BESIDE_VERBS,
    PREPOSITIONS,
    Clause,
    clause_of,
    name_two_things,
    without_reason,
)
from router.memory.recall.confidence import words_and_negation
from router.memory.texts.related_words import related_to
from router.memory.texts.words import qualified_in, words_of
from router.text import STOPWORDS, stem, tokens, word_set

_KEPT: Final = 4_096
_NOUNS: Final = (
    r"((?: (?!(?:and|but|for|in|to|at|on|of|from|with|by|as|than|when|now|last|is|are|was|were|has"
    r"|have|because|since|after|into|instead|every)\b)[\w'/-]+(?:\.\w+)*)+)"
)
"""What is called something, up to a function word. Its last word says what it is."""
_NEW: Final = re.compile(rf"\bnew{_NOUNS}", re.IGNORECASE)
_LEFT: Final = re.compile(
    r"\b(?:moved?|switched|changed|migrated|ported|over|away|rewritten|rewrote|upgraded) from"
    rf"{_NOUNS}|\bfrom{_NOUNS} (?:in)?to\b",
    re.IGNORECASE,
)
_REPLACED: Final = re.compile(
    rf"\b(?:replac(?:e[ds]?|ing)|dropped|instead of|followed|succeeded){_NOUNS}|{_LEFT.pattern}",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_](?:[\w'./-]*\w)?")
_USED_AS: Final = re.compile(rf"\bas (?:my|our){_NOUNS}", re.IGNORECASE)
_CHANGED: Final = re.compile(
    r"^(?:[\w'.]+ ){0,4}?(?:moved|changed|switched|bought|renamed|replaced|raised|lowered|reduced)"
    rf"(?! (?:to|from|in|into|on|at|up|down|off|away|out|back|over|by|with)\b){_NOUNS}",
    re.IGNORECASE,
)
_CHANGES: Final = frozenset(
    map(
        stem,
        word_set(
            "moved changed switched migrated renamed upgraded relocated raised lowered rose fell "
            "dropped increased decreased reduced extended shortened"
        ),
    )
)
_MOVED: Final = frozenset(map(stem, word_set("moved relocated")))
_PLACES: Final = word_set("in on at under behind beside")
_SAYS_MORE: Final = re.compile(
    r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)[.:;,!] +"
    r"(?:\w+ )?(?:I|we|it|is|are|am|has|have|now|\w+s)\b"
)
"""Where a further clause begins, by its first word or its verb."""
_ADDS: Final = word_set("too also another additionally")
_DAYS: Final = frozenset(map(stem, WEEKDAYS))
_SUPPLIER: Final = re.compile(
    r"\b(?:switched|changed|moved) (?:my|our|the) (\w+) \w+[eo]r to (?=[A-Z])"
)
_SUPPLIED: Final = re.compile(r"\b(?:from|by|with) [A-Z]")

_OUT_OF_USE: Final = re.compile(
    r"\b(?:is|are|has been|have been)(?: (?:now|still|again|currently))*"
    r" (?:closed|shut|broken|down|off|offline|blocked|defective|faulty|damaged|stuck|unavailable"
    r"|out of (?:order|service|use)|not working|(?:under|being|in) repair(?:ed)?)"
    r"(?=[.,;!]|$| (?:now|again|since|because|until|after|due|at the moment)\b)",
    re.IGNORECASE,
)
_BACK_IN_USE: Final = re.compile(
    r"\b(?:again|repaired|fixed|mended|restored|reopened)\b|\bnow (?:working|open|fine|available)\b"
    r"|\bback (?:up|on|online|in (?:order|service|use|operation))\b",
    re.IGNORECASE,
)


class Thing(NamedTuple):
    """The stem of the word that says what a thing is, and whether that is a name."""

    head: str
    is_name: bool


def replaced_in(text: str) -> frozenset[Thing]:
    """What a text names as replaced: "from Jenkins", "instead of gas"."""
    return _things(_REPLACED, text)


@lru_cache(_KEPT)
def called_new(text: str) -> frozenset[str]:
    """What a text calls new: of "a new peanut butter" the butter."""
    return frozenset(thing.head for thing in _things(_NEW, text))


@lru_cache(_KEPT)
def _things(pattern: re.Pattern[str], text: str) -> frozenset[Thing]:
    named = (next(filter(None, match.groups())).split() for match in pattern.finditer(text))
    words = ([word for word in some if word.lower() not in STOPWORDS] for some in named)
    return frozenset(Thing(_stem(some[-1]), _is_name(some[-1])) for some in words if some)


def names_replaced(newer: str, older: str) -> bool:
    """Whether ``newer`` names what it replaced, and ``older`` contains that."""
    return any(thing.head in words_of(older).bag for thing in replaced_in(newer))


def names_use(newer: str, older: str) -> bool:
    """Whether ``newer`` says what something is used as, and ``older`` contains that: "as my
    browser"."""
    return any(thing.head in words_of(older).bag for thing in _things(_USED_AS, newer))


def names_value_replaced(newer: str, older: str) -> bool:
    """Whether ``newer`` names something by its name that it replaced, and ``older`` gives that as a
    value, or is about it and nothing else. A common word tells as much only where something else
    was chosen ("from wine to beer"), and ``older`` is no "I am": who replaces wool by cotton is
    still allergic to wool."""
    old = clause_of(older)
    is_choice = old is not None and (bool(old.subject) or old.verb != "be")
    chosen = {thing.head for thing in _things(_LEFT, newer)} if is_choice else set()
    return any(
        (thing.is_name or thing.head in chosen)
        and (old is None or thing.head in old.following or old.subject == {thing.head})
        for thing in replaced_in(newer)
        if thing.head in words_of(older).bag
    )


def changes_another(newer: str, older: str) -> bool:
    """Whether a change that ``newer`` tells of is clearly not one of what ``older`` says; see the
    module's text."""
    replaced = replaced_in(newer)
    if not _ADDS.isdisjoint(tokens(newer)):
        return True
    # "We moved from MySQL to Redis" is of "our database", whatever that was before.
    is_of_kind = any(thing.is_name and _is_named(thing.head, older) for thing in replaced)
    if replaced and not is_of_kind and not names_replaced(newer, older):
        return True
    new, old = clause_of(newer), clause_of(older)
    if new is None or old is None or names_value_replaced(newer, older):
        return False
    if replaced:
        days, others = new.following & _DAYS, old.following & _DAYS
        if (days and others and days != others) or (not old.subject and old.verb == "be"):
            return True
    if _SAYS_MORE.search(newer):
        return False  # "I changed jobs, I am now a nurse": any of its clauses may be of it
    if words_and_negation(without_reason(older))[1] and new.verb != old.verb:
        return True
    is_state = old.verb in ("have", "be") and not old.preposition
    if is_state and not (new.subject or old.subject) and new.preposition == "to":
        return True  # "I have a lactose intolerance", "I switched to oat milk"
    things = _things(_CHANGED, newer)
    if things and not replaced:
        if not all(_is_named(thing.head, older) for thing in things):
            return True
        return new.verb in _MOVED and _PLACES.isdisjoint(tokens(older))
    if new.subject and old.subject:
        is_of_it = bool(replaced) or _gives_such_value(newer, new, older, old)
        return new.verb in _CHANGES and (name_two_things(newer, older) or not is_of_it)
    is_told_of = bool(new.subject) and not old.subject
    return is_told_of and new.verb not in ("be", "have") and not _is_named(new.verb, older)


def _is_named(word: str, older: str) -> bool:
    """Whether a text contains a word or a related one."""
    bag = words_of(older).bag
    return word in bag or any(other in bag for other in related_to((word,)).get(word, ()))


def _gives_such_value(newer: str, new: Clause, older: str, old: Clause) -> bool:
    """Whether two clauses give values of one kind: amounts of one unit, names, or places."""
    kind, before = _kind(newer, new), _kind(older, old)
    if old.preposition in _PLACES and (old.preposition, before) != ("at", "number"):
        return True
    if kind != before:
        return False
    if kind == "name" or old.preposition:
        return True
    if kind == "other":
        return old.verb == "be" and new.verb not in _MOVED
    return any(not word[0].isdigit() for word in new.following & old.following)


def _kind(text: str, clause: Clause) -> str:
    """What a clause gives: a number, a name, or anything else."""
    return _kind_of([word for word in _WORD.findall(text)[1:] if _stem(word) in clause.following])


def _kind_of(words: Sequence[str]) -> str:
    if any(any(map(str.isdigit, word)) for word in words):
        return "number"
    return "name" if any(map(_is_name, words)) else "other"


def _stem(word: str) -> str:
    return stem(word.lower().removesuffix("'s"))


def _is_name(word: str) -> bool:
    return word[0].isupper() or any(map(str.isdigit, word))


def only_qualifying(text: str, other: str) -> set[str]:
    """The stems of words of a text that only say which kind of a thing is meant, where the other
    text does not name that thing: of "peanut butter" the peanut, unless the other names butter."""
    bag = words_of(other).bag
    return {word for thing, word in _qualified(text) if thing not in bag}


@lru_cache(_KEPT)
def _qualified(text: str) -> frozenset[tuple[str, str]]:
    """The things of a text with the words that qualify them, without its verb. In front of a name
    stands what that is: "team Heron"."""
    clause = clause_of(text)
    verb = None if clause is None else clause.verb
    names = {_stem(word) for word in _WORD.findall(text)[1:] if _is_name(word)}
    return frozenset(
        (thing, word)
        for thing, word in qualified_in(text)
        if verb not in (thing, word) and thing not in BESIDE_VERBS | names
    )


def gives_another_value_now(newer: str, older: str) -> bool:
    """Whether two statements are the same up to their only preposition, and give values of one kind
    behind it: "I train on Tuesdays", "I train on Thursdays now"."""
    new, old = _parts(newer), _parts(older)
    if new is None or old is None or new.before != old.before:
        return False
    values, others = (frozenset(_stem(word) for word in part.value) for part in (new, old))
    return bool(values - others and others - values) and _kind_of(new.value) == _kind_of(old.value)


class _Parts(NamedTuple):
    """The stems up to the only preposition of a text, that included, and the words behind it."""

    before: tuple[str, ...]
    value: tuple[str, ...]


@lru_cache(_KEPT)
def _parts(text: str) -> _Parts | None:
    words = [word for word in _WORD.findall(text) if word.lower() not in BESIDE_VERBS]
    places = [place for place, word in enumerate(words) if word.lower() in PREPOSITIONS]
    if len(places) != 1 or not 0 < places[0] < len(words) - 1:
        return None
    end = places[0] + 1
    return _Parts(tuple(map(_stem, words[:end])), tuple(words[end:]))


def is_back_in_use(newer: str, older: str) -> bool:
    """Whether ``older`` says that something is closed or broken, and ``newer`` that the same thing
    is not so any more: "The sauna is closed", "The sauna is open again"."""
    if _OUT_OF_USE.search(older) is None or _BACK_IN_USE.search(newer) is None:
        return False
    new, old = clause_of(newer), clause_of(older)
    if new is None or old is None or not new.subject or new.subject != old.subject:
        return False
    return _OUT_OF_USE.search(newer) is None and not words_and_negation(without_reason(newer))[1]


def changes_supplier(newer: str, older: str) -> bool:
    """Whether ``newer`` says that somebody else supplies now what ``older`` says from whom it
    comes: "We switched our flour supplier to Bongu"."""
    supplied = _supplied_anew(newer)
    old = clause_of(older) if supplied else None
    return old is not None and supplied in old.subject and _SUPPLIED.search(older) is not None


@lru_cache(_KEPT)
def _supplied_anew(text: str) -> str:
    """The stem of what a text says is supplied by somebody else now; empty if nothing is."""
    found = _SUPPLIER.search(text)
    return "" if found is None else stem(found[1].lower())
