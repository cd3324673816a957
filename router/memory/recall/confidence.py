"""The confidence of a remembered item: five factors, their weighted mean, and one of five levels.

The factors, their weights and the levels are fixed, so that figures compare over time:

* relevance .35: calibrated probability that the item bears on the query;
* source quality .25: what the layer's spec says;
* recency .15: exp(-(age / 6.24 days)^1.62), a Weibull survival curve: .95 after one day, .3 after
  seven and about 0 after thirty;
* consistency .15: of the items found about the same matter, the item itself included, the share
  that does not contradict it; 0 if the item is marked as obsolete or superseded;
* completeness .10: the share of type, tags, provenance and attributes that its writer gave.

They explain an item to a person, and exclude none: a fresh, complete item from a good source scores
above 0.5 without any relevance. Whether there *is* an answer is decided by relevance alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import combinations
from types import MappingProxyType
from typing import Any, Final

from router.memory.model import MemoryItem
from router.memory.recall.cases import name_two_cases
from router.memory.recall.clauses import name_two_things
from router.memory.recall.frames import contradict
from router.memory.stores.replacements import SUPERSEDED_BY
from router.plain_json import PlainJson
from router.text import STOPWORDS, stem, tokens, word_set

FACTOR_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "relevance": 0.35,
        "source_quality": 0.25,
        "recency": 0.15,
        "consistency": 0.15,
        "completeness": 0.10,
    }
)
SECONDS_A_DAY: Final = 86_400.0
_RECENCY_SCALE_DAYS: Final = 6.24
_RECENCY_SHAPE: Final = 1.62

_SAME_MATTER: Final = 0.6
"""Share of their words, in [0, 1], that two items about the same matter have in common."""
_MIN_WORDS: Final = 3
"""Items with fewer words are not compared: they say too little."""
_COMPARED_CHARACTERS: Final = 1_000
"""The beginning of an item that is compared, so that long items cost no more."""
_NUMBER: Final = re.compile(r"\d+(?:[.:,/-]\d+)*")
NEGATIONS: Final = word_set(
    """
    no not never none nothing nobody neither nor without cannot can't don't doesn't didn't isn't
    aren't wasn't weren't won't wouldn't shouldn't couldn't hasn't haven't hadn't
    """
)


class Level(StrEnum):
    """An overall confidence in words."""

    VERY_HIGH = "very_high"
    """At least 0.9."""
    HIGH = "high"
    """At least 0.7."""
    MEDIUM = "medium"
    """At least 0.5."""
    LOW = "low"
    """At least 0.3."""
    VERY_LOW = "very_low"

    @classmethod
    def of(cls, overall: float) -> Level:
        """The level of a figure in [0, 1]."""
        floors = ((0.9, cls.VERY_HIGH), (0.7, cls.HIGH), (0.5, cls.MEDIUM), (0.3, cls.LOW))
        return next((level for floor, level in floors if overall >= floor), cls.VERY_LOW)


@dataclass(frozen=True, slots=True)
class ItemConfidence(PlainJson):
    """The five factors of one item, each in [0, 1]; see the module's text."""

    relevance: float
    source_quality: float
    recency: float
    consistency: float
    completeness: float

    @property
    def overall(self) -> float:
        """The weighted mean of the factors, in [0, 1]."""
        mean = math.fsum(weight * getattr(self, name) for name, weight in FACTOR_WEIGHTS.items())
        return round(mean, 9)  # five factors of 0.9 must reach the level that begins at 0.9

    @property
    def level(self) -> Level:
        """The overall figure in words."""
        return Level.of(self.overall)

    def to_dict(self) -> dict[str, Any]:
        """The factors, the overall figure and the level."""
        return PlainJson.to_dict(self) | {"overall": self.overall, "level": self.level.value}


def age_days(item: MemoryItem, now: datetime) -> float:
    """Days since the item was remembered; 0 for one from the future, such as an event to come."""
    return max(0.0, (now - item.created).total_seconds() / SECONDS_A_DAY)


def recency(days: float) -> float:
    """In [0, 1]; see the module's text."""
    return math.exp(-((days / _RECENCY_SCALE_DAYS) ** _RECENCY_SHAPE))


def completeness(item: MemoryItem) -> float:
    """In [0, 1]; see the module's text."""
    given = (item.type != "note", bool(item.tags), bool(item.provenance), bool(item.attributes))
    return sum(given) / len(given)


def consistencies(items: Sequence[MemoryItem], *, among: Sequence[MemoryItem]) -> list[float]:
    """For each item its consistency, in [0, 1], among what was found together with it."""
    statements = {id(item): _Statement.of(item.content) for item in (*items, *among)}
    others = [statements[id(item)] for item in among]
    return [
        0.0 if _is_obsolete(item) else _agreement(statements[id(item)], others) for item in items
    ]


def conflicts_among(items: Sequence[MemoryItem]) -> list[tuple[MemoryItem, MemoryItem]]:
    """Every pair of items that are about the same matter and contradict each other. Items that are
    marked as obsolete or superseded are left out."""
    valid = [(item, _Statement.of(item.content)) for item in items if not _is_obsolete(item)]
    return [
        (one, other)
        for (one, statement), (other, other_statement) in combinations(valid, 2)
        if statement.shares_matter_with(other_statement) and statement.contradicts(other_statement)
    ]


_OPPOSITES: Final = {
    stem(word): stem(other)
    for word, other in (
        pair.split()
        for pair in (
            "hates likes",
            "dislikes likes",
            "forbidden allowed",
            "prohibited allowed",
            "banned allowed",
            "private public",
            "disabled enabled",
            "optional required",
        )
    )
}
"""Words that deny others: whoever hates olives does not like them."""


@dataclass(frozen=True, slots=True)
class _Statement:
    """What is compared of an item: its content words, its numbers, and whether it is negated."""

    text: str
    words: frozenset[str]
    numbers: frozenset[str]
    is_negated: bool

    @classmethod
    def of(cls, content: str) -> _Statement:
        text = content[:_COMPARED_CHARACTERS]
        words = tokens(text)
        said = [
            stem(word)
            for word in words
            if word not in STOPWORDS and word not in NEGATIONS and not word.isdigit()
        ]
        denials = sum(word in NEGATIONS for word in words) + sum(w in _OPPOSITES for w in said)
        return cls(
            text,
            frozenset(_OPPOSITES.get(word, word) for word in said),
            frozenset(_NUMBER.findall(text)),
            denials % 2 == 1,  # two denials cancel each other
        )

    def shares_matter_with(self, other: _Statement) -> bool:
        if contradict(self.text, other.text):
            return True
        if name_two_things(self.text, other.text) or name_two_cases(
            self.text,
            other.text,
            is_one_negated=self.is_negated,
            is_other_negated=other.is_negated,
        ):
            return False
        if self.words == other.words and self.is_negated != other.is_negated:
            return bool(self.words)
        if min(len(self.words), len(other.words)) < _MIN_WORDS:
            return False
        common = len(self.words & other.words)
        return common >= _SAME_MATTER * (len(self.words) + len(other.words) - common)

    def contradicts(self, other: _Statement) -> bool:
        """For two statements about the same matter: whether they give different values
        (``frames.py``), one is negated and the other not, or each has a number that the other has
        not."""
        differ_in_value = contradict(self.text, other.text)
        if differ_in_value is not None:
            return differ_in_value
        if self.is_negated != other.is_negated:
            return True
        return bool(self.numbers - other.numbers) and bool(other.numbers - self.numbers)


def words_and_negation(text: str) -> tuple[frozenset[str], bool]:
    """The stems of a text's content words, and whether it is negated: "hates" is a negated
    "likes"."""
    statement = _Statement.of(text)
    return statement.words, statement.is_negated


def _agreement(statement: _Statement, others: Sequence[_Statement]) -> float:
    on_matter = [
        other for other in others if other is not statement and statement.shares_matter_with(other)
    ]
    agreeing = sum(1 for other in on_matter if not statement.contradicts(other))
    return (1 + agreeing) / (1 + len(on_matter))


def _is_obsolete(item: MemoryItem) -> bool:
    return item.attributes.get("obsolete") is True or SUPERSEDED_BY in item.attributes
