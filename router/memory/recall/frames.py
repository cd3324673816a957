"""Reads short statements as frames: a subject, an attribute and its value. "The shop opens at 7"
has the subject "shop", the attribute "open at" and the value "7".

Two statements contradict each other if they give different values of the same attribute of the same
subject. A frame is read from the first sentence of a text, if it has one of a few English forms
whose attribute has one value at a time: what something is called, where somebody lives, what a
thing costs, whom it belongs to, and so on. No frame is read from statements that may be true side
by side ("Mia likes tea", "The team uses Jira").

"X is Y" has one value at a time

* if Y is a number, a time or a date (values of different units do not contradict each other, except
  that hours may become minutes);
* if Y is a place or a day after "at", "in", "on", "under" or "behind", unless X is a person;
* if Y is a name, unless there may be several X, such as brothers, or X is a person. "My boss is Ann
  Lee" counts all the same, because a full name says who somebody is; "My boss is French" does not;
* for any Y, if X names a kind of value: a password, an address, a favourite colour.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from router.memory.recall.clauses import without_opening, without_reason
from router.text import STOPWORDS, stem, word_set

_CACHED_TEXTS: Final = 4_096
_MAX_SENTENCE_CHARACTERS: Final = 200
_MAX_SUBJECT_WORDS: Final = 8
_MAX_LABELLED_WORDS: Final = 2
"""Words of a value behind a label, as in "Opening hours: 9 to 17", if it contains a digit."""

SENTENCE_END: Final = re.compile(r"(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSt)[.;!?](?=\s|$)|\n")
_CHANGED_TO: Final = re.compile(
    r" (?:(?:is|are|was|were|has been|have been) )?(?:now )?(?:postponed|moved|rescheduled"
    r"|brought forward|pushed back|delayed|raised|rose|fell|lowered|increased|decreased|reduced"
    r"|extended|shortened|changed|went up|went down|up|down) to "
    r"(?=\W?\d|(?:mon|tues|wednes|thurs|fri|satur|sun)day\b)",
    re.IGNORECASE,
)
"""Words that give a new value: "is postponed to 11 December" says what "is on 11 December" says."""
_WORD: Final = re.compile(r"[^\s,()\"\u201c\u201d]+")
_NUMBER: Final = re.compile(r"[#€$£~]?\d[\w.,:/+%€$£-]*")
_DAYS: Final = word_set(
    """
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays
    fridays saturdays sundays january february march april may june july august september october
    november december today tomorrow noon midnight
    """
)
_DIMENSIONS: Final = {
    unit: dimension
    for dimension, units in {
        "time": "second seconds sec minute minutes min hour hours day days week weeks month months "
        "year years",
        "size": "kb mb gb tb",
    }.items()
    for unit in units.split()
}
"""Units that a value may change between: a timeout of 30 minutes, and later of 12 hours."""
_ARTICLES: Final = word_set("the a an our")
_NOW: Final = word_set("now currently still already just only actually today's always usually")
_PREPOSITIONS: Final = word_set(
    "at in on under behind from for to with by during until till after before between if when since"
)
_PLACES: Final = word_set("at in on under behind")
_SPEAKER: Final = word_set("i we")
_USER: Final = word_set("user")
_POINTING: Final = word_set(
    "he she they you it who this that these those there here today tomorrow yesterday"
)
"""Words that mean another person, thing or day each time they are used."""
SEVERAL: Final = word_set(
    """
    brother sister son daughter child kid friend colleague coworker cousin uncle aunt neighbour
    neighbor grandson granddaughter nephew niece twin teammate bus train tram ferry stack
    """
)
"""Persons and things of which there may be several. A second brother's name, or another departure
of a bus, does not contradict the first."""
_SEVERAL_VALUES: Final = frozenset({"name", "leave at", "arrive at"})
KIN: Final = SEVERAL | word_set(
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
"""Words for kinds of values. A subject with such a word has one value at a time, whatever it is."""

_BE: Final = frozenset({"is", "are", "="})
"""And "am" after "I". "Was" is left out: what was true does not contradict what is true."""
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
"""Words after "is" that name the attribute."""
VALUE_VERBS: Final = {
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
"""Verbs with the preposition behind which their value stands, and the attribute that they give."""
_MEASURES: Final = {
    f"{verb}{ending}": verb for verb in ("cost", "weigh", "earn") for ending in ("", "s")
} | {"has": "have", "have": "have"}
"""Verbs whose object is a value if it is a number."""
_OWNERS: Final = {
    "owns": "owner by",
    "leads": "led by",
    "manages": "managed by",
    "maintains": "maintained by",
}
"""Verbs whose subject is the value, and whose object is the subject of the frame: "Ada owns the
shop" gives the shop's owner."""
_OF_VERBS: Final = frozenset({*VALUE_VERBS.values(), *_MEASURES.values()})
_VERBS_AFTER_A_NAME: Final = frozenset(
    word
    for phrase in (*VALUE_VERBS, *_MEASURES, *_OWNERS, *_BE)
    if (word := phrase.split()[0]).endswith("s")
)
"""Verbs in the third person, by which a name that ends in "s" is known: "James lives"."""
_STATE: Final = "state"
"""The attribute of "X is Y" where Y is no value, as in "is now closed"; no state contradicts
another."""
_MY: Final = frozenset({"my"})


@dataclass(frozen=True, slots=True)
class Frame:
    """What a statement says. The attribute includes the unit, and the days that it is about."""

    subject: frozenset[str]
    attribute: tuple[str, ...]
    value: frozenset[str]


def contradict(one: str, other: str) -> bool | None:
    """Whether two statements give different values of the same attribute of the same subject. False
    also if they are clearly about different subjects or matters; None if that cannot be decided."""
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
    """Whether two subjects are the same but for "my": "my wifi password" is "the wifi password".
    With only one more word they may differ: "my name" and "the name"."""
    return len(one & other) > 1 and one ^ other == _MY


def _are_two_matters(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether two attributes have nothing to do with each other, such as where one works and where
    one lives, or where an office is and that it is closed."""
    ours, theirs = one[0], other[0]
    if _STATE in (ours, theirs):
        stated = other if ours == _STATE else one
        return stated[0] == "is " or stated[0].endswith(" name") or len(stated) > 1
    return ours != theirs and {ours, theirs} <= _OF_VERBS


def frame_of(text: str) -> Frame | None:
    """The frame of the first sentence of a text, if it has one of the known forms."""
    return _frame_of(text[: _MAX_SENTENCE_CHARACTERS + 1])


@lru_cache(_CACHED_TEXTS)
def _frame_of(text: str) -> Frame | None:
    end = SENTENCE_END.search(text)
    sentence = text if end is None else text[: end.start()]
    if len(sentence) > _MAX_SENTENCE_CHARACTERS:
        return None
    sentence = _CHANGED_TO.sub(" is ", without_opening(sentence))
    return _read(without_reason(sentence)) or _read(sentence)


def speaks_of(text: str) -> str | None:
    """The person that a text is about by its first words: "I" for "I", "we" and "the user", or the
    word for a relative after "my" or "our", such as "sister". None for any other."""
    return _speaks_of(text[:_MAX_SENTENCE_CHARACTERS])


@lru_cache(_CACHED_TEXTS)
def _speaks_of(text: str) -> str | None:
    first = [word.lower() for word in _WORD.findall(text.replace("\u2019", "'"))[:3]]
    who = first[1:2] if first[:1] == ["the"] else first[:1]
    if who and who[0].partition("'")[0] in (_USER if first[0] == "the" else _SPEAKER | _USER):
        return "I"
    is_theirs = bool(first) and first[0] in ("my", "our")
    return next((word for word in first[1:] if is_theirs and word in KIN), None)


def leading_name(text: str) -> str | None:
    """The first word of a text, in lower case, if it may be somebody's name, as in "Ada moved"."""
    words = _WORD.findall(text[:_MAX_SENTENCE_CHARACTERS].replace("\u2019", "'"))
    word, following = (*words[:2], "", "")[:2]
    word = word.partition("'")[0]
    is_name = word.istitle() and (
        not word.endswith("s")  # it may be a verb, as in "Lives in Ghent"
        or following in _VERBS_AFTER_A_NAME
        or (following.endswith("ed") and len(following) > len("red"))
    )
    none = STOPWORDS | _PREPOSITIONS | KIN | _USER
    return word.lower() if is_name and word.lower() not in none else None


def _read(sentence: str) -> Frame | None:
    label, colon, labelled = sentence.partition(": ")
    is_short_number = (
        any(map(str.isdigit, labelled)) and len(labelled.split()) <= _MAX_LABELLED_WORDS
    )
    if colon and (is_short_number or word_set(label.lower()) & _VALUES):  # "Wifi password: hunter2"
        sentence = f"{label} is {labelled}"
    found = _WORD.findall(sentence.replace("\u2019", "'"))
    written = [bare for word in found if (bare := word.rstrip(".:!?"))]
    words = [word.lower() for word in written]
    for place, word in enumerate(words[1 : _MAX_SUBJECT_WORDS + 1], 1):
        rest = place + 1
        while rest < len(words) and words[rest] in _NOW:
            rest += 1
        following = words[rest] if rest < len(words) else ""
        subject, value = written[:place], written[rest:]
        is_form_of_be = word in _BE or (word == "am" and words[0] == "i")
        if following in _PARTICIPLES and (is_form_of_be or following == "born"):
            return _frame(subject, _PARTICIPLES[following], value[1:])
        if is_form_of_be:
            return _what_is(subject, value, several=word == "are")
        if f"{word} {following}" in VALUE_VERBS:
            return _frame(subject, VALUE_VERBS[f"{word} {following}"], value[1:])
        if word in _MEASURES:
            return _frame(subject, _MEASURES[word], value) if _is_number(following) else None
        if word in _OWNERS:
            others = {"a", "an", *_PREPOSITIONS}  # "owns a dog" is true of many owners
            if following in others or _is_number(following) or words[0] in _POINTING:
                return None
            return _frame(value, _OWNERS[word], subject)
    return None


def _what_is(subject: list[str], value: list[str], *, several: bool) -> Frame | None:
    subject_words = {word.lower() for word in subject}
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
        else (not _VALUES.isdisjoint(subject_words) and not value[0].endswith("ed"))
        or (is_name and not (several or subject_words & SEVERAL) and (is_role or not is_person))
    )
    if one_at_a_time:
        return _frame(subject, f"is {place}{' name' * (is_name and bool(place))}", value)
    return None if place or is_name else _frame(subject, _STATE, value[:1])


def _frame(subject: list[str], attribute: str, value: list[str]) -> Frame | None:
    subject = [word for place, word in enumerate(subject) if not _is_new(subject[place:], place)]
    subject_words = {word.lower() for word in subject}
    if subject_words & _POINTING or (attribute in _SEVERAL_VALUES and subject_words & SEVERAL):
        return None
    words = [word.lower() for word in value if word.lower() not in _ARTICLES | _NOW]
    if words and words[0] in _PREPOSITIONS and attribute in _PARTICIPLES.values():
        attribute, words = f"{attribute} {words[0]}", words[1:]
    parts = [attribute]
    if words and _is_number(words[0]):
        end = next((n for n, word in enumerate(words) if not _is_number(word)), len(words))
        unit = words[end : end + 1]
        dimension = _DIMENSIONS.get("".join(unit))
        parts += ["number" if _DAYS.isdisjoint(words[:end]) else "day"]
        parts += [dimension, *words[end + 1 :]] if dimension else words[end:]
        words = words[: end + 1] if dimension else words[:end]
    terms = _terms(words)
    return Frame(_terms(subject), tuple(parts), terms) if terms and _terms(subject) else None


def _is_new(words: list[str], place: int) -> bool:
    """Whether the first of these words of a subject is the adjective "new", as in "The new
    password", and not part of a name, as in "New York". ``place`` is its place in the subject."""
    begins = place == 0 and words[1:] and words[1].islower()
    return words[0] == "new" or (words[0] == "New" and bool(begins))


def _is_number(word: str) -> bool:
    return word in _DAYS or _NUMBER.fullmatch(word) is not None


def _is_person(subject: list[str]) -> bool:
    """Whether a subject is the speaker, a relative, or a single name."""
    words = [word.lower() for word in subject]
    is_bare_name = len(words) == 1 and subject[0][0].isupper()
    return words[0] in _SPEAKER or words[-1] in KIN or is_bare_name


def _terms(words: list[str]) -> frozenset[str]:
    bare = (word.lower().removesuffix("'s").removesuffix(":00").strip("'€$£") for word in words)
    left_out = _ARTICLES | _NOW | {"of", "for", "in", "on", "at"}
    return frozenset(stem(word) for word in bare if word and word not in left_out)
