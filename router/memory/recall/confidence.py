"""How much of a remembered item to believe: five factors, one figure, one of five levels.

The factors, their weights and the levels are fixed, so that figures compare over time:

* relevance .35: calibrated probability that the item bears on the query;
* source quality .25: what the layer's spec says;
* recency .15: exp(-(age / 6.24 days)^1.62), a Weibull survival curve through .95 after one day,
  .3 after seven and about 0 after thirty;
* consistency .15: of the items found that say nearly the same, itself among them, the share that
  does not contradict it; 0 when the item is marked as obsolete or superseded;
* completeness .10: the share of type, tags, provenance and attributes that its writer gave.

They explain an item to a person, and gate nothing: a fresh, complete item from a good source scores
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
from router.memory.recall.frames import contradict
from router.memory.recall.updates import SUPERSEDED_BY
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
"""Share of their words, in [0, 1], that two items must have in common to speak of one matter."""
_LEAST_WORDS: Final = 3
"""Items of fewer words say too little to be compared."""
_COMPARED_CHARACTERS: Final = 1_000
"""Only so much of an item is compared, so that long ones cost no more."""
_NUMBER: Final = re.compile(r"\d+(?:[.:,/-]\d+)*")
_NEGATIONS: Final = word_set(
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
        return round(mean, 9)  # so that five times 0.9 reaches the level that begins there

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
    """Every pair that speaks of one matter and contradicts itself. Items that are marked as
    superseded contradict nothing."""
    said = [(item, _Statement.of(item.content)) for item in items if not _is_obsolete(item)]
    return [
        (one, other)
        for (one, its), (other, others) in combinations(said, 2)
        if its.shares_matter_with(others) and its.contradicts(others)
    ]


@dataclass(frozen=True, slots=True)
class _Statement:
    """What is compared of an item: its content words, its numbers, whether it denies."""

    text: str
    words: frozenset[str]
    numbers: frozenset[str]
    denies: bool

    @classmethod
    def of(cls, content: str) -> _Statement:
        text = content[:_COMPARED_CHARACTERS]
        words = tokens(text)
        return cls(
            text,
            frozenset(
                stem(word)
                for word in words
                if word not in STOPWORDS and word not in _NEGATIONS and not word.isdigit()
            ),
            frozenset(_NUMBER.findall(text)),
            # Two negations make an assertion.
            sum(1 for word in words if word in _NEGATIONS) % 2 == 1,
        )

    def shares_matter_with(self, other: _Statement) -> bool:
        if contradict(self.text, other.text):
            return True
        if min(len(self.words), len(other.words)) < _LEAST_WORDS:
            return False
        common = len(self.words & other.words)
        return common >= _SAME_MATTER * (len(self.words) + len(other.words) - common)

    def contradicts(self, other: _Statement) -> bool:
        """Of one matter: each gives another value (``frames.py``), one denies and the other
        asserts, or each has a number of its own."""
        told = contradict(self.text, other.text)
        if told is not None:
            return told
        if self.denies != other.denies:
            return True
        return bool(self.numbers - other.numbers) and bool(other.numbers - self.numbers)


def _agreement(statement: _Statement, others: Sequence[_Statement]) -> float:
    on_matter = [
        other for other in others if other is not statement and statement.shares_matter_with(other)
    ]
    agreeing = sum(1 for other in on_matter if not statement.contradicts(other))
    return (1 + agreeing) / (1 + len(on_matter))


def _is_obsolete(item: MemoryItem) -> bool:
    return item.attributes.get("obsolete") is True or SUPERSEDED_BY in item.attributes
