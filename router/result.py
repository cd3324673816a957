"""What ``route`` returns: frozen, explained, and the same after a trip through JSON."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from itertools import chain, count
from typing import Annotated, Any, Final, Self, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from router.plain_json import ReadOnly, first_fault

MAX_COUNT: Final = 2**53
"""No whole number is larger; every JSON reader keeps integers up to here exactly."""

Number: TypeAlias = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Probability: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=1)]
Weight: TypeAlias = Annotated[float, Field(strict=True, gt=0, le=1)]
Flag: TypeAlias = Annotated[bool, Field(strict=True)]
Count: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]

EvidenceValue: TypeAlias = (
    str
    | Annotated[int, Field(strict=True, ge=-MAX_COUNT, le=MAX_COUNT)]
    | Number
    | Flag
    | tuple[str, ...]
)
"""One measured or observed value in a trace entry."""

Evidence: TypeAlias = Mapping[str, EvidenceValue]
"""Read-only; what is given to a trace entry is copied into one, and that of its candidates."""

NO_EVIDENCE: Final[Evidence] = ReadOnly()


def _no_evidence() -> Evidence:
    return NO_EVIDENCE


class Decision(StrEnum):
    """What the router tells its caller to do."""

    ROUTE = "route"
    """Load ``selected_skills``."""
    CLARIFY = "clarify"
    """Ask the user: ``suggested_skills`` fit about equally well, or not surely enough to load."""
    ABSTAIN = "abstain"
    """Load nothing: no skill fits."""


class Stage(StrEnum):
    """The four stages of the cascade, in the order of the trace."""

    FUZZY = "fuzzy"
    EXACT = "exact"
    LLM = "llm"
    VECTOR = "vector"


class Outcome(StrEnum):
    """How one stage ended."""

    ANSWERED = "answered"
    """The stage gave the result."""
    SUPPORTED = "supported"
    """The stage confirmed an earlier stage's weak answer (vector fallback only)."""
    DECLINED = "declined"
    """The stage ran and had no answer: a cache miss, or a weak answer passed on."""
    SKIPPED = "skipped"
    """The stage did not run; the reason says why."""
    FAILED = "failed"
    """The stage ran into an error; the reason says which."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One skill as a stage saw it.

    Attributes:
        name: the skill.
        score: the stage's own score, higher is better; comparable within one trace entry only.
        evidence: what the score was made of, such as ranks, cosine, matched terms.
    """

    name: str
    score: Number
    evidence: Evidence = field(default_factory=_no_evidence, hash=False)


class _Copied:
    """A frozen dataclass that can be copied with changes at little cost.

    ``dataclasses.replace`` and a frozen ``__init__`` set every field through a checked call, which
    would be most of the time of an exact cache hit. This is why these classes have no slots.
    """

    def copy_with(self, **changes: Any) -> Self:
        """A copy that differs in the given fields; they are not checked."""
        twin = object.__new__(type(self))
        fields = self.__dict__.copy()
        fields.update(changes)
        object.__setattr__(twin, "__dict__", fields)
        return twin


@dataclass(frozen=True)
class StageTrace(_Copied):
    """What one stage did for one request.

    Attributes:
        stage: which stage.
        outcome: how it ended.
        reason: one sentence for a person.
        microseconds: wall-clock time spent in the stage.
        evidence: the values that the outcome rests on.
        candidates: the skills that the stage considered, best first; may be cut.
    """

    stage: Stage
    outcome: Outcome
    reason: str
    microseconds: Number = 0.0
    evidence: Evidence = field(default_factory=_no_evidence, hash=False)
    candidates: tuple[Candidate, ...] = ()

    def __post_init__(self) -> None:
        owners: tuple[StageTrace | Candidate, ...] = (self, *self.candidates)
        for owner in owners:
            if type(owner.evidence) is not ReadOnly:
                object.__setattr__(owner, "evidence", ReadOnly(owner.evidence))

    def with_evidence(self, more: Evidence) -> StageTrace:
        """A copy with more evidence."""
        return self.copy_with(evidence=ReadOnly({**self.evidence, **more}))


MEMORY_LAYERS: Final = (
    "session",
    "project",
    "user",
    "semantic",
    "graph",
    "governance",
    "episodic",
    "procedural",
    "prospective",
    "planning",
    "meta",
)
"""The built-in memory layers, in the order in which they are listed everywhere. What each is stands
in ``router/memory/layers/__init__.py``."""


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """A memory layer to read, with its weight in (0, 1]."""

    name: str
    weight: Weight


@dataclass(frozen=True, kw_only=True)
class RoutingResult(_Copied):
    """The router's answer to one request. Deeply immutable, so sharing one is as good as a copy.

    Attributes:
        decision: route, clarify or abstain.
        selected_skills: skills to load, best first; empty unless ``decision`` is ``ROUTE``.
        suggested_skills: skills that may help but were not chosen, best first.
        memory_layers: memory layers to read, heaviest first: those that the LLM named, else those
            that the query classifier did; empty when memory has nothing to say on the request.
        mission_brief: what the loaded skills are asked to do, in a sentence.
        reasoning: why, in a sentence or two.
        confidence: probability in [0, 1] that the decision is right: for ``ROUTE`` that the
            selected skills are the right ones, otherwise that loading none is.
        calibrated: whether ``confidence`` was fitted on labelled outcomes of this deployment.
        evidence_count: on how many.
        stage: the stage that answered.
        from_cache: whether the answer was made for an earlier request.
        catalog_version: digest of the catalog snapshot that every named skill exists in.
        trace: one entry a stage, in cascade order.
        id: identifies this answer, for feedback and logs.
    """

    decision: Decision
    selected_skills: tuple[str, ...]
    suggested_skills: tuple[str, ...] = ()
    memory_layers: tuple[LayerChoice, ...] = ()
    mission_brief: str = ""
    reasoning: str = ""
    confidence: Probability
    calibrated: Flag = False
    evidence_count: Count = 0
    stage: Stage
    from_cache: Flag = False
    catalog_version: str = ""
    trace: tuple[StageTrace, ...] = ()
    id: str = ""

    @property
    def question(self) -> str:
        """What to ask the user, naming the suggested skills; empty unless ``decision`` is
        ``CLARIFY``."""
        if self.decision is not Decision.CLARIFY or not self.suggested_skills:
            return ""
        *others, last = self.suggested_skills
        named = f"{', '.join(others)} or {last}" if others else last
        return f"Is it about {named}?"

    def to_dict(self, *, trace: bool = True) -> dict[str, Any]:
        """The result as plain JSON types, keys in the order of the attributes; then ``question``,
        which follows from them. The trace may be left out: a model pays for every token."""
        left_out = None if trace else {"trace"}
        fields = _adapter().dump_python(self, mode="json", exclude=left_out, warnings=False)
        return {**fields, "question": self.question}

    def to_json(self) -> str:
        """The result as one line of JSON; ``from_json`` gives an equal result back."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> RoutingResult:
        """Parse what ``to_json`` wrote.

        Raises:
            ValueError: the text is not a routing result; the message names the field.
        """
        try:
            raw = json.loads(text)
        except (ValueError, RecursionError) as error:  # also an integer of thousands of digits
            raise ValueError(f"not JSON: {error}") from error
        return cls.from_dict(raw)

    @classmethod
    def from_dict(cls, raw: object) -> RoutingResult:
        """Parse what ``to_dict`` gave. Unknown fields are ignored: a later version may add some.

        Raises:
            ValueError: a field is missing or of the wrong type; the message names it.
        """
        try:
            return _adapter().validate_python(raw)
        except ValidationError as error:
            raise ValueError(f"not a routing result: {first_fault(error)}") from None


@cache
def _adapter() -> TypeAdapter[RoutingResult]:
    return TypeAdapter(RoutingResult)


def answer_ids() -> Iterator[str]:
    """Identifiers of answers: 96 random bits each, so that nobody can guess another's. The system
    gives the random bytes of many at once, because one call takes longer than a cache hit."""
    return chain.from_iterable(_drawn_ids() for _ in count())


def _drawn_ids() -> list[str]:
    drawn = secrets.token_hex(12 * 64)
    return [drawn[start : start + 24] for start in range(0, len(drawn), 24)]
