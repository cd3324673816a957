"""The types of a context: strategies, the weights of its two sides, chunks, and the whole
context."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from router.errors import InvalidRequest
from router.memory.model import MemoryItem
from router.plain_json import PlainJson

_HEADING: Final = re.compile(
    r"(?:^|(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]))"
    r"(?=[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]*\[)"
)
"""Where a line begins that could be taken for the heading of a piece, though characters that nobody
sees may stand before its bracket."""


class Strategy(StrEnum):
    """Where a context comes from."""

    LEXICAL = "lexical"
    """Memory, by words alone."""
    EPISODIC = "episodic"
    """What was said and done, by time and words."""
    HYBRID = "hybrid"
    """Memory, by words, meaning and time."""
    RAG = "rag"
    """Documents, and memory as in ``HYBRID``."""


class ContextSide(StrEnum):
    """Where a piece comes from; each side has a weight."""

    DOCUMENTS = "documents"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The items that one side has found.

    Attributes:
        items: best first. A score of kind ``RERANKED`` is used; items with others are scored anew.
        notes: sentences on what is missing, such as a layer that was late.
    """

    items: Sequence[MemoryItem]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalWeights:
    """The weight of each side and its share of the budget; both in [0, 1], their sum 1 within
    0.01."""

    documents: float = 0.4
    memory: float = 0.6

    def __post_init__(self) -> None:
        for name, weight in (("documents", self.documents), ("memory", self.memory)):
            if isinstance(weight, bool) or not isinstance(weight, int | float):
                raise InvalidRequest(f"weights.{name}: expected a number")
            if not 0 <= weight <= 1:  # NaN included
                raise InvalidRequest(f"weights.{name}: {weight} is not in [0, 1]")
        if not math.isclose(self.documents + self.memory, 1, abs_tol=0.01 + 1e-9):
            total = self.documents + self.memory
            raise InvalidRequest(f"weights: they sum to {total:g}; they must sum to 1")

    def of(self, side: ContextSide) -> float:
        return self.documents if side is ContextSide.DOCUMENTS else self.memory


PRESETS: Final[Mapping[str, RetrievalWeights]] = {
    "balanced": RetrievalWeights(0.5, 0.5),
    "rag_focused": RetrievalWeights(0.7, 0.3),
    "memory_focused": RetrievalWeights(0.4, 0.6),
}


@dataclass(frozen=True, slots=True)
class Chunk(PlainJson):
    """One piece of the context.

    Attributes:
        content: the text; cut only when ``cut``.
        source: ``memory:SESSION`` (or ``memory:LAYER`` of what belongs to no session), the
            document's own source name, or ``rag`` when it has none.
        created: when it was remembered or written.
        score: in [0, 1]; comparable over the whole context.
        tokens: what it takes of the budget, its heading included.
        item_id: of the memory or document chunk.
        provenance: everywhere that it was found.
    """

    content: str
    source: str
    created: datetime
    score: float
    tokens: int
    item_id: str
    provenance: tuple[str, ...]
    cut: bool = False

    @property
    def text(self) -> str:
        """The chunk as the model reads it: source and date, then the content."""
        return rendered(self.source, self.created, self.content)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A piece that was found and is not in the context, and why."""

    item_id: str
    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class AssembledContext(PlainJson):
    """The context that ``assemble`` gives.

    Attributes:
        requested: the strategy that was asked for; ``strategy`` is the one that was followed.
        chunks: best first.
        tokens: of ``text``, by the counter; never more than ``budget``.
        left_out: what was found and left out.
        notes: what a caller should know, such as a side that failed.
    """

    query: str
    requested: Strategy
    strategy: Strategy
    chunks: tuple[Chunk, ...]
    tokens: int
    budget: int
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The context as the model reads it; empty when nothing was found."""
        return joined(self.chunks)

    def to_dict(self) -> dict[str, Any]:
        return PlainJson.to_dict(self) | {"text": self.text}


def rendered(source: str, created: datetime, content: str, more: str = "") -> str:
    """One piece as the model reads it: a heading with its source, its date and ``more``, and the
    content. Its lines that begin as a heading does are indented, or a memory could pretend to be
    several."""
    return f"[{source}, {created.date().isoformat()}{more}]\n{_HEADING.sub(' ', content)}"


def joined(chunks: Sequence[Chunk]) -> str:
    """The whole as the model reads it."""
    return "\n\n".join(chunk.text for chunk in chunks)
