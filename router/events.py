"""What happened, as one typed stream: metrics, traces and logs are sinks of it.

A sink is a plain callable that takes one event. It is called at once, in the thread and event loop
in which the thing happened, so it must be quick: one that has work to do puts the event into a
queue. A sink that raises is logged and stays; it keeps the event neither from the other sinks nor
from the caller of ``route``.

    def count(event: Event) -> None:
        match event:
            case Routed(result=result):
                counter[result.stage, result.decision] += 1
            case LLMCalled(cost_usd=cost) if cost is not None:
                spent.inc(cost)

    router.events.subscribe(count)

Events hold texts of requests. A sink that sends them elsewhere decides what may leave the process.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from router.result import RoutingResult, Stage
    from router.skills.changes import CatalogChange

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Routed:
    """A request was answered, by whichever stage.

    Attributes:
        request: the text.
        scope: whose request it was; None when the caller gave none.
        result: the answer, with its trace.
        seconds: from the call of ``route`` to its answer.
    """

    request: str
    scope: str | None
    result: RoutingResult
    seconds: float


class CacheOutcome(StrEnum):
    """How a look into a cache ended."""

    HIT = "hit"
    MISS = "miss"
    REFUSED = "refused"
    """An answer was there and was not given: the skills have changed since, or the content gate
    held a similar request back."""


@dataclass(frozen=True, slots=True)
class CacheLookup:
    """A cache was searched.

    Attributes:
        stage: which one, ``fuzzy`` or ``exact``.
        outcome: how it ended.
        reason: one sentence, as in the trace.
        refused_by: what held a kept answer back where ``outcome`` is ``refused``: ``gate`` (the
            nearest request means something else) or ``validation`` (the skills, or what was learnt,
            have changed since); else empty.
    """

    stage: Stage
    outcome: CacheOutcome
    reason: str
    refused_by: str = ""


@dataclass(frozen=True, slots=True)
class LLMCalled:
    """One call of an LLM has ended. Retries are calls of their own.

    Attributes:
        provider: such as ``openai``.
        model: its name.
        purpose: what the answer is for: ``route``, ``audit`` or ``enrich``.
        seconds: how long it took.
        error: what went wrong; None when a usable answer came.
        input_tokens: as the provider counts them; None where it does not say.
        output_tokens: likewise.
        cost_usd: in US dollars; None where the price is not known.
    """

    provider: str
    model: str
    purpose: str
    seconds: float
    error: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Another catalog of skills has become effective.

    Attributes:
        change: what is different.
        seconds: from the beginning of the work on the new index until requests see it.
    """

    change: CatalogChange
    seconds: float


@dataclass(frozen=True, slots=True)
class Learned:
    """A label was taken in as evidence.

    Attributes:
        request: the text that it is about.
        skills: those that are right for it; empty says that none is.
        source: where it comes from, such as ``llm``, ``audit`` or ``feedback``.
    """

    request: str
    skills: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """Memories were recalled.

    Attributes:
        query: the text.
        layers: those that were read, in the order of their weight.
        items: how many memories were found.
        confidence: that the answer bears on the query, in [0, 1].
        partial: whether a layer failed or was late.
        seconds: how long it took.
        statuses: how each of ``layers`` went: ``ok``, ``empty``, ``timeout``, ``error`` or
            ``skipped``.
    """

    query: str
    layers: tuple[str, ...]
    items: int
    confidence: float
    partial: bool
    seconds: float
    statuses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Degraded:
    """A part does not work, and the router goes on without it or with less of it.

    Attributes:
        part: ``llm``, ``encoder``, ``evidence``, ``answers``, ``vectors``, ``memory``,
            ``memory service``, ``cluster`` or ``tool selection``.
        reason: one sentence for a person.
    """

    part: str
    reason: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """A part that was ``Degraded`` works again.

    Attributes:
        part: as it was named then.
    """

    part: str


Event: TypeAlias = (
    Routed | CacheLookup | LLMCalled | Reloaded | Learned | Recalled | Degraded | Recovered
)
Sink: TypeAlias = Callable[[Event], None]


class Events:
    """The one place through which every event goes.

    Attributes:
        listening: whether there is a sink. Whoever raises an event asks this first, so that no
            event is made without a sink.
    """

    __slots__ = ("_sinks", "listening")

    def __init__(self) -> None:
        """A stream without sinks."""
        self._sinks: tuple[Sink, ...] = ()
        self.listening = False

    def subscribe(self, sink: Sink) -> Callable[[], None]:
        """Tell ``sink`` of every event from now on; calling what is returned ends it."""
        self._sinks = (*self._sinks, sink)
        self.listening = True

        def unsubscribe() -> None:
            self._sinks = tuple(other for other in self._sinks if other is not sink)
            self.listening = bool(self._sinks)

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Tell every sink of an event, in the order in which they subscribed."""
        for sink in self._sinks:
            try:
                sink(event)
            except Exception:  # noqa: BLE001 - a sink is code of others; no request may fail for it
                _log.exception("a sink failed on %s", type(event).__name__)


class OptionalPart:
    """A part that the router can do without, such as a memory service. Whoever uses it says how
    that went; ``events`` are told of each failure, and once when the part works again."""

    def __init__(self, name: str, events: Events) -> None:
        """Nothing has failed yet."""
        self._name = name
        self._events = events
        self._failed = False

    def failed(self, reason: str) -> None:
        """Something was done without it."""
        self._failed = True
        if self._events.listening:
            self._events.emit(Degraded(self._name, reason))

    def worked(self) -> None:
        """It did what it is for."""
        if self._failed:
            self._failed = False
            self._events.emit(Recovered(self._name))
