"""The types that every part of memory shares: scope, item, layer, query, classification.

All are immutable. Times are aware ``datetime`` values: those of stored items in UTC, those of a
query and of the items in an answer in the time zone of who asks. A parameter ``clock`` is
``Callable[[], float]`` and gives seconds, since the epoch or monotonic, so that a test can say what
time it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Protocol, Self, TypeAlias, runtime_checkable
from zoneinfo import ZoneInfo

from router.errors import InvalidRequest
from router.plain_json import PlainJson, ReadOnly
from router.request import check_text
from router.result import LayerChoice

MAX_QUERY_CHARACTERS: Final = 2_000
MAX_CONTENT_CHARACTERS: Final = 100_000
MAX_ID_CHARACTERS: Final = 200
MAX_TAGS: Final = 50
MAX_ATTRIBUTES: Final = 50

# Layers that are treated unlike the others.
COUNTING_LAYER: Final = "meta"
"""It only counts what the others hold."""
EVENT_LAYER: Final = "episodic"
GRAPH_LAYER: Final = "graph"
"""Its items state relations."""
PLANNING_LAYER: Final = "planning"
TASK_LAYER: Final = "prospective"
"""Its items have a status."""
USER_LAYER: Final = "user"

AttributeValue: TypeAlias = str | int | float | bool | tuple[str, ...]


def aware(moment: datetime, zone: tzinfo = UTC) -> datetime:
    """The time with a time zone; one without is taken to be in ``zone``."""
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def moment_of(name: str, value: object, zone: tzinfo = UTC) -> datetime:
    """The time in the argument ``name``, which is a ``datetime`` or a text in ISO 8601; without a
    time zone it is taken to be in ``zone``. A date is the beginning of its day. Raises
    InvalidRequest for any other value."""
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        raise InvalidRequest(f"{name}: {value!r:.100} is not an ISO date, such as 2026-12-01")
    return aware(moment, zone)


def localized(moment: datetime, zone: tzinfo) -> datetime:
    """The same time in a time zone, so that its day is that of a person there. At the ends of the
    calendar, where the zone has no such time, it is left as it is."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def zone_of(name: str | tzinfo | None) -> tzinfo:
    """The time zone of an IANA name, such as ``Europe/Berlin``. None is the offset from UTC that
    this machine has now, without changes for daylight saving, and UTC if that is not known. Raises
    InvalidRequest for an unknown name."""
    if isinstance(name, tzinfo):
        return name
    if name is None:
        return datetime.now(UTC).astimezone().tzinfo or UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        raise InvalidRequest(
            f"time_zone: {name!r:.100} is no time zone; it is named like Europe/Berlin"
        ) from None


@dataclass(frozen=True, slots=True)
class Scope(PlainJson):
    """Whose memories: a user, a project, a session; each may be left open.

    If a dimension of an item is None, the item belongs to all users (or projects, or sessions). If
    a dimension of a query is None, the query sees only items that belong to all. So a query sees an
    item exactly if each dimension of the item is None or equal to that of the query.
    """

    user: str | None = None
    project: str | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        for name in ("user", "project", "session"):
            value = getattr(self, name)
            if value is not None:
                check_text(f"scope.{name}", value, MAX_ID_CHARACTERS)

    @classmethod
    def parse(cls, raw: Scope | Mapping[str, object] | None) -> Scope:
        """A scope as callers give it: itself, a mapping of its three names, or None for nobody.
        Raises InvalidRequest for anything else."""
        if raw is None:
            return cls()
        if isinstance(raw, Scope):
            return raw
        if not isinstance(raw, Mapping):
            raise InvalidRequest(f"scope: expected a mapping, not {type(raw).__name__}")
        unknown = sorted(str(key) for key in raw if key not in ("user", "project", "session"))
        if unknown:
            raise InvalidRequest(f"scope: unknown {unknown[0]!r}; it has user, project, session")
        return cls(**{str(key): value for key, value in raw.items()})  # type: ignore[arg-type]

    def sees(self, item: Scope) -> bool:
        """Whether a query in this scope may see what is stored in ``item``."""
        return all(
            theirs is None or theirs == ours
            for theirs, ours in (
                (item.user, self.user),
                (item.project, self.project),
                (item.session, self.session),
            )
        )

    def owns(self, item: Scope) -> bool:
        """Whether what is stored in ``item`` belongs to this scope as its owner. Open dimensions of
        an owner match any value: ``Scope(user="ada")`` owns everything that is stored with the user
        ada, in any project and session. A query of ada sees something else: also what belongs to
        everybody."""
        return item.sees(self)

    def visible(self) -> tuple[Scope, ...]:
        """Every stored scope that a query in this one sees, the most particular first; 1 to 8."""
        users = dict.fromkeys((self.user, None))
        projects = dict.fromkeys((self.project, None))
        sessions = dict.fromkeys((self.session, None))
        return tuple(Scope(u, p, s) for s in sessions for p in projects for u in users)

    def to_dict(self) -> dict[str, str]:
        """The dimensions that are set."""
        return {k: v for k, v in PlainJson.to_dict(self).items() if v is not None}


NOBODY: Final = Scope()
"""The scope of what belongs to everybody, and of a query by nobody in particular."""


class ScoreKind(StrEnum):
    """What an item's score is. Scores of different kinds never compare."""

    BM25 = "bm25"
    """Lexical, positive, without an upper bound."""
    COSINE = "cosine"
    """Similarity of embeddings, in [-1, 1]."""
    FUSED = "fused"
    """Several rankings as one; its scale belongs to the layer that gave it."""
    RERANKED = "reranked"
    """What ``recall`` orders by, in [0, 1]: relevance, recency and usefulness together."""


@dataclass(frozen=True, slots=True)
class MemoryItem(PlainJson):
    """One thing remembered.

    Attributes:
        id: unique within its layer and scope.
        layer: name of the layer that holds it.
        content: the text, 1 to 100,000 characters.
        created: when it was remembered, or when it happened if the writer said so.
        type: what kind of thing, such as ``fact``, ``event``, ``decision``, ``task``.
        tags: free labels.
        accessed: when it was last given as an answer; None when never.
        usefulness: how useful it has been, in [0, 1]; 0.5 unless the writer gives another value.
        scope: to whom it belongs.
        provenance: where it comes from, such as ``file:auth/login`` or ``forgetful:17``; several
            when the same content was found in several places.
        attributes: what belongs to one layer only, such as ``status`` and ``due`` of a task.
        score: how well it answers the query that found it; None outside a search.
        score_kind: what ``score`` is; None outside a search.
    """

    id: str
    layer: str
    content: str
    created: datetime
    type: str = "note"
    tags: tuple[str, ...] = ()
    accessed: datetime | None = None
    usefulness: float = 0.5
    scope: Scope = NOBODY
    provenance: tuple[str, ...] = ()
    attributes: Mapping[str, AttributeValue] = field(default_factory=ReadOnly, hash=False)
    score: float | None = None
    score_kind: ScoreKind | None = None

    def __post_init__(self) -> None:
        check_text("id", self.id, MAX_ID_CHARACTERS)
        check_text("layer", self.layer, MAX_ID_CHARACTERS)
        check_text("content", self.content, MAX_CONTENT_CHARACTERS)
        if self.created.tzinfo is None or (self.accessed and self.accessed.tzinfo is None):
            raise InvalidRequest("created, accessed: a time without a time zone is ambiguous")
        if not 0 <= self.usefulness <= 1:
            raise InvalidRequest(f"usefulness: {self.usefulness} is not in [0, 1]")
        if len(self.tags) > MAX_TAGS:
            raise InvalidRequest(f"tags: {len(self.tags)}; at most {MAX_TAGS}")
        if len(self.attributes) > MAX_ATTRIBUTES:
            raise InvalidRequest(f"attributes: {len(self.attributes)}; at most {MAX_ATTRIBUTES}")
        if (self.score is None) != (self.score_kind is None):
            raise InvalidRequest("score: a score has a kind, and a kind a score")
        if self.score is not None:
            _check_score(self.score)
        if type(self.attributes) is not ReadOnly:
            object.__setattr__(self, "attributes", ReadOnly(self.attributes))

    def scored(self, score: float, kind: ScoreKind) -> Self:
        """A copy of the item with a score. Only the score is checked; the rest is known to be
        valid."""
        _check_score(score)
        made = object.__new__(type(self))
        for name in self.__slots__:
            object.__setattr__(made, name, getattr(self, name))
        object.__setattr__(made, "score", score)
        object.__setattr__(made, "score_kind", kind)
        return made

    def in_zone(self, zone: tzinfo) -> Self:
        """A copy whose time of creation is told in a time zone; see ``localized``."""
        return replace(self, created=localized(self.created, zone))


def _check_score(score: float) -> None:
    if not math.isfinite(score):
        raise InvalidRequest(f"score: {score} is not a finite number")


class TaskStatus(StrEnum):
    """Where a task stands. The first three are what is still to be done."""

    OPEN = "open"
    IN_PROGRESS = "in_progress"
    BLOCKED = "blocked"
    DONE = "done"
    CANCELLED = "cancelled"

    @classmethod
    def parse(cls, raw: object) -> TaskStatus:
        """A status as people write it: ``todo`` is open, ``complete`` is done; case, spaces and
        hyphens do not matter. Raises InvalidRequest, which lists the statuses, for anything else.
        """
        if isinstance(raw, str):
            name = "_".join(raw.casefold().replace("-", " ").replace("_", " ").split())
            if name in _STATUSES:
                return _STATUSES[name]
        raise InvalidRequest(f"attributes.status: {raw!r} is none of {', '.join(cls)}")

    @property
    def is_open(self) -> bool:
        return self in (TaskStatus.OPEN, TaskStatus.IN_PROGRESS, TaskStatus.BLOCKED)


_STATUSES: Final[Mapping[str, TaskStatus]] = MappingProxyType(
    {status.value: status for status in TaskStatus}
    | dict.fromkeys(
        ("pending", "todo", "to_do", "new", "not_started", "planned", "scheduled"), TaskStatus.OPEN
    )
    | dict.fromkeys(("doing", "started", "active", "wip", "ongoing"), TaskStatus.IN_PROGRESS)
    | dict.fromkeys(("waiting", "on_hold", "paused", "stuck", "deferred"), TaskStatus.BLOCKED)
    | dict.fromkeys(
        ("complete", "completed", "finished", "closed", "resolved", "fixed"), TaskStatus.DONE
    )
    | dict.fromkeys(
        ("canceled", "dropped", "abandoned", "rejected", "wont_do", "obsolete"),
        TaskStatus.CANCELLED,
    )
)
"""The status for each word that is accepted."""


class QueryType(StrEnum):
    """What a query asks for; several may hold at once."""

    TEMPORAL = "temporal"
    RELATIONAL = "relational"
    PLANNING = "planning"
    PROCEDURAL = "procedural"
    PROSPECTIVE = "prospective"
    META = "meta"
    FACTUAL = "factual"
    ARCHITECTURAL = "architectural"
    USER = "user"
    HISTORICAL = "historical"
    GENERAL = "general"


@dataclass(frozen=True, slots=True)
class Classification:
    """What a query asks for and where to look.

    Attributes:
        types: most important first; empty when nothing in memory can bear on the query.
        layers: layers to read, primary first, weights in (0, 1]; empty when nothing need be read.
        secondary: layers to read next if those found too little, best first.
        confidence: probability, in [0, 1], that the first layer is the right one, or, without
            layers, that none is needed.
        reasons: sentences for a person, most important first.
    """

    types: tuple[QueryType, ...]
    layers: tuple[LayerChoice, ...]
    secondary: tuple[LayerChoice, ...]
    confidence: float
    reasons: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The classification as plain JSON types; ``layers`` are names, primary first."""
        return {
            "types": [each.value for each in self.types],
            "layers": [choice.name for choice in self.layers],
            "weights": {choice.name: choice.weight for choice in self.layers},
            "secondary": [choice.name for choice in self.secondary],
            "confidence": self.confidence,
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class Period:
    """A span of time, from ``start`` up to but without ``end``; both aware."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class LayerQuery:
    """A query, rewritten once for all layers; each layer takes what it can use.

    Attributes:
        text: what was asked, 1 to 2,000 characters.
        terms: its content words in order, case-folded, without stop words and words about time.
        period: the time that it names; None if it names none.
        now: when it was asked, in the time zone of who asks.
        timeless: the text without the words for the period and for the past; empty if nothing else
            is left.
    """

    text: str
    terms: tuple[str, ...]
    period: Period | None
    now: datetime
    timeless: str = ""

    @property
    def subject(self) -> str:
        """What the query is about: its text without the time, or the whole text if it is only a
        time."""
        return self.timeless or self.text


@dataclass(frozen=True, slots=True)
class LayerSpec:
    """What a layer is.

    Attributes:
        name: unique among the layers of a router.
        description: what it holds, in a sentence.
        examples: queries that it answers; the classifier compares with them where a layer is
            plugged in beside the built-in ones.
        quality: how far its items are to be trusted by their source alone, in [0, 1].
    """

    name: str
    description: str
    examples: tuple[str, ...] = ()
    quality: float = 0.8


class LayerStatus(StrEnum):
    """The outcome of asking one layer."""

    OK = "ok"
    """It found something."""
    EMPTY = "empty"
    """It looked, and there is nothing."""
    TIMEOUT = "timeout"
    """It did not answer within its deadline."""
    ERROR = "error"
    """It raised an error, or returned something that breaks the rules of ``MemoryLayer``."""
    SKIPPED = "skipped"
    """It was not asked: it failed repeatedly, earlier calls hang, or no time was left."""


@dataclass(frozen=True, slots=True)
class LayerReport(PlainJson):
    """What one layer contributed to an answer.

    Attributes:
        weight: in (0, 1]; how much its items count beside those of other layers.
        milliseconds: how long it took; 0 when it was not asked.
        reason: a sentence for a person.
        items: what it found, best first; empty unless ``status`` is ``OK``.
    """

    layer: str
    weight: float
    status: LayerStatus
    milliseconds: float
    reason: str
    items: tuple[MemoryItem, ...] = ()

    @property
    def found(self) -> int:
        return len(self.items)

    @property
    def is_complete(self) -> bool:
        """Whether the layer answered, with items or without."""
        return self.status in (LayerStatus.OK, LayerStatus.EMPTY)


@runtime_checkable
class MemoryLayer(Protocol):
    """A source of memories that is asked on the event loop."""

    @property
    def spec(self) -> LayerSpec: ...

    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        """At most ``k`` items that ``scope`` sees, best first, each scored, all scores of one kind.

        Finding nothing is an empty answer, never an error. The scope is applied inside the search,
        before the best ``k`` are taken.
        """
        ...


@runtime_checkable
class BlockingLayer(Protocol):
    """The same for a source that blocks; it is asked in one of a bounded number of threads."""

    @property
    def spec(self) -> LayerSpec: ...

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        """As for ``MemoryLayer``."""
        ...


AnyLayer: TypeAlias = MemoryLayer | BlockingLayer
