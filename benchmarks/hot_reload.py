"""What does a change of the skills cost, over real skills and while requests are routed?

a. From the save of one skill to the moment that it is routable, less the debounce time: median and
   99th percentile; beside it, how many skills each edit encoded. Wanted: at most 150 ms, and one.
b. Latency of a steady stream of local routes (no cache) during edits, as a ratio of the same stream
   without them, half before and half after. It counts from the moment that a request was due, so a
   blocked event loop shows. Wanted: a p99 of at most twice that without them.
c. The storm: every skill replaced by a branch switch, there and back, during routing
   (``tests/test_storm.py`` at full size; it also kills routers in the middle, which is no matter of
   size).
d. Memory over many reloads: the slope of the resident size, and of what Python has allocated, when
   all that is bounded is full: the caches, and the answers remembered for feedback.
e. From the save of one skill to the moment that it is routable, the debounce time included, while
   four tasks route without a pause; and the latency of their routes, as a ratio of the same tasks
   without edits. Wanted: at most 500 ms, p95 1,000 ms, and twice the p99.

The process is set up as ``router mcp`` sets up its own (``router/cli/process.py``).

    python benchmarks/hot_reload.py --data FOLDER [--only a b] [--json]   (or ROUTER_BENCH_DATA)
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command ``router`` does it

import numpy as np
from numpy.typing import NDArray

from benchmarks.inputs import give, parsed, parser_of, requests_of, resident_bytes, say
from router import SemanticRouter, Settings
from router.cli.process import ready_to_serve
from router.retrieval.bundled_encoder import BundledEncoder
from router.router import RECENT_ANSWERS
from router.skills.changes import CatalogChange
from router.skills.manager import DEBOUNCE_SECONDS

ROUTING_TASKS = 4
PAUSE = 0.01
"""Seconds between two requests of the stream."""
MEMORY_SKILLS = 100
"""Skills that the reloads of part d are over; what leaks, leaks with few as with many."""
TRACED_RELOADS = 200
"""Reloads under tracemalloc, which makes them several times slower. In the first half the objects
from before it began are replaced by ones that it counts."""


TITLES = {
    "a": "one save until it is routable, less the debounce time",
    "b": "a stream of routes, with edits and without",
    "e": "one save until it is routable, while four tasks route",
    "c": "the storm: all skills switched while requests are routed",
    "d": "memory over many reloads",
}
"""What the parts are called in the results."""


class CountingEncoder(BundledEncoder):
    """Counts the skills that it encodes."""

    documents = 0

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.documents += len(documents)
        return super().encode_documents(documents)


class Watch:
    """An observer that notes when each change became effective."""

    name = "benchmark"

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self.at = 0.0

    async def on_catalog_change(self, _change: CatalogChange) -> None:
        self.at = time.perf_counter()
        self.changed.set()


def copy_skills(data: Path, place: Path, limit: int | None = None) -> Path:
    """A writable copy of the pool's skills, which are read-only."""
    skills = place / "skills"
    for number, source in enumerate(sorted((data / "skills" / "pool").iterdir())):
        if source.is_dir() and (limit is None or number < limit):
            shutil.copytree(source, skills / source.name, copy_function=shutil.copyfile)
    for folder in (skills, *(path for path in skills.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    return skills


def edit(router: SemanticRouter, number: int) -> None:
    """Save one skill with another last line."""
    skills = list(router.catalog.routable)
    path = skills[number * 7 % len(skills)].path
    text = path.read_text(encoding="utf-8").split("\n<!-- edit")[0]
    # The words come again, because the stems of very many are remembered.
    word = f"gizmo{number % 100}"
    path.write_text(f"{text}\n<!-- edit --> Paragraph {number} on {word}.\n", "utf-8")


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    p50, p99 = np.percentile(seconds, [50, 99])
    return {"p50_ms": float(p50) * 1e3, "p99_ms": float(p99) * 1e3}


async def save_to_routable(
    router: SemanticRouter, encoder: CountingEncoder, watch: Watch, edits: int
) -> dict[str, Any]:
    taken = []
    watch.changed.clear()
    edit(router, edits)  # not counted: who begins to watch looks at once, without the debounce time
    await watch.changed.wait()
    before = encoder.documents
    for number in range(edits):
        watch.changed.clear()
        began = time.perf_counter()
        edit(router, number)
        await watch.changed.wait()
        taken.append(watch.at - began - DEBOUNCE_SECONDS)
        say(f"a: edit {number + 1} of {edits}: {taken[-1] * 1e3:.0f} ms and the debounce")
    return {
        "edits": edits,
        "skills": len(router.catalog.skills),
        **milliseconds(taken),
        "encoded_an_edit": (encoder.documents - before) / edits,
    }


async def routing(
    router: SemanticRouter, requests: list[str], enough: asyncio.Event
) -> list[float]:
    """Latencies of routes that follow one another without a pause, until there were enough."""
    taken: list[float] = []
    while not enough.is_set():
        for request in requests:
            began = time.perf_counter()
            await router.route(request, scope=str(time.perf_counter_ns()), use_semantic_cache=False)
            taken.append(time.perf_counter() - began)
            await asyncio.sleep(0)
            if enough.is_set():
                break
    return taken


async def save_while_routing(
    router: SemanticRouter, watch: Watch, requests: list[str], edits: int
) -> dict[str, Any]:
    latencies: dict[str, list[float]] = {}
    taken: list[float] = []
    for phase in ("without", "with"):
        enough = asyncio.Event()
        tasks = [
            asyncio.create_task(routing(router, requests[n::ROUTING_TASKS], enough))
            for n in range(ROUTING_TASKS)
        ]
        if phase == "without":
            await asyncio.sleep(edits * 0.25)
        else:
            for number in range(edits):
                watch.changed.clear()
                began = time.perf_counter()
                edit(router, 20_000 + number)
                await watch.changed.wait()
                taken.append(watch.at - began)
        enough.set()
        latencies[phase] = [each for rows in await asyncio.gather(*tasks) for each in rows]
    quiet, busy = milliseconds(latencies["without"]), milliseconds(latencies["with"])
    return {
        "edits": edits,
        "saved": {
            "p50_ms": float(np.percentile(taken, 50)) * 1e3,
            "p95_ms": float(np.percentile(taken, 95)) * 1e3,
        },
        "without": quiet,
        "with": busy,
        "p99_ratio": busy["p99_ms"] / quiet["p99_ms"],
    }


async def stream(router: SemanticRouter, requests: list[str], enough: asyncio.Event) -> list[float]:
    """Latencies of requests that are due every ``PAUSE``, until there were enough."""
    loop = asyncio.get_running_loop()
    taken: list[float] = []

    async def one(request: str, due: float) -> None:
        await router.route(request, scope=str(time.perf_counter_ns()), use_semantic_cache=False)
        taken.append(loop.time() - due)

    due = loop.time()
    async with asyncio.TaskGroup() as group:
        while not enough.is_set():
            group.create_task(one(requests[len(taken) % len(requests)], due))
            due = max(due + PAUSE, loop.time() - 10 * PAUSE)
            await asyncio.sleep(due - loop.time())
    return taken


async def stream_for(router: SemanticRouter, requests: list[str], seconds: float) -> list[float]:
    enough = asyncio.Event()
    asyncio.get_running_loop().call_later(seconds, enough.set)
    return await stream(router, requests, enough)


async def stream_under_edits(
    router: SemanticRouter, watch: Watch, requests: list[str], edits: int
) -> dict[str, Any]:
    await stream_for(router, requests, 2.0)  # warm up
    half = edits * 0.25
    quiet = await stream_for(router, requests, half)
    enough = asyncio.Event()
    streaming = asyncio.create_task(stream(router, requests, enough))
    for number in range(edits):
        watch.changed.clear()
        edit(router, 10_000 + number)  # another text than in part a
        await watch.changed.wait()
        if number % 10 == 9:
            say(f"b: edit {number + 1} of {edits}")
    enough.set()
    busy = await streaming
    quiet += await stream_for(router, requests, half)
    figures = {"without": milliseconds(quiet), "with": milliseconds(busy)}
    return {
        "edits": edits,
        "routes": {"without": len(quiet), "with": len(busy)},
        **figures,
        "p50_ratio": figures["with"]["p50_ms"] / figures["without"]["p50_ms"],
        "p99_ratio": figures["with"]["p99_ms"] / figures["without"]["p99_ms"],
    }


async def over_real_skills(data: Path, place: Path, options: argparse.Namespace) -> dict[str, Any]:
    skills, requests = copy_skills(data, place), requests_of(data)
    encoder, watch = CountingEncoder(), Watch()
    settings = Settings(state_dir=place / "state", llm={"enabled": False})
    found: dict[str, Any] = {}
    async with SemanticRouter(
        settings, roots=[skills], encoder=encoder, observers=[watch]
    ) as router:
        await router.route_many(requests)
        ready_to_serve()
        say(f"{len(router.catalog.skills)} skills, {len(router.exact)} cached answers")
        async with router.manager.watch():
            if "a" in options.only:
                found["a"] = await save_to_routable(router, encoder, watch, options.edits)
            if "b" in options.only:
                found["b"] = await stream_under_edits(router, watch, requests, options.stream_edits)
            if "e" in options.only:
                found["e"] = await save_while_routing(router, watch, requests, options.edits)
    return found


def storm(data: Path, switches: int) -> dict[str, Any]:
    began = time.perf_counter()
    tests = Path(__file__).parents[1] / "tests" / "test_storm.py"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "not killed", str(tests)],
        cwd=tests.parents[1],
        env={**os.environ, "ROUTER_STORM": str(switches), "ROUTER_BENCH_DATA": str(data)},
        stdout=sys.stderr,
        check=False,
    )
    return {
        "switches": 2 * switches,
        "passed": done.returncode == 0,
        "seconds": time.perf_counter() - began,
    }


async def memory(data: Path, place: Path, reloads: int) -> dict[str, Any]:
    skills = copy_skills(data, place, MEMORY_SKILLS)
    settings = Settings(state_dir=place / "state", llm={"enabled": False})
    resident: list[float] = []
    traced: list[float] = []
    async with SemanticRouter(settings, roots=[skills]) as router:
        requests = requests_of(data)[:50]

        async def reload(number: int) -> None:
            edit(router, number)
            await router.reload()
            await router.route(requests[number % len(requests)])

        async def fill() -> None:
            for number in range(RECENT_ANSWERS):
                await router.route(requests[number % len(requests)], scope=str(number))

        await fill()
        for number in range(reloads):
            await reload(number)
            if number % 20 == 19:
                gc.collect()
                resident.append(resident_bytes() / 1024)
            if number % 200 == 199:
                say(f"d: {number + 1} reloads, {resident[-1] / 1024:.0f} MiB")
        tracemalloc.start()
        await fill()
        for number in range(TRACED_RELOADS):
            await reload(number)
            gc.collect()
            traced.append(tracemalloc.get_traced_memory()[0] / 1024)
        tracemalloc.stop()
    settled = resident[len(resident) // 4 :]
    return {
        "reloads": reloads,
        "resident_mib": resident[-1] / 1024,
        "resident_kib_a_reload": float(np.polyfit(np.arange(len(settled)) * 20, settled, 1)[0]),
        "traced_kib_a_reload": float(
            np.polyfit(np.arange(TRACED_RELOADS // 2), traced[TRACED_RELOADS // 2 :], 1)[0]
        ),
    }


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--only", nargs="+", choices="abcde", default=list("abcde"))
    parser.add_argument("--edits", type=int, default=30, help="edits of part a")
    parser.add_argument("--stream-edits", type=int, default=50, help="edits of part b")
    parser.add_argument("--switches", type=int, default=3, help="switches there and back, part c")
    parser.add_argument("--reloads", type=int, default=400, help="reloads of part d")
    options = parsed(parser)
    data = options.data.absolute()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        if {"a", "b", "e"} & set(options.only):
            found |= asyncio.run(over_real_skills(data, place / "real", options))
        if "c" in options.only:
            found["c"] = storm(data, options.switches)
        if "d" in options.only:
            found["d"] = asyncio.run(memory(data, place / "memory", options.reloads))
    rows = [{"what": TITLES[part], **figures} for part, figures in found.items()]
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
