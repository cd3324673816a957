"""Has a later memory replaced an earlier one about the same matter?

People save what is true now, and leave in place what was true before: "Our database is Postgres
14", and later "We moved to MySQL 8". If the attribute ``superseded_by`` of a memory names another
one, that has replaced it. Otherwise a later statement replaces an earlier one in these six cases,
tried in this order (``replaces``). Both may be in different layers of lasting knowledge, because
people save one matter in ``semantic`` today and in ``project`` later, and in different scopes if
one of these contains the other. Memories in two layers are seldom about one matter, so a change
then needs ``SHARED_BY_FRAME``, unless it names what was in use ("switched from Jenkins"); and what
is only likely to be replaced must be in the same layer.

* **Another value.** Both give a value of the same attribute of the same subject, and the values
  differ (``frames.py``). If two such statements have different subjects or matters, neither
  replaces the other.
* **Letting go.** The later one says that somebody let go of something ("sold", "gave up", "broke up
  with"), and the earlier one says that the same person has it; or that somebody left something, and
  the earlier one says that they work, live or are a member there. The words of that thing must be
  at least ``SHARED_BY_LETTING_GO`` of the words of the earlier one. If the two share only some of
  them ("black coffee" and "coffee with milk"), nothing is replaced.
* **Role.** The later one says that somebody else has the role now, or is the new one, or has it,
  and names who had it ("Ada retired, Cem is our treasurer" after "Ada is our treasurer"). Roles
  that several people have at a time, such as friends and customers, do not count. "We switched our
  flour supplier to Bongu" says as much of from whom the flour comes.
* **In use again.** The earlier one says that a thing is closed or broken, and the later one that it
  is open again, has been repaired, and so on.
* **Change.** The later one speaks of a change ("moved", "instead") of the same person, and not of a
  plan, and either the two are the same up to a preposition, with another value of the same kind
  behind it ("I train on Thursdays now"), or they share at least ``SHARED_BY_CHANGE`` of the words
  of the shorter one. Related words count; numbers, words of change, and words that only qualify
  another thing ("peanut butter") do not. If the only sign of a change is "now", "since",
  or that a word of the earlier one's subject is called new ("the new website"), they must share
  ``SHARED_BY_FRAME``. In addition both must begin with the same matter or contain related words, or
  the later one must name what was replaced ("from Perl"). If the word of change is itself the
  related word ("I moved to Hamburg" after "I live in Berlin"), the share is of the words of the
  earlier one, unless both are about one person.
* **Same form.** Both begin with the same word and share at least ``SHARED_BY_FRAME`` of all their
  words, and each has a word of its own, such as another number.

A person whom both name ("the user", "my wife", or a name that they begin with) does not count as a
shared word. If they begin with two different names, nothing is replaced, unless the later one names
the other person, too. This matters: of 2,541 statements about the people of LoCoMo, nearly all of
which are true at the same time, 434 were found to be replaced when names counted as words and every
"new" as a change; with these rules it is 37.

The last two cases do not apply if the two are clearly about two matters (``clauses.py``), except
that the later one names what was replaced by its name, nor if the change is not one of what the
earlier one says (``changes.py``). A missed update shows both with their dates, and a wrong one puts
a wrong answer first; so what is doubtful is no update. Of 65 pairs that are both true though one
tells of a change, 25 were taken for replacements before, and 2 are now; of 60 updates, 43 were
found before, and 53 are now.

What replaces one thing and what replaces the same thing later are of one matter, too, so the later
one has replaced both (``updates_among``, ``replaced_by``).

What states a second fact beside the one that changed (``facts.py``) is replaced only in part. The
later one comes first, unless the question is about the other fact, but the earlier one must not be
marked.

Events, conversations and tasks are never replaced, because what happened stays true.

If none of the six cases applies, the later one may still be the answer: "From now on people must
order for 18 euro at least" after "Minimum order is 12 euro". The more words two statements share,
the likelier that is (``likelihood_of_replacement``). This only decides which of them a recall puts
first.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from router.memory.model import USER_LAYER, LayerQuery, MemoryItem, aware
from router.memory.query.past import (
    asks_for_past,
    asks_for_previous,
    is_in_past_tense,
    names_only,
    stems_after_before,
)
from router.memory.recall.cases import name_two_cases
from router.memory.recall.changes import (
    called_new,
    changes_another,
    changes_supplier,
    gives_another_value_now,
    is_back_in_use,
    names_replaced,
    names_use,
    names_value_replaced,
    only_qualifying,
)
from router.memory.recall.clauses import (
    MEASURES,
    are_two_matters,
    common_measures,
    names_no_subject,
    shared_verb,
    without_reason,
)
from router.memory.recall.confidence import words_and_negation
from router.memory.recall.facts import kept_words, subjects_of
from router.memory.recall.frames import KIN, SEVERAL, contradict, leading_name, speaks_of
from router.memory.stores.replacements import SUPERSEDED_AT, SUPERSEDED_BY
from router.memory.texts.chunking import CHUNK_CHARACTERS
from router.memory.texts.related_words import related_to
from router.memory.texts.words import words_of
from router.text import stem, stems, tokens, word_set

LASTING_LAYERS: Final = frozenset(
    {"semantic", "project", "user", "procedural", "planning", "graph", "governance"}
)
"""Layers of knowledge that is valid until it is replaced; the others hold events and tasks."""
SHARED_BY_CHANGE: Final = 0.3
SHARED_BY_FRAME: Final = 0.6
SHARED_BY_LETTING_GO: Final = 0.25
"""Shares of words, in [0, 1], that the module's text explains."""
LIKELY_BY_SHARED: Final = 4.0
"""Log-odds of a replacement that is not sure, for two memories with all their words in common. This
and the next were fitted to the questions of twelve people (``benchmarks/memory_finding.py``)."""
LIKELY_BY_CHANGE: Final = 25.0
"""The same, added if the later one speaks of a change."""
MAX_WORDS: Final = 60
"""Texts with more words are documents, and are not compared."""

_WEAK_CHANGE_WORDS: Final = word_set("now since")
"""Weak signs of a change: what is so now may have been so before."""
_CHANGE_WORDS: Final = _WEAK_CHANGE_WORDS | word_set(
    """
    moved changed switched replaced replaces replace migrated instead anymore
    rewritten rewrote ported renamed upgraded gone followed successor bought quit stopped promoted
    raised lowered deprecated extended shortened postponed rescheduled relocated succeeded rose fell
    increased decreased reduced dropped
    """
)
_CHANGES: Final = frozenset(map(stem, _CHANGE_WORDS))
_SWITCHES: Final = word_set("moved switched replaced migrated ported rewritten rewrote")
_IN_USE: Final = re.compile(
    r"\w+ (?:(?:is|are) (?:hosted|written|stored|kept|built|deployed)|us(?:e|es)|runs?|lies?) "
)
_NO_LONGER: Final = re.compile(r"\bno longer\b|(?:\bnot|n't) [^.;]*\bany more\b", re.IGNORECASE)
"""Replaced by "anymore", which is a word of change; "longer" alone is none."""
_THING: Final = (
    r"((?: (?!(?:and|but|for|in|to|at|on|of|from|with|when|now|last|because|since|after)\b)"
    r"[\w'-]+)+)"
)
_LET_GO: Final = re.compile(
    r"\b(?:sold|got rid of|traded(?: in)?|gave up(?: on)?|gave away|quit|stopped(?= \w+ing\b)"
    rf"|cancell?ed(?=[\w' ]* (?:subscription|membership|contract)\b)){_THING}",
    re.IGNORECASE,
)
_LEFT: Final = re.compile(
    r"\b(?:left(?: (?:my|the|his|her|their) (?:job|post|place|position) (?:at|with|in))?"
    r"|(?:resigned|retired) from|(?:dropped|moved) out of"
    rf"|was (?:fired|laid off|dismissed) (?:by|from)){_THING}",
    re.IGNORECASE,
)
"""Lets go of what somebody belongs to (``_BELONGS``); "left" has other meanings, too."""
_BELONGS: Final = re.compile(
    r"\b(?:am|is|works?|lives?|stud(?:y|ies)|teach(?:es)?|volunteers?|plays?|sings?|trains?|belongs?)"
    r" (?:[\w'-]+ ){0,3}?(?:at|for|in|to|with|of) (.*)",
    re.IGNORECASE,
)
_PARTED: Final = re.compile(
    r"\b(?:broke up with|split up with|separated from|divorced(?: from)?) (\w+)"
    r"|\b(\w+) and I (?:\w+ )?(?:split up|broke up|broken up|separated|divorced)\b"
)
_DENIED: Final = re.compile(r"(?:\b(?:not|never|almost|nearly)|n't)(?: \w+)? $", re.IGNORECASE)
_PARTNERS: Final = word_set("wife husband partner girlfriend boyfriend")
_SMALL_WORD: Final = re.compile(r"\b[a-z][\w-]*")
_CLAUSE: Final = re.compile(
    r"(?:(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bMrs)[.,;!?]|,? (?:and|but|so)\b) "
)
_WHOSE: Final = r"(?P<whose>(?i:our|my|the|his|her|their|your)) "
_NAMED: Final = r"(?P<new>new )?(?P<role>\w[\w' -]*?)(?: (?:since|from|after) .*)?"
_ROLE: Final = f"{_WHOSE}{_NAMED}"
_BARE_ROLE: Final = f"(?:{_WHOSE}|(?=[a-z])){_NAMED}"
_HOLDER: Final = (
    r"(?:(?:my|our|his|her|their) [a-z]+ )?(?P<holder>[A-Z][\w.'\u2019-]*"
    r"(?: (?:(?:de|del|della|den|der|di|da|do|la|le|ten|ter|van|von|zu|bin|al) ){0,2}"
    r"[A-Z][\w.'\u2019-]*){0,3})"
)
"""A name, with a title and with small words in it: "Dr. Lieke van der Wit"."""
_CHOSEN: Final = "(?:elected|appointed|chosen|made)(?: as)?"
_IS: Final = r"(?:is|became|has been)(?: now)?"
_ROLES: Final = (
    re.compile(rf"{_HOLDER} {_IS} {_BARE_ROLE}(?: now)?\.?"),
    re.compile(rf"{_BARE_ROLE} {_IS} {_HOLDER}\b.*"),
    re.compile(rf"{_HOLDER} (?:took over|replaced|followed|succeeded)\b.* as {_BARE_ROLE}\.?"),
    re.compile(rf"{_HOLDER} (?P<role>[a-z]+s (?:the|our) [a-z].*?)(?P<whose>)(?P<new>)\.?"),
    re.compile(rf"{_HOLDER} (?:was|is|has been|got)(?: now| just)? {_CHOSEN} {_BARE_ROLE}\.?"),
    re.compile(rf"(?:We|They|I)(?: have)? {_CHOSEN} {_HOLDER}(?: as)? {_BARE_ROLE}\.?"),
)
"""Clauses that say who has a role: "Ada is now our treasurer", "My boss is Ana", "Ada is head
baker", "Ada chairs the club", "Ada was elected treasurer", "We made Ada the treasurer"."""
_CHOICES: Final = (4, 5)
"""Those of them by which somebody gets it."""
_DOER: Final = re.compile(r"(?<=\w{3})[eo]r$")
_IS_MINE: Final = re.compile(r"[A-Z]\w* is my (\w+)\.?")
_TITLES: Final = word_set("dr mr ms mrs prof")
_OURS: Final = word_set("my our the of")
_SHARED_ROLES: Final = SEVERAL | word_set(
    "customer client supplier member employee developer intern student pupil patient tenant"
)
"""Roles that several people have at a time."""
_GENERAL: Final = frozenset(map(stem, word_set("use used run need get make")))
"""Words that do not tell which matter a text is about."""
_PERSONS: Final = frozenset(map(stem, KIN)) | {"user"}
"""Words for persons. That two memories share one does not make them about the same matter."""
_PLANS: Final = frozenset(
    map(stem, word_set("might could would want plan consider maybe perhaps hope wish if"))
)
"""Words of plans: what is only planned has replaced nothing yet."""


@dataclass(frozen=True, slots=True)
class Update:
    """Two items of which the newer one has, or may have, replaced the older one."""

    older: MemoryItem
    newer: MemoryItem


def updates_among(
    items: Iterable[MemoryItem], is_relevant: Callable[[MemoryItem], bool] = lambda _: True
) -> list[Update]:
    """For every item that another one has replaced, the pair with the item that it is marked with,
    else with its latest replacement. What replaces the same item later has replaced that, too: who
    lives in Leipzig, "moved to Hamburg" and later "moved to Oslo" has left Hamburg. Matters that no
    relevant item is of are not looked at."""
    lasting = [item for item in items if item.layer in LASTING_LAYERS]
    lasting.sort(key=lambda item: item.created, reverse=True)
    relevant = [is_relevant(item) for item in lasting]
    found: dict[int, Update] = {}
    for place, older in enumerate(lasting):
        is_marked = SUPERSEDED_BY in older.attributes
        marked = [one for one in lasting if _marks(older, one)] if is_marked else []
        later = lasting[:place]
        bearing = later if relevant[place] else itertools.compress(later, relevant)
        replacing = [one for one in bearing if replaces(one, older)]
        if replacing and not relevant[place]:
            replacing = [one for one in later if replaces(one, older)]
        newest = next(iter([*marked, *replacing]), None)
        if newest is not None:
            found[id(older)] = Update(older, newest)
        for earlier in [*marked, *replacing[1:]] if replacing else ():
            if _is_of_its_matter(replacing[0], earlier):
                found.setdefault(id(earlier), Update(earlier, replacing[0]))
    return sorted(found.values(), key=lambda update: update.older.created)


def update_of(one: MemoryItem, other: MemoryItem) -> Update | None:
    """The two items as an update, if the later one may have replaced the other. None if it cannot
    have: their layers or entities differ, no scope of them contains the other, they were created at
    the same time, or items of their layer are never replaced."""
    if _are_about_two_entities(one, other) or one.layer != other.layer:
        return None
    if not _are_of_one_owner(one, other) or one.created == other.created:
        return None
    return Update(*sorted((one, other), key=lambda item: item.created))


def replaced_by(newer: MemoryItem, items: Sequence[MemoryItem]) -> list[MemoryItem]:
    """Of some items those that ``newer`` has replaced, and those that had replaced one of these.
    What also states something else is left out (``leaves_a_fact``)."""
    replaced = [item for item in items if replaces(newer, item)]
    found = replaced + [
        item
        for item in items
        if item not in replaced
        and _is_of_its_matter(newer, item)
        and any(replaces(item, older) for older in replaced)
    ]
    return [item for item in found if not leaves_a_fact(newer, item)]


def leaves_a_fact(newer: MemoryItem, older: MemoryItem) -> bool:
    """Whether ``older`` also states something that stays true if ``newer`` holds (``facts.py``), so
    that it must not be marked as replaced, unless that has been done."""
    return not _marks(older, newer) and bool(kept_words(_compared(newer), _compared(older)))


def _is_of_its_matter(newer: MemoryItem, earlier: MemoryItem) -> bool:
    """Whether ``newer`` was saved later than what had replaced the same item before, and may be
    about the matter of that."""
    texts = _compared(newer), _compared(earlier)
    return earlier.created < newer.created and not _are_two_matters(
        *texts, is_renewed=_renews(newer, earlier)
    )


def replaces(newer: MemoryItem, older: MemoryItem) -> bool:
    """Whether ``newer`` has replaced ``older``; see the module's text."""
    if newer.content == older.content or not _are_of_one_owner(newer, older):
        return False
    if _marks(older, newer):
        return True
    if newer.created <= older.created:
        return False
    if _are_about_two_entities(newer, older):
        return False
    if _takes_over(_compared(newer), _compared(older)):
        return True
    if is_back_in_use(_compared(newer), _compared(older)):
        return _PLANS.isdisjoint(stems(_compared(newer)))
    contradicts = contradict(newer.content, older.content)
    if contradicts is not None:
        return contradicts
    new, old = words_of(_compared(newer)), words_of(_compared(older))
    if not new.terms or not old.terms or max(len(new.terms), len(old.terms)) > MAX_WORDS:
        return False
    name, other = _leading_names(_compared(newer), _compared(older))
    if name and other and name != other and name not in _CHANGES and other not in new.bag:
        return False  # they are about two people
    lets_go = _lets_go(_compared(newer), _compared(older), name)
    if lets_go is not None:
        return lets_go
    if changes_supplier(_compared(newer), _compared(older)):
        return _PLANS.isdisjoint(new.bag)
    is_renewed = _renews(newer, older)
    if _are_two_matters(_compared(newer), _compared(older), is_renewed=is_renewed):
        return False
    if _changes_in(_compared(newer)) and gives_another_value_now(
        _compared(newer), _compared(older)
    ):
        return True
    if _changes_in(_compared(newer)) or is_renewed:
        return _replaces_by_change(newer, older, name)
    if new.terms[0] != old.terms[0]:
        return False  # checked first because it is quick, and decides most pairs
    new_terms, old_terms = (
        {*words_of(without_reason(_compared(one))).terms} - _PERSONS - {name}
        for one in (newer, older)
    )
    shared = len(new_terms & old_terms)
    least = SHARED_BY_FRAME * len(new_terms | old_terms)
    return least <= shared < min(len(new_terms), len(old_terms))


def _takes_over(newer: str, older: str) -> bool:
    """Whether ``newer`` says that somebody has a role that ``older`` says another one has: has it
    now, or as the new one, or beside the name of the other ("Ana retired, Ben is our cook")."""
    return any(
        role.whose == former.whose
        and not role.is_bare
        and (role.name == former.name if former.is_bare else _is_one_role(role, former))
        and role.holder.isdisjoint(former.holder)
        and (role.is_new or not (former.holder | _WEAK_CHANGE_WORDS).isdisjoint(tokens(newer)))
        and _PLANS.isdisjoint(stems(newer))
        for role in _roles_in(newer)
        for former in _roles_in(older)
    )


class _Role(NamedTuple):
    """Whose role it is, empty for "our" and the like; the stems of its words; the words of the name
    of who has it; whether it is called new; and whether it may be no role, because it has no
    article ("Ada is vegetarian"), or is told by a verb."""

    whose: str
    name: frozenset[str]
    holder: frozenset[str]
    is_new: bool
    is_bare: bool


def _is_one_role(one: _Role, other: _Role) -> bool:
    return one.name <= other.name or other.name <= one.name


@lru_cache(4_096)
def _roles_in(text: str) -> tuple[_Role, ...]:
    """The roles that a text says somebody has, if there is one such person at a time."""
    return tuple(
        _Role(
            "" if (match["whose"] or "our").lower() in _OURS else match["whose"].lower(),
            frozenset(_DOER.sub("", stem(word)) for word in {*tokens(match["role"])} - _OURS),
            frozenset(tokens(_SMALL_WORD.sub("", match["holder"]))) - _TITLES,
            bool(match["new"]) or number in _CHOICES,
            number in (0, 3) and not match["whose"],
        )
        for clause in _CLAUSE.split(text)
        for number, pattern in enumerate(_ROLES)
        if (match := pattern.fullmatch(clause)) and match["role"].split()[-1] not in _SHARED_ROLES
    )


def _marks(older: MemoryItem, newer: MemoryItem) -> bool:
    """Whether ``older`` is marked as superseded by ``newer``."""
    return older.scope == newer.scope and older.attributes.get(SUPERSEDED_BY) == newer.id


def _are_of_one_owner(one: MemoryItem, other: MemoryItem) -> bool:
    """Whether two items are lasting knowledge, and one of their scopes contains the other: what is
    saved for a project and what a user has saved in it may be about one matter."""
    are_lasting = one.layer in LASTING_LAYERS and other.layer in LASTING_LAYERS
    return are_lasting and (one.scope.sees(other.scope) or other.scope.sees(one.scope))


def _are_about_two_entities(one: MemoryItem, other: MemoryItem) -> bool:
    """Whether the attributes ``entity`` of two items name different entities."""
    entity, other_entity = one.attributes.get("entity"), other.attributes.get("entity")
    return entity is not None and other_entity is not None and entity != other_entity


def _leading_names(one: str, other: str) -> tuple[str, str]:
    """The stems of the names that two texts begin with, empty without one. A word that the other
    text has in lower case is no name: "Climbing gym: ..." and "Switched climbing gym"."""
    first, second = leading_name(one), leading_name(other)
    return (
        "" if first is None or first in _small_words(other) else stem(first),
        "" if second is None or second in _small_words(one) else stem(second),
    )


@lru_cache(4_096)
def _small_words(text: str) -> frozenset[str]:
    """The words of a text that begin in lower case."""
    return frozenset(_SMALL_WORD.findall(text))


def _is_switch_of_use(newer: str, older: str) -> bool:
    """Whether the older text says what is in use ("Billing uses Stripe"), and the newer one tells
    of a switch ("Billing switched to Adyen"). Then the name that both begin with is their matter,
    and counts as a shared word."""
    return bool(_IN_USE.match(older)) and not _SWITCHES.isdisjoint(_changes_in(newer))


def _compared(item: MemoryItem) -> str:
    """The part of an item that is compared: its beginning, because the words of texts of this
    length are cached. A recall compares every pair, and to split the words of forty items of the
    greatest length again for each pair took seconds."""
    return item.content[:CHUNK_CHARACTERS]


def likelihood_of_replacement(update: Update) -> float:
    """Log-odds, for a pair of which ``replaces`` is not sure, that the newer item has replaced the
    older one; 0 if nothing speaks for it, or if their subjects or matters differ."""
    newer, older = _compared(update.newer), _compared(update.older)
    if contradict(newer, older) is False or _are_of_two_people(speaks_of(newer), speaks_of(older)):
        return 0.0
    is_renewed = _renews(update.newer, update.older)
    if _are_two_matters(newer, older, is_renewed=is_renewed):
        return 0.0
    name, other = _leading_names(newer, older)
    if _lets_go(newer, older, name) is False:
        return 0.0
    ignored = _PERSONS | _CHANGES | {name, other}
    ignored |= only_qualifying(newer, older) | only_qualifying(older, newer)
    ignored |= shared_verb(newer, older, are_of_one_person=bool(name) and name == other)
    new_terms, old_terms = ({*words_of(text).terms} - ignored for text in (newer, older))
    changes = _changes_in(newer) or _let_go(newer)
    share = len(new_terms & old_terms) / max(1, len(new_terms | old_terms))
    return share * (LIKELY_BY_SHARED + LIKELY_BY_CHANGE * bool(changes))


def _are_two_matters(newer: str, older: str, *, is_renewed: bool) -> bool:
    """Whether two statements are clearly about two matters (``clauses.py``, ``changes.py``), and
    the newer one does not name what it replaced, or about two cases of one (``cases.py``)."""
    if (_changes_in(newer) or is_renewed) and changes_another(newer, older):
        return True
    if name_two_cases(
        newer,
        older,
        is_one_negated=_is_negated(newer),
        is_other_negated=_is_negated(older),
        is_change=bool(_changes_in(newer)),
    ):
        return True
    is_change = is_renewed or not _WEAK_CHANGE_WORDS.issuperset(_changes_in(newer))
    return not names_value_replaced(newer, older) and are_two_matters(
        newer, older, is_change=is_change, persons=_PERSONS
    )


@lru_cache(4_096)
def _is_negated(text: str) -> bool:
    return words_and_negation(without_reason(text))[1]


def _are_of_two_people(one: str | None, other: str | None) -> bool:
    return one != other and one is not None and other is not None


def _replaces_by_change(newer: MemoryItem, older: MemoryItem, name: str) -> bool:
    """Whether the change that ``newer`` speaks of is one of the matter of ``older``. ``name`` is
    the stem of the name that ``newer`` begins with, or empty."""
    text = _compared(newer)
    new, old = words_of(text), words_of(_compared(older))
    new_terms, old_terms = {*new.terms}, {*old.terms}
    new_person, old_person = speaks_of(newer.content), speaks_of(older.content)
    if new_person is None and newer.layer == USER_LAYER and names_no_subject(text):
        new_person = "I"  # "Started my new job at Bosch"
    if old_person is None and new_person == "I" and newer.layer == USER_LAYER:
        old_person = leading_name(older.content) or new_person
    if _are_of_two_people(new_person, old_person) or not _PLANS.isdisjoint(new.bag):
        return False
    kinds = only_qualifying(text, _compared(older)) | only_qualifying(_compared(older), text)
    ignored = kinds | MEASURES - common_measures(text, _compared(older))
    related = related_to(old_terms - ignored).items()
    linked = {word for word, others in related if others & new_terms - _CHANGES - ignored}
    shared = (new_terms & old_terms) - _PERSONS - _CHANGES - _GENERAL - ignored
    leading = _leading_names(text, _compared(older))
    if newer.layer == USER_LAYER or not _is_switch_of_use(text, _compared(older)):
        shared -= {*leading}
    alike = linked | {word for word in shared if not word.isdigit()}
    are_named = names_replaced(text, _compared(older))
    is_of_one_matter = (
        linked or old.terms[0] in new_terms or new.terms[0] in old.terms[:2] or are_named
    ) or names_use(text, _compared(older))
    strong_changes = _changes_in(text) - _WEAK_CHANGE_WORDS
    is_of_one = bool(leading[0]) and leading[0] == leading[1]
    verb = frozenset[str]()
    if not strong_changes:
        verb = shared_verb(text, _compared(older), are_of_one_person=is_of_one)
    alike -= verb
    same_layer = newer.layer == older.layer
    is_sure = same_layer or (are_named and _is_switch_of_use(text, _compared(older)))
    least = SHARED_BY_CHANGE if strong_changes and is_sure else SHARED_BY_FRAME
    shorter = min(_count(new_terms), _count(old_terms))
    if is_of_one_matter and len(alike) >= least * shorter:
        return True
    if new_person != old_person and name not in old_terms:
        return False
    if not same_layer and new_person is None:
        return False
    # "I moved" after "I live": the word of change is itself the related word.
    linked_by_change = {w for w, others in related if others & new_terms - verb - kinds} - verb
    head = _count(words_of(without_reason(_compared(older))).terms)  # "I live in Ulm, third floor"
    words = min(shorter, head) if new_person or name in old_terms else _count(old_terms)
    return bool(linked_by_change) and len(alike | linked_by_change) >= SHARED_BY_CHANGE * words


def _count(terms: Collection[str]) -> int:
    """How many words there are beside numbers."""
    return sum(1 for term in terms if not term.isdigit())


def _lets_go(newer: str, older: str, name: str) -> bool | None:
    """Whether ``newer`` says that somebody let go of what ``older`` says that they have; False if
    the thing is only partly the same, None if ``newer`` says nothing of the kind. ``name`` is the
    stem of the name that ``newer`` begins with."""
    left = ((thing, False) for thing in _left(newer) if thing <= _belongs_to(older))
    is_mine = _IS_MINE.fullmatch(older)  # "Mats is my boyfriend"
    for thing, is_person in (*_let_go(newer), *left):
        old_terms = {*words_of(older).terms}
        old_person = speaks_of(older) if is_mine is None else is_mine[1]
        is_theirs = old_person == "I" or (
            old_person in _PARTNERS if is_person else old_person is None
        )
        if not is_theirs or (speaks_of(newer) != "I" and name not in old_terms):
            continue
        if thing <= old_terms and len(thing) >= SHARED_BY_LETTING_GO * len(old_terms):
            return True
        if thing & old_terms and not thing <= old_terms:
            return False
    return None


@lru_cache(4_096)
def _let_go(text: str) -> tuple[tuple[frozenset[str], bool], ...]:
    """The words of each thing or person that a text says somebody let go of, and whether it is a
    person."""
    things = ((thing, False) for thing in _things(_LET_GO, text))
    return (*things, *((person, True) for person in _things(_PARTED, text)))


@lru_cache(4_096)
def _left(text: str) -> tuple[frozenset[str], ...]:
    """The words of each thing that a text says somebody left."""
    return tuple(_things(_LEFT, text))


def _belongs_to(text: str) -> set[str]:
    """The stems of what a text says that somebody belongs to: "I work at Equinor"."""
    match = _BELONGS.search(text)
    return {*stems(match[1])} if match else set()


def _things(pattern: re.Pattern[str], text: str) -> Iterator[frozenset[str]]:
    """The words of each thing that a pattern finds, unless the text denies it or only plans it."""
    for match in pattern.finditer(text) if _PLANS.isdisjoint(stems(text)) else ():
        words = {*words_of(next(filter(None, match.groups()))).terms} - {"old", "own"}
        if words and not _DENIED.search(text[: match.start()]):
            yield frozenset(words)


def tells_change(update: Update) -> bool:
    """Whether the newer item itself speaks of a change."""
    text = _compared(update.newer)
    return bool(_changes_in(text) or _let_go(text) or _renews(update.newer, update.older))


def _renews(newer: MemoryItem, older: MemoryItem) -> bool:
    """Whether ``newer`` calls something new that ``older`` is about: "The new website" after "The
    website", "a new job" after "I work"."""
    if not called_new(_compared(newer)):
        return False  # checked first because it is quick
    about = {*words_of(_compared(older)).terms[:2]}
    about -= only_qualifying(_compared(older), _compared(newer))
    return bool(called_new(_compared(newer)) & about.union(*related_to(about).values()))


@lru_cache(4_096)
def _changes_in(text: str) -> frozenset[str]:
    """The words of change in a text."""
    return _CHANGE_WORDS.intersection(tokens(_NO_LONGER.sub("anymore", text)))


def asks_for_history(query: LayerQuery) -> bool:
    """Whether a query asks for what was valid in the past, and not for what is valid now."""
    past = query.period is not None and query.period.end <= query.now
    return past or asks_for_past(query.text)


def valid_item(update: Update, query: LayerQuery) -> MemoryItem:
    """The one of the two items that was valid at the time that the query asks about. A query in the
    past tense that names something of the older one alone asks about that: "Did I ever live in
    Bergen?". So does one about a fact that the newer one leaves true."""
    if query.period is not None and query.period.end <= query.now:
        return update.newer if replaced_at(update) < query.period.end else update.older
    asks_for_older = (
        _names_older(update, query)
        or asks_for_history(query)
        or _asks_for_what_is_left(update, query)
    )
    return update.older if asks_for_older else update.newer


def valid_items(updates: Sequence[Update], query: LayerQuery) -> list[tuple[MemoryItem, Update]]:
    """For each update the item that was valid at the time that the query asks about. Of a matter
    that changed more than once, "our previous database" is the one before the present one, and
    what we used "before MySQL" the one before that. The earlier ones then count as replaced by
    it."""
    asks_for_last = query.period is None and asks_for_previous(query.text)
    named = frozenset() if query.period else stems_after_before(query.text)
    replaced = {update.older.content for update in updates}
    last = {update.newer.content: update.older for update in updates}  # the oldest come first
    pairs: list[tuple[MemoryItem, Update]] = []
    for update in updates:
        valid = valid_item(update, query)
        newer = update.newer
        if named and named <= words_of(newer.content).bag.keys():
            olders = (each.older for each in updates if each.newer is newer)
            between = [older for older in olders if replaces(older, update.older)]
            valid = between[-1] if between else update.older
        elif asks_for_last and not _names_older(update, query):
            valid = newer if newer.content in replaced else last[newer.content]
        if valid not in (update.older, newer):
            update = Update(update.older, valid)
        pairs.append((valid, update))
    return pairs


def _names_older(update: Update, query: LayerQuery) -> bool:
    older, newer = update.older.content, update.newer.content
    return is_in_past_tense(query.text) and names_only(query.text, older, newer)


def _asks_for_what_is_left(update: Update, query: LayerQuery) -> bool:
    """Whether a query has a word of a fact that the newer item leaves true, or a related one, and
    none of what the two say of the fact that changed."""
    newer, older = _compared(update.newer), _compared(update.older)
    if _marks(update.older, update.newer):
        return False
    kept = kept_words(newer, older)
    asked = frozenset(stems(query.text))
    asked = asked.union(*related_to(asked).values())
    said = {*words_of(newer).terms, *words_of(older).terms} - kept - subjects_of(older)
    return not kept.isdisjoint(asked) and said.isdisjoint(asked)


def replaced_at(update: Update) -> datetime:
    """When the older item was replaced: the time it is marked with, else when the newer one was
    created."""
    marked = update.older.attributes.get(SUPERSEDED_AT)
    if isinstance(marked, str):
        with suppress(ValueError):
            return aware(datetime.fromisoformat(marked))
    return update.newer.created
