"""Small real memory layers, asked on the event loop or in a thread, that do as a test says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from router.memory.model import (
    Classification,
    LayerQuery,
    LayerSpec,
    MemoryItem,
    QueryType,
    Scope,
    ScoreKind,
)
from router.result import LayerChoice
from router.text import normalise

NOW: Final = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def query(text: str = "What is JWT?") -> LayerQuery:
    return LayerQuery(text, tuple(text.lower().split()), None, NOW)


def remembered(layer: str, content: str, *, days_old: float = 1.0, **values: Any) -> MemoryItem:
    """A scored item whose id is its content."""
    scored: dict[str, Any] = {"score": 1.0, "score_kind": ScoreKind.BM25}
    created = NOW - timedelta(days=days_old)
    return MemoryItem(content[:200], layer, content, created, **(scored | values))


class LoopLayer:
    """Answers on the event loop, at once."""

    def __init__(self, name: str, *contents: str, quality: float = 0.8) -> None:
        self.spec = LayerSpec(name, f"what {name} holds", quality=quality)
        self.items: Sequence[Any] = [remembered(name, content) for content in contents]
        self.calls = 0

    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        self.calls += 1
        return [item for item in self.items if scope.sees(item.scope)][:k]


class WrongLayer(LoopLayer):
    """Returns whatever it is told to."""

    def __init__(self, name: str, answer: Any) -> None:
        super().__init__(name)
        self._answer = answer

    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        answer: Sequence[MemoryItem] = self._answer
        return answer


class RaisingLayer(LoopLayer):
    """Raises until it is mended."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(name)
        self.error: BaseException | None = error

    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return self.items


class WaitingLayer(LoopLayer):
    """Answers when ``go`` is set; ``begun`` is set by a call, ``cancelled`` counts ends of some."""

    def __init__(self, name: str, *contents: str) -> None:
        super().__init__(name, *contents)
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = 0

    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return await super().search(query, scope=scope, k=k)


class StubbornLayer(WaitingLayer):
    """Takes no notice of being cancelled."""

    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        self.calls += 1
        self.begun.set()
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
        raise ValueError("and fails in the end")


class ThreadLayer:
    """Answers in a thread, by a function."""

    def __init__(self, name: str, work: Callable[[], Sequence[Any]]) -> None:
        self.spec = LayerSpec(name, f"what {name} holds")
        self._work = work

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        return self._work()


class HungLayer(ThreadLayer):
    """Hangs in its threads until ``go`` is set."""

    def __init__(self, name: str) -> None:
        super().__init__(name, self._hang)
        self.go = threading.Event()
        self.calls = 0

    def _hang(self) -> Sequence[MemoryItem]:
        self.calls += 1
        self.go.wait(60)
        return [remembered(self.spec.name, "at last")]


class TableClassifier:
    """Looks the query up; what is not in the table needs no memory."""

    def __init__(self, **table: Classification) -> None:
        self._table = {text.replace("_", " "): found for text, found in table.items()}
        self.calls = 0

    def classify(self, query: str) -> Classification:
        self.calls += 1
        nothing = Classification((), (), (), 0.9, ("It is about nothing that is remembered.",))
        return self._table.get(normalise(query), nothing)


def classified(
    *layers: str,
    secondary: Sequence[str] = (),
    types: tuple[QueryType, ...] = (QueryType.TEMPORAL,),
) -> Classification:
    """Layers of falling weight: 1, 0.9, 0.8, ..., the secondary ones after the primary."""
    names = [*layers, *secondary]
    choices = [LayerChoice(name, 1 - 0.1 * place) for place, name in enumerate(names)]
    primary, further = choices[: len(layers)], choices[len(layers) :]
    return Classification(types, tuple(primary), tuple(further), 0.8, ("The table says so.",))
