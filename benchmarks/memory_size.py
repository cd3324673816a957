"""How long does a recall take over many memories, and is any layer late?

Fills the layers with sentences of words drawn as often as they stand in the shipped skills (which
is about as uneven as words are), asks questions made of words of stored ones, and reports for a
whole recall the wall time and the CPU time of all threads, how many recalls missed a layer, and
for each layer the CPU time of one search.

    OPENBLAS_NUM_THREADS=1 PYTHONPATH=. python benchmarks/memory_size.py [--items 100000]
        [--queries 60] [--directory KEPT] [--postgres URL] [--json]

The folder (or the empty database) is filled once; a run over a full one measures only.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.inputs import give
from router import Memory, Settings
from router.memory.layers import built_in_layers
from router.memory.layers.stored import search_words
from router.memory.model import LayerStatus, MemoryItem, Scope
from router.memory.query.rewrite import rewrite
from router.memory.stores.memory_store import MemoryStore
from router.retrieval.bundled_encoder import BundledEncoder
from router.text import STOPWORDS, tokens

SKILLS: Final = Path(__file__).parents[1] / "skills"
SCOPE: Final = Scope(user="ada", project="shop")
NOW: Final = datetime(2026, 11, 20, tzinfo=UTC)
SHARES: Final = {
    "session": 0.2,
    "episodic": 0.2,
    "semantic": 0.3,
    "project": 0.1,
    "user": 0.05,
    "procedural": 0.05,
    "graph": 0.05,
    "prospective": 0.05,
}
BATCH: Final = 2_000


def items(count: int) -> list[MemoryItem]:
    """The same items for the same count."""
    draw = random.Random(1)  # noqa: S311 - test data
    texts = (path.read_text(encoding="utf-8") for path in sorted(SKILLS.rglob("SKILL.md")))
    counted = Counter(word for text in texts for word in tokens(text))
    words, weights = list(counted), list(counted.values())
    layers = draw.choices(list(SHARES), list(SHARES.values()), k=count)
    return [
        MemoryItem(
            id=f"n{n}",
            layer=layer,
            content=" ".join(draw.choices(words, weights, k=draw.randint(8, 30))) + f" {n}",
            created=NOW - timedelta(minutes=n),
            scope=SCOPE,
        )
        for n, layer in enumerate(layers)
    ]


def questions(held: Sequence[MemoryItem], count: int) -> list[str]:
    """Questions of four words of an item each, in an everyday frame."""
    draw = random.Random(2)  # noqa: S311 - test data
    frames = ("What about {}?", "Why did we choose {}?", "How do I {}?", "When was {}?", "{}")
    asked = []
    for n in range(count):
        content = [word for word in draw.choice(held).content.split() if word not in STOPWORDS]
        asked.append(frames[n % len(frames)].format(" ".join(content[:4])))
    return asked


async def recalls(settings: Settings, asked: Sequence[str]) -> dict[str, Any]:
    """Time of each recall, and how many missed a layer."""
    wall, cpu, late = [], [], 0
    async with Memory(settings, encoder=BundledEncoder()) as memory:
        for question in (asked[0], *asked):  # the first one opens what is opened late
            started, worked = time.perf_counter(), time.process_time()
            answer = await memory.recall(question, SCOPE)
            wall.append((time.perf_counter() - started) * 1000)
            cpu.append((time.process_time() - worked) * 1000)
            late += any(layer.status is LayerStatus.TIMEOUT for layer in answer.layers)
            await memory.clear_cache()
    return {
        "recalls": len(asked),
        "late": late,
        "wall p50": _percentile(wall[1:], 50),
        "wall p95": _percentile(wall[1:], 95),
        "cpu p50": _percentile(cpu[1:], 50),
        "cpu p95": _percentile(cpu[1:], 95),
    }


def searches(store: MemoryStore, asked: Sequence[str]) -> list[dict[str, Any]]:
    """Milliseconds of this process's CPU time for one search of each layer."""
    queries = [rewrite(question, now=NOW) for question in asked]
    for query in queries:
        store.search("semantic", query.text, words=search_words(query), scope=SCOPE, k=1)
    rows: list[dict[str, Any]] = []
    for layer in built_in_layers(store):
        times = []
        for query in queries:
            started = time.process_time()
            layer.search(query, scope=SCOPE, k=5)
            times.append((time.process_time() - started) * 1000)
        p50, p95 = _percentile(times, 50), _percentile(times, 95)
        rows.append({"layer": layer.spec.name, "p50_ms": p50, "p95_ms": p95})
    return rows


def _percentile(times: Sequence[float], share: int) -> float:
    return round(float(np.percentile(times, share)), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--directory", type=Path)
    parser.add_argument("--postgres")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    held = items(given.items)
    asked = questions(held, given.queries)
    with tempfile.TemporaryDirectory() as folder:
        directory = given.directory or Path(folder)
        encoder = BundledEncoder()
        store = (
            MemoryStore.open(directory, encoder=encoder)
            if given.postgres is None
            else MemoryStore.connect(given.postgres, encoder=encoder)
        )
        started = time.perf_counter()
        if not store.generation:
            for start in range(0, len(held), BATCH):
                store.save(held[start : start + BATCH])
        filled = round(time.perf_counter() - started, 1)
        rows = searches(store, asked)
        store.close()
        settings = Settings(memory={"directory": directory, "url": given.postgres})
        rows.append({"seconds to fill": filled, **asyncio.run(recalls(settings, asked))})
    give(rows, as_json=given.json)


if __name__ == "__main__":
    main()
