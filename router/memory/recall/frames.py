"""What a short statement says of what: "The shop opens at 7" gives the shop's opening time as 7.

Two statements contradict each other if they give one attribute of one subject two values. That is
read from the first sentence, if it has one of a few English forms whose attribute has one value at
a time: what something is called, where somebody lives, what a thing costs, whom it belongs to, and
so on. Of what may have many values at once ("Mia likes tea", "The team uses Jira") nothing is read.

"X is Y" has one value at a time if Y is

* a number, a time or a date, of the same unit;
* a place or a day behind "at", "in", "on", "under" or "behind", unless X is a person; or
* a name, unless X is of those of whom one may have several, such as brothers, or a person: "My boss
  is Ann Lee" says who that is, "My boss is French" does not; or
* anything, where X itself says that it is a value: a password, an address, a favourite colour.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from router.text import STOPWORDS, stem, word_set

_KEPT: Final = 4_096
_LONGEST: Final = 200
"""Characters of the longest sentence that is read."""
_SUBJECT_WORDS: Final = 8
_LABELLED_WORDS: Final = 2

_SENTENCE: Final = re.compile(r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)[.;!?](?=\s|$)|\n")
_WORD: Final = re.compile(r"[^\s,()\"\u201c\u201d]+")
_NUMBER: Final = re.compile(r"[#€$£~]?\d[\w.,:/+%€$£-]*")
_DAYS: Final = word_set(
    """
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
    fridays saturdays sundays january february march april may june july august september october
    november december today tomorrow noon midnight
    """
)
_ARTICLES: Final = word_set("the a an our")
_NOW: Final = word_set("now currently still already just only actually today's always usually")
_PREPOSITIONS: Final = word_set(
    "at in on under behind from for to with by during until till after before between if when since"
)
_PLACES: Final = word_set("at in on under behind")
_ONESELF: Final = word_set("i we")
_USER: Final = word_set("user")
_POINTING: Final = word_set(
    "he she they you it who this that these those there here today tomorrow yesterday"
)
"""What may be another one, or another day, each time that it is said."""
_SEVERAL: Final = word_set(
    """
    brother sister son daughter child kid friend colleague coworker cousin uncle aunt neighbour
    neighbor grandson granddaughter nephew niece twin teammate bus train tram ferry stack
    """
)
"""Of whom, and of what, there may be several: a second name or departure is another one."""
_SEVERAL_VALUES: Final = frozenset({"name", "leave at", "arrive at"})
KIN: Final = _SEVERAL | word_set(
    """
    mother father mum mom mama dad papa parents wife husband partner girlfriend boyfriend
    grandmother grandfather grandma grandpa boss flatmate roommate baby
    """
)
_VALUES: Final = word_set(
    """
    password passphrase passcode code pin number name nickname username login address email url
    colour color favourite favorite owner birthday timezone currency capital branch version port
    """
)
"""Words of a subject that say that it is a value itself, of any kind."""

_BE: Final = frozenset({"is", "are", "="})
"""And "am" behind "I". What was says nothing of what is."""
_PARTICIPLES: Final = {
    "called": "name",
    "named": "name",
    "owned": "owner",
    **{
        word: word
        for word in """
        located based hosted parked kept stored due scheduled set written born led run managed
        maintained limited
        """.split()
    },
}
"""What follows "is" and says which attribute."""
_VERBS: Final = {
    f"{verb}{ending} {preposition}": f"{'start' if verb == 'begin' else verb} {preposition}"
    for verb, prepositions in {
        "live": "in at",
        "reside": "in at",
        "work": "at for as",
        "open": "at",
        "close": "at",
        "start": "at on",
        "begin": "at on",
        "end": "at on",
        "leave": "at on from",
        "arrive": "at on",
        "come": "from",
        "run": "on",
        "listen": "on",
        "study": "at",
        "expire": "on in after",
    }.items()
    for preposition in prepositions.split()
    for ending in ("", "s")
} | {"works for": "work at", "work for": "work at", "studies at": "study at"}
_MEASURES: Final = {
    f"{verb}{ending}": verb for verb in ("cost", "weigh", "earn") for ending in ("", "s")
} | {"has": "have", "have": "have"}
"""Verbs whose object is one value if it is a number."""
_OWNERS: Final = {
    "owns": "owner by",
    "leads": "led by",
    "manages": "managed by",
    "maintains": "maintained by",
}
"""Verbs whose subject is the value, and whose object is what has it."""


_OF_VERBS: Final = frozenset({*_VERBS.values(), *_MEASURES.values()})
_SAID_OF_ONE: Final = frozenset(
    word
    for phrase in (*_VERBS, *_MEASURES, *_OWNERS, *_BE)
    if (word := phrase.split()[0]).endswith("s")
)
"""Verbs as they stand behind a name: "James lives"."""
_STATE: Final = "state"
"""What is said by another word than a value, as in "is now closed"; nothing contradicts it."""
_MY: Final = frozenset({"my"})


@dataclass(frozen=True, slots=True)
class Frame:
    """What a statement says of what. The attribute holds the unit too, and on which days."""

    subject: frozenset[str]
    attribute: tuple[str, ...]
    value: frozenset[str]


def contradict(one: str, other: str) -> bool | None:
    """Whether two statements give one attribute of one subject two values; False also where they
    clearly speak of two subjects, or of two matters. None if that cannot be told."""
    ours, theirs = frame_of(one), frame_of(other)
    if ours is None or theirs is None:
        return None
    if ours.subject != theirs.subject and not _is_one_thing(ours.subject, theirs.subject):
        return None if ours.subject <= theirs.subject or theirs.subject <= ours.subject else False
    if ours.attribute != theirs.attribute:
        return False if _are_two_matters(ours.attribute, theirs.attribute) else None
    if ours.attribute == (_STATE,):
        return None
    return bool(ours.value - theirs.value and theirs.value - ours.value)


def _is_one_thing(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether "my wifi password" is "the wifi password"; "my name" need not be "the name"."""
    return len(one & other) > 1 and one ^ other == _MY


def _are_two_matters(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two attributes have nothing to do with each other, as where one works and where one
    lives, or where the office is and that it is closed."""
    ours, theirs = one[0], other[0]
    if _STATE in (ours, theirs):
        stated = other if ours == _STATE else one
        return stated[0] == "is " or stated[0].endswith(" name") or len(stated) > 1
    return ours != theirs and {ours, theirs} <= _OF_VERBS


def frame_of(text: str) -> Frame | None:
    """What the first sentence of a text says, if it has one of the known forms."""
    return _frame_of(text[: _LONGEST + 1])


@lru_cache(_KEPT)
def _frame_of(text: str) -> Frame | None:
    end = _SENTENCE.search(text)
    sentence = text if end is None else text[: end.start()]
    return _read(sentence) if len(sentence) <= _LONGEST else None


def speaks_of(text: str) -> str | None:
    """The person whom a text is about by its first words: "I" for whoever says "I" or "we" and for
    "the user", or the relative ("sister") of whom it says "my" or "our"."""
    return _speaks_of(text[:_LONGEST])


@lru_cache(_KEPT)
def _speaks_of(text: str) -> str | None:
    first = [word.lower() for word in _WORD.findall(text.replace("\u2019", "'"))[:3]]
    who = first[1:2] if first[:1] == ["the"] else first[:1]
    if who and who[0].partition("'")[0] in (_USER if first[0] == "the" else _ONESELF | _USER):
        return "I"
    is_theirs = bool(first) and first[0] in ("my", "our")
    return next((word for word in first[1:] if is_theirs and word in KIN), None)


def leading_name(text: str) -> str | None:
    """The word that a text begins with, where it may be somebody's name, as in "Ada moved"."""
    word, following = (*_WORD.findall(text[:_LONGEST].replace("\u2019", "'"))[:2], "", "")[:2]
    word = word.partition("'")[0]
    is_name = word.istitle() and (
        not word.endswith("s")  # "Lives in Ghent" says of nobody by name
        or following in _SAID_OF_ONE
        or (following.endswith("ed") and len(following) > len("red"))
    )
    none = STOPWORDS | _PREPOSITIONS | KIN | _USER
    return word.lower() if is_name and word.lower() not in none else None


def _read(sentence: str) -> Frame | None:
    label, colon, named = sentence.partition(": ")
    is_given = any(map(str.isdigit, named)) and len(named.split()) <= _LABELLED_WORDS
    if colon and (is_given or word_set(label.lower()) & _VALUES):  # "Wifi password: hunter2"
        sentence = f"{label} is {named}"
    found = _WORD.findall(sentence.replace("\u2019", "'"))
    said = [bare for word in found if (bare := word.rstrip(".:!?"))]
    words = [word.lower() for word in said]
    for place, word in enumerate(words[1 : _SUBJECT_WORDS + 1], 1):
        rest = place + 1
        while rest < len(words) and words[rest] in _NOW:
            rest += 1
        following = words[rest] if rest < len(words) else ""
        subject, value = said[:place], said[rest:]
        is_said = word in _BE or (word == "am" and words[0] == "i")
        if following in _PARTICIPLES and (is_said or following == "born"):
            return _frame(subject, _PARTICIPLES[following], value[1:])
        if is_said:
            return _what_is(subject, value, several=word == "are")
        if f"{word} {following}" in _VERBS:
            return _frame(subject, _VERBS[f"{word} {following}"], value[1:])
        if word in _MEASURES:
            return _frame(subject, _MEASURES[word], value) if _is_number(following) else None
        if word in _OWNERS:
            others = {"a", "an", *_PREPOSITIONS}  # "owns a dog" may be said of many
            if following in others or _is_number(following) or words[0] in _POINTING:
                return None
            return _frame(value, _OWNERS[word], subject)
    return None


def _what_is(subject: list[str], value: list[str], *, several: bool) -> Frame | None:
    whose = {word.lower() for word in subject}
    is_person = _is_person(subject)
    place = value[0].lower() if value and value[0].lower() in _PLACES else ""
    value = [word for word in value[bool(place) :] if word.lower() not in _ARTICLES | _NOW]
    if not value or value[0].lower() in STOPWORDS:
        return None
    if _is_number(value[0].lower()):
        return _frame(subject, "is", value)
    is_name = value[0][0].isupper() or any(map(str.isdigit, value[0]))
    is_full_name = len(value) > 1 and all(word[0].isupper() for word in value[:2])
    is_role = subject[-1].lower() in KIN and is_full_name
    one_at_a_time = (
        not is_person
        if place
        else not _VALUES.isdisjoint(whose)
        or (is_name and not (several or whose & _SEVERAL) and (is_role or not is_person))
    )
    if one_at_a_time:
        return _frame(subject, f"is {place}{' name' * (is_name and bool(place))}", value)
    return None if place or is_name else _frame(subject, _STATE, value[:1])


def _frame(subject: list[str], attribute: str, value: list[str]) -> Frame | None:
    subject = [word for place, word in enumerate(subject) if not _is_new(subject[place:], place)]
    whose = {word.lower() for word in subject}
    if whose & _POINTING or (attribute in _SEVERAL_VALUES and whose & _SEVERAL):
        return None
    words = [word.lower() for word in value if word.lower() not in _ARTICLES | _NOW]
    if words and words[0] in _PREPOSITIONS and attribute in _PARTICIPLES.values():
        attribute, words = f"{attribute} {words[0]}", words[1:]
    parts = [attribute]
    if words and _is_number(words[0]):
        end = next((n for n, word in enumerate(words) if not _is_number(word)), len(words))
        parts += ["number" if _DAYS.isdisjoint(words[:end]) else "day", *words[end:]]
        words = words[:end]
    terms = _terms(words)
    return Frame(_terms(subject), tuple(parts), terms) if terms and _terms(subject) else None


def _is_new(words: list[str], place: int) -> bool:
    """Whether the first of these words of a subject only says that this is another one than before,
    as in "The new password", and "New" in "New York" does not."""
    begins = place == 0 and words[1:] and words[1].islower()
    return words[0] == "new" or (words[0] == "New" and bool(begins))


def _is_number(word: str) -> bool:
    return word in _DAYS or _NUMBER.fullmatch(word) is not None


def _is_person(subject: list[str]) -> bool:
    """Whether it is oneself, a relative, or a bare name."""
    words = [word.lower() for word in subject]
    is_bare_name = len(words) == 1 and subject[0][0].isupper()
    return words[0] in _ONESELF or words[-1] in KIN or is_bare_name


def _terms(words: list[str]) -> frozenset[str]:
    bare = (word.lower().removesuffix("'s").removesuffix(":00").strip("'€$£") for word in words)
    left_out = _ARTICLES | _NOW | {"of", "for", "in", "on", "at"}
    return frozenset(stem(word) for word in bare if word and word not in left_out)
