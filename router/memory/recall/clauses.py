"""Reads what the first clause of a statement is about: its subject, its verb and what follows.

``frames.py`` reads values of a few forms. Most statements have other forms ("Branches are deleted
after the merge"), and that they share words with another one does not make them about one matter.
``are_two_matters`` finds what sets two statements apart, whatever words they share:

* **Two things.** The subject of the later one has a word that the earlier one neither has nor has a
  related word for, or the subjects share no word and the same is true of the earlier one's: "the
  north gate" and "the south gate", "my bank" and "my bank card". Units and words of measure ("day",
  "price") make no other thing: "deploys" and "deploy days".
* **Two things said of one.** The verbs differ, or the prepositions behind one verb ("tests run with
  pytest", "tests run in parallel"). Two values of one kind, such as two days, are of one matter all
  the same ("deploys happen on Mondays", "deploy day is Wednesday").

"I" and "we" name no thing. So a later statement of these is about another matter if it has no word
for the subject of the earlier one, and two of these are compared by their verbs.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from router.memory.query.dates import MONTHS, WEEKDAYS
from router.memory.texts.related_words import related_to
from router.memory.texts.words import words_of
from router.text import STOPWORDS, stem, word_set

_KEPT: Final = 4_096
_CHARACTERS: Final = 200
_MAX_SUBJECT_WORDS: Final = 8
_WORD: Final = re.compile(r"[^\W_](?:[\w'./@-]*\w)?|[:;,.!?=]")
_TITLE: Final = re.compile(r"\b(Mr|Mrs|Ms|Dr|Prof|St)\.(?= )")
_DAYS: Final = frozenset(map(stem, {*WEEKDAYS, *MONTHS} - {"may"}))
"""Days and months; "may" is mostly another word."""
MEASURES: Final = _DAYS | frozenset(
    map(
        stem,
        word_set(
            """
            dose second minute hour day week month year time date morning evening night today price
            cost pay fee charge amount number euro dollar cent percent size length level rate limit
            count total duration period age name kind people person thing place way part may
            min sec max minimum maximum kg km mb gb ms
            """
        ),
    )
)
"""Units, times and words of measure. That two statements share one does not make them about the
same matter: logs are kept, and deploys are made, on some number of days."""
_BE: Final = word_set("is are was were am be been being = :")
_HAVE: Final = word_set("has have had")
_OPENS: Final = re.compile(
    r"(?:since|as of|starting|from) (?:[\w .]{1,30}?,? (?=(?:my|our|the|I|we)\b)"
    rf"|(?:(?:last|this|next) \w+|\d{{4}}|{'|'.join((*WEEKDAYS, *MONTHS))}),? (?=\w))"
    r"|(?:from now on|now),? ",
    re.IGNORECASE,
)
"""Words that a statement may begin with and that only say since when it is true."""
_AUXILIARIES: Final = word_set(
    "will would can could may might must should shall do does did don't doesn't didn't can't won't "
    "isn't aren't wasn't weren't cannot"
)
BESIDE_VERBS: Final = word_set(
    "not never no longer now still already also always usually only just currently be been "
    "really actually again often"
)
_IRREGULAR: Final = word_set(
    "took went rose fell got left bought sold gave quit became made began ran came lost chose "
    "written built kept led paid sent run held set born done shown read given taken "
    "hidden drawn driven known grown split found put cut frozen broken chosen"
)
_TAIL: Final = re.compile(
    r",? (?:because|since|as of|after (?!\d)|due to|thanks to"
    r"|as (?:the|we|it|our|of)\b|from \S+(?: \S+)? on\b"
    r"|these days|instead|any ?more)|(?<=\w), (?=\D)|; ",
    re.IGNORECASE,
)
"""Where the reason, or the time from which a value is true, begins behind it."""
_REASON: Final = re.compile(r" (?:because|since) (?:[a-z]+ ){2}", re.IGNORECASE)
"""Where a reason begins that is a clause of its own. Its words are of another matter."""
_CHANGES_SOMETHING: Final = frozenset(
    map(stem, word_set("moved changed switched migrated renamed"))
)
"""Verbs whose object is what a statement is about: "We moved the analytics to another server"."""
_PAST_FORM: Final = re.compile(r"[a-z]{2,}[a-df-z]ed")
SPEAKER: Final = word_set("i we i'm we're i've we've user")
"""Words for those who speak."""
OPENING: Final = word_set("the a an our my your his her their this these that those please")
"""Words that a subject or an object begins with."""
PREPOSITIONS: Final = word_set(
    "at in on under behind from for to with by during until till after before between through into "
    "about out over off without"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """The stems of a subject, empty for "I" and "we"; the stem of the verb, "be" for a form of it;
    the preposition behind the verb, or empty; and the stems of what else follows."""

    subject: frozenset[str]
    verb: str
    preposition: str
    following: frozenset[str]


def is_helper(word: str) -> bool:
    """Whether a word in lower case is a form of "be" or "have", or an auxiliary."""
    return word in _BE or word in _HAVE or word in _AUXILIARIES


def without_opening(text: str) -> str:
    """A statement without words such as "Since October" before it."""
    opening = _OPENS.match(text)
    return text if opening is None else text[opening.end() :]


@lru_cache(_KEPT)
def without_reason(text: str) -> str:
    """A statement without the reason, or the time since when it is true, that follows its value."""
    tail = _TAIL.search(text)
    return text if tail is None else text[: tail.start()]


def clause_of(text: str) -> Clause | None:
    """The first clause of a text; None if no verb is found in it."""
    return _clause_of(text[:_CHARACTERS])


@lru_cache(_KEPT)
def _clause_of(text: str) -> Clause | None:
    written = _WORD.findall(_TITLE.sub(r"\1", without_opening(text.replace("\u2019", "'"))))
    words = [word.lower() for word in written]
    place = _place_of_verb(words, written)
    if place is None:
        return None
    verb, rest = _verb(words, place)
    subject = _terms(words[:place]) - SPEAKER
    if not subject and verb in _CHANGES_SOMETHING and rest < len(words) and words[rest] in OPENING:
        end = next((n for n in range(rest, len(words)) if words[n] in PREPOSITIONS), len(words))
        subject = _terms(words[rest:end])
    preposition = words[rest] if rest < len(words) and words[rest] in PREPOSITIONS else ""
    return Clause(subject, verb, preposition, _terms(words[rest:]))


def _place_of_verb(words: list[str], written: list[str]) -> int | None:
    """The first word that may be a verb: a form of "be" or "have", an auxiliary, a word that ends
    in "s" behind one that does not ("the backup runs"), or stands behind one that does ("deploys
    happen"), or a form of the past."""
    if not words:
        return None
    if words[0] in SPEAKER and words[0] != "user":
        contains_verb = "'" in words[0]
        return next(
            (n for n, word in enumerate(words) if n + contains_verb and word not in BESIDE_VERBS),
            None,
        )
    if (
        len(words[0]) >= len("moved") and words[0].endswith("ed") and words[0][-3:] != "eed"
    ):  # "Switched to Emacs"
        return 0
    first = 1 + (words[0] in OPENING)
    for n in range(first, min(len(words), _MAX_SUBJECT_WORDS)):
        word, following = words[n], words[n + 1] if n + 1 < len(words) else ""
        if word in _BE | _HAVE | _AUXILIARIES | _IRREGULAR:
            return n
        if word in ",;.!?":
            return None
        if word in PREPOSITIONS or not word.isalpha() or not written[n].islower():
            continue
        is_followed_by_verb = (
            following in _BE | _HAVE | _AUXILIARIES or _PAST_FORM.fullmatch(following) is not None
        )
        was_plural = words[n - 1].endswith("s") and not words[n - 1].endswith(("'s", "ss"))
        ends_in_s = word.endswith("s") and not word.endswith("ss")
        if (word.endswith("ed") and len(word) > len("red")) or (
            ends_in_s != was_plural and not is_followed_by_verb
        ):
            return n
    return None


def _verb(words: list[str], place: int) -> tuple[str, int]:
    """The stem of the main verb, and the place of what follows it."""
    rest = place + 1
    while rest < len(words) and words[rest] in BESIDE_VERBS:
        rest += 1
    word = words[place]
    is_helper = word in _BE | _HAVE | _AUXILIARIES | SPEAKER
    following = words[rest] if rest < len(words) else ""
    is_participle = following.endswith("ed") or following in _IRREGULAR
    if is_helper and (is_participle or (word in _AUXILIARIES and following)):
        return stem(following), rest + 1
    if word in _BE or word in SPEAKER:
        return "be", rest
    return "have" if word in _HAVE else stem(word), rest


def _terms(words: list[str]) -> frozenset[str]:
    return frozenset(
        stem(word.removesuffix("'s"))
        for word in words
        if word[0].isalnum() and word not in STOPWORDS and word not in BESIDE_VERBS
    )


def are_two_matters(
    newer: str, older: str, *, is_change: bool, persons: frozenset[str] = frozenset()
) -> bool:
    """Whether two statements are clearly about two matters; see the module's text. ``is_change``
    says that the newer one tells of a change, so its verb says nothing. ``persons`` are words that
    tell nothing of the thing."""
    new, old = clause_of(newer), clause_of(older)
    if new is None or old is None:
        return False
    if _numbers_differ(new.subject, old.subject):
        return True
    said = words_of(_REASON.split(newer, maxsplit=1)[0]).bag.keys()
    if "new" in new.subject:  # "the new website" may be of another kind, but does the same
        is_change = False
    elif _names_more(new.subject - persons, words_of(older).bag.keys()):
        return True
    if not new.subject and old.subject:
        return all(_names_more({word}, said) for word in old.subject - persons - MEASURES)
    if new.subject and not old.subject:
        return False
    if new.subject.isdisjoint(old.subject) and _names_more(
        old.subject - persons, words_of(newer).bag.keys()
    ):
        return True
    if new.verb == old.verb:
        return new.verb != "be" and new.preposition != old.preposition
    is_said_otherwise = not new.subject and not _names_more({old.verb}, said)
    return not is_change and not is_said_otherwise and not _give_one_kind(new, old)


def name_two_things(one: str, other: str) -> bool:
    """Whether the subjects of two statements each have a word, or a number, that the other one's
    has not: "oven 1" and "oven 2", "the oven in Ulm" and "the oven in Bern"."""
    ours, theirs = clause_of(one), clause_of(other)
    if ours is None or theirs is None or not ours.subject or not theirs.subject:
        return False
    return bool(ours.subject - theirs.subject and theirs.subject - ours.subject)


def _numbers_differ(one: Set[str], other: Set[str]) -> bool:
    """Whether two subjects have different numbers: "barrel 2" and "barrel 7"."""
    ours, theirs = ({word for word in words if word[0].isdigit()} for words in (one, other))
    return bool(ours and theirs) and ours != theirs


def _names_more(subject: Set[str], others: Set[str]) -> bool:
    """Whether a subject names a thing that the other statement does not."""
    related = related_to(subject)
    return any(
        word not in others
        and word not in MEASURES
        and word != "new"
        and related.get(word, frozenset()).isdisjoint(others)
        for word in subject
    )


def common_measures(newer: str, older: str) -> frozenset[str]:
    """The words of measure by which two statements may be known to be about one matter: those of
    both subjects ("the ticket price"), and the units of two values of one kind."""
    new, old = clause_of(newer), clause_of(older)
    if new is None or old is None:
        return frozenset()
    units = new.following & old.following & MEASURES
    is_of_one_kind = new.subject and old.subject and _give_one_kind(new, old)
    return (new.subject & old.subject) | (units if is_of_one_kind else frozenset())


def names_no_subject(text: str) -> bool:
    """Whether a statement begins with its verb, or is one of "I" or "we"."""
    clause = clause_of(text)
    return clause is not None and not clause.subject


def shared_verb(newer: str, older: str, *, are_of_one_person: bool = False) -> frozenset[str]:
    """The stem of the verb that two statements of "I" or "we" share, or of one other person, which
    says little: "I play the piano", "I play chess". Empty if there is none."""
    new, old = clause_of(newer), clause_of(older)
    if new is None or old is None or new.verb != old.verb:
        return frozenset()
    if (new.subject or old.subject) and not are_of_one_person:
        return frozenset()
    return frozenset({new.verb})


def _give_one_kind(new: Clause, old: Clause) -> bool:
    """Whether two clauses give values of one kind: days, or numbers, unless their units differ."""
    if new.following == old.following:
        return True
    if not _DAYS.isdisjoint(new.following) and not _DAYS.isdisjoint(old.following):
        return True
    if not all(any(word[0].isdigit() for word in each.following) for each in (new, old)):
        return False
    units, others = new.following & MEASURES, old.following & MEASURES
    return not units or not others or not units.isdisjoint(others)
