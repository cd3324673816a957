"""Does a layer that misbehaves hold the answer, and does asking in parallel pay?

* Deadline: queries over seven layers, of which one hangs in its thread, one ignores being
  cancelled, one raises, one is too slow; three are healthy. How long until the answer, beyond the
  deadline, and is everything there that the healthy layers found? Once with the circuit breakers
  at work, and once with breakers that never open, so that every query meets every fault. Beside
  it, how far a bare wait for the same time goes beyond it, taken in turn with the queries: so much
  is due to the machine and what else it does.
* Leaks: threads, tasks and open files after many such queries, against those before.
* Parallel: six layers that take t each, on the event loop and in threads, against one of them.

    python benchmarks/memory_gather.py [--queries 300] [--leak-queries 5000] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.inputs import give
from router.memory.model import (
    NOBODY,
    AnyLayer,
    LayerQuery,
    LayerSpec,
    LayerStatus,
    MemoryItem,
    Scope,
    ScoreKind,
)
from router.memory.recall.gather import Gatherer
from router.result import LayerChoice

NOW = datetime(2026, 11, 20, tzinfo=UTC)
QUERY = LayerQuery("continue working on auth", ("continue", "working", "auth"), None, NOW)
FOUND = 5
NEVER = 10**9


class Layer:
    """Answers after ``seconds`` on the event loop."""

    def __init__(self, name: str, seconds: float = 0.0) -> None:
        self.spec = LayerSpec(name, f"what {name} holds")
        self.seconds = seconds
        self.items = [
            MemoryItem(f"{i}", name, f"memory {i}", NOW, score=1.0, score_kind=ScoreKind.BM25)
            for i in range(FOUND)
        ]

    async def search(
        self,
        query: LayerQuery,  # noqa: ARG002 - the protocol's, as below
        *,
        scope: Scope,  # noqa: ARG002
        k: int,
    ) -> Sequence[MemoryItem]:
        await self.work()
        return self.items[:k]

    async def work(self) -> None:
        if self.seconds:
            await asyncio.sleep(self.seconds)


class Raising(Layer):
    async def work(self) -> None:
        raise ConnectionError("the store is gone")


class Stubborn(Layer):
    """Hangs, and takes no notice of being cancelled, until ``go`` is set."""

    def __init__(self, name: str, go: asyncio.Event) -> None:
        super().__init__(name)
        self.go = go

    async def work(self) -> None:
        while not self.go.is_set():
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                continue


class Blocking:
    """Answers in a thread, after ``seconds`` or when ``go`` is set."""

    def __init__(self, name: str, seconds: float = 0.0, go: threading.Event | None = None) -> None:
        self._layer = Layer(name)
        self.spec = self._layer.spec
        self._seconds = seconds
        self._go = go

    def search(
        self,
        query: LayerQuery,  # noqa: ARG002
        *,
        scope: Scope,  # noqa: ARG002
        k: int,
    ) -> Sequence[MemoryItem]:
        if self._go is not None:
            self._go.wait()
        time.sleep(self._seconds)
        return self._layer.items[:k]


HEALTHY = ("loop", "thread", "thread too")


async def misbehaving(
    queries: int, *, deadline: float, breaker_failures: int, compare: bool = False
) -> tuple[list[float], list[float], int]:
    """Milliseconds beyond the deadline of each answer and, to ``compare``, of as many bare waits;
    and how many answers lack healthy items."""
    go, thread_go = asyncio.Event(), threading.Event()
    layers: list[AnyLayer] = [
        Blocking("hung", go=thread_go),
        Stubborn("stubborn", go),
        Raising("raising"),
        Layer("slow", seconds=60),
        Layer("loop"),
        Blocking("thread"),
        Blocking("thread too"),
    ]
    gatherer = Gatherer(layers, layer_seconds=deadline, breaker_failures=breaker_failures)
    choices = [LayerChoice(name, 1.0) for name in gatherer.specs]
    beyond, bare, lacking = [], [], 0
    for _ in range(queries):
        if compare:
            started = time.perf_counter()
            await asyncio.sleep(deadline)
            bare.append((time.perf_counter() - started - deadline) * 1000)
        started = time.perf_counter()
        reports = await gatherer.gather(QUERY, choices, scope=NOBODY, k=FOUND)
        beyond.append((time.perf_counter() - started - deadline) * 1000)
        healthy = [report for report in reports if report.layer in HEALTHY]
        lacking += any(
            report.status is not LayerStatus.OK or len(report.items) != FOUND for report in healthy
        )
    go.set()
    thread_go.set()
    await gatherer.aclose()
    return beyond, bare, lacking


async def deadlines(queries: int, *, breaker_failures: int) -> dict[str, Any]:
    deadline = 0.05
    beyond, bare, lacking = await misbehaving(
        queries, deadline=deadline, breaker_failures=breaker_failures, compare=True
    )
    cuts, bare_cuts = (statistics.quantiles(times, n=100) for times in (beyond, bare))
    return {
        "queries": queries,
        "deadline_ms": deadline * 1000,
        "beyond_p50_ms": round(cuts[49], 2),
        "beyond_p99_ms": round(cuts[98], 2),
        "beyond_max_ms": round(max(beyond), 2),
        "bare_wait_beyond_p50_ms": round(bare_cuts[49], 2),
        "bare_wait_beyond_p99_ms": round(bare_cuts[98], 2),
        "answers_without_all_healthy_items": lacking,
    }


def held() -> dict[str, int]:
    return {
        "threads": threading.active_count(),
        "tasks": len(asyncio.all_tasks()),
        "files": len(list(Path("/proc/self/fd").iterdir())),
    }


async def leaks(queries: int) -> dict[str, Any]:
    """A short deadline and no breaker, so that every query leaves what it can."""
    before = held()
    await misbehaving(queries, deadline=0.002, breaker_failures=NEVER)
    after = held()
    return {"queries": queries} | {f"{what}_left": after[what] - before[what] for what in before}


async def parallel(kind: type[Layer] | type[Blocking], seconds: float = 0.02) -> dict[str, Any]:
    """Time of six layers over the time of one, medians of 20."""

    async def median(layers: int) -> float:
        gatherer = Gatherer([kind(f"layer{i}", seconds) for i in range(layers)], layer_seconds=1.0)
        choices = [LayerChoice(name, 1.0) for name in gatherer.specs]
        times = []
        for _ in range(20):
            started = time.perf_counter()
            await gatherer.gather(QUERY, choices, scope=NOBODY, k=FOUND)
            times.append(time.perf_counter() - started)
        await gatherer.aclose()
        return statistics.median(times)

    one, six = await median(1), await median(6)
    return {"one_ms": round(one * 1000, 2), "six_ms": round(six * 1000, 2), "ratio": six / one}


async def overhead() -> dict[str, Any]:
    """What gathering six layers costs that take no time."""
    gatherer = Gatherer([Layer(f"layer{i}") for i in range(6)])
    choices = [LayerChoice(name, 1.0) for name in gatherer.specs]
    times = []
    for _ in range(2000):
        started = time.perf_counter()
        await gatherer.gather(QUERY, choices, scope=NOBODY, k=FOUND)
        times.append(time.perf_counter() - started)
    await gatherer.aclose()
    return {"six_layers_at_once_p50_us": round(statistics.median(times) * 1e6)}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--leak-queries", type=int, default=5_000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = {
        "with breakers": await deadlines(arguments.queries, breaker_failures=5),
        "breakers that never open": await deadlines(arguments.queries, breaker_failures=NEVER),
        "left over": await leaks(arguments.leak_queries),
        "six layers over one, event loop": await parallel(Layer),
        "six layers over one, threads": await parallel(Blocking),
        "overhead": await overhead(),
    }
    rows = [{"what": title, **values} for title, values in figures.items()]
    give(rows, as_json=arguments.json)


if __name__ == "__main__":
    asyncio.run(main())
