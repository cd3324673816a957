"""What happened lately, for the screens that show it. A sink of the router's events."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from router.events import CacheLookup, Event, Learned, Reloaded, Routed
from router.skills.changes import CatalogChange

KEPT: Final = 50
"""Events of each kind."""
LABELS: Final = 500
SPAN_SECONDS: Final = 60
"""The span of time that one point in the course of the answers stands for."""
SPANS: Final = 240
BY: Final = ("cache", "local", "llm")
"""Who may answer: a cache; retrieval or the examples, without an LLM; an LLM."""


@dataclass(frozen=True, slots=True)
class Change:
    """Another catalog has become effective: when, in seconds since the epoch, and how many seconds
    the work on it took."""

    at: float
    change: CatalogChange
    seconds: float


@dataclass(frozen=True, slots=True)
class Span:
    """The answers of one minute.

    Attributes:
        at: seconds since the epoch at its beginning.
        answers: how many by whom, see ``BY``.
    """

    at: float
    answers: Counter[str] = field(default_factory=Counter)


class Journal:
    """The latest events.

    Attributes:
        changes: of the skills, newest first.
        lookups: into the caches, newest first.
        labels: that were learnt, with the time of each, newest first.
        judged: ids of answers that a person has judged, newest first.
        spans: minutes in which anything was answered, oldest first.
    """

    def __init__(self) -> None:
        self.changes: deque[Change] = deque(maxlen=KEPT)
        self.lookups: deque[CacheLookup] = deque(maxlen=KEPT)
        self.labels: deque[tuple[float, Learned]] = deque(maxlen=LABELS)
        self.judged: deque[str] = deque(maxlen=LABELS)
        self.spans: deque[Span] = deque(maxlen=SPANS)

    def __call__(self, event: Event) -> None:
        match event:
            case Reloaded(change=change, seconds=seconds):
                self.changes.appendleft(Change(time.time(), change, seconds))
            case CacheLookup():
                self.lookups.appendleft(event)
            case Learned():
                self.labels.appendleft((time.time(), event))
            case Routed(result=result):
                by = "cache" if result.from_cache else result.stage.value
                self._span().answers["local" if by == "vector" else by] += 1

    def _span(self) -> Span:
        begins = time.time() // SPAN_SECONDS * SPAN_SECONDS
        if not self.spans or self.spans[-1].at != begins:
            self.spans.append(Span(begins))
        return self.spans[-1]
