"""How late is a heartbeat on the event loop while the router works hard on the same loop?

A task asks to be woken every 5 ms and notes how late it is; the greatest lateness of each phase is
reported, with the 99th percentile; beside it the greatest CPU time that the loop's own thread took
between two beats, which other programs on the machine do not change. The phases:

nothing     10,000 empty tasks at once: what asyncio alone costs, the baseline of the next two
crowd       10,000 ``route()`` calls at once, each of another text
repeats     the same 10,000 again: hits of the caches
reload      one skill edited and taken in, ten times
training    2,000 labels, and the local model fitted to them
calibrating 4,000 outcomes of stage 4
closing     evidence and answers written

    python benchmarks/heartbeat.py --data FOLDER [--requests N] [--json]    (or ROUTER_BENCH_DATA)
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import perf_counter, thread_time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command ``router`` does it

import numpy as np

from benchmarks.hot_reload import copy_skills
from benchmarks.inputs import give, parsed, parser_of, requests_of
from router import SemanticRouter, Settings
from router.cli.process import ready_to_serve
from router.learning.evidence import Example, Source

BEAT_SECONDS = 0.005
LABELS = 2_000
OUTCOMES = 4_000
EDITS = 10


class Heartbeat:
    """Wakes again and again, and notes how late."""

    def __init__(self) -> None:
        self.late: dict[str, list[float]] = {}
        self.busy: dict[str, list[float]] = {}

    @asynccontextmanager
    async def phase(self, name: str) -> AsyncIterator[None]:
        """Beats while the block runs."""
        late, busy = self.late.setdefault(name, []), self.busy.setdefault(name, [])

        async def beat() -> None:
            while True:
                due, used = perf_counter() + BEAT_SECONDS, thread_time()
                try:
                    await asyncio.sleep(BEAT_SECONDS)
                finally:
                    late.append(perf_counter() - due)
                    busy.append(thread_time() - used)

        task = asyncio.create_task(beat())
        await asyncio.sleep(2 * BEAT_SECONDS)
        try:
            yield
        finally:
            await asyncio.sleep(2 * BEAT_SECONDS)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def figures(self) -> Iterator[dict[str, object]]:
        """A row a phase; milliseconds."""
        for name, late in self.late.items():
            worst, usual = 1000 * max(late), 1000 * float(np.percentile(late, 99))
            own = 1000 * max(self.busy[name])
            yield {
                "phase": name,
                "beats": len(late),
                "worst_ms": worst,
                "p99_ms": usual,
                "own_cpu_ms": own,
            }


async def answered(router: SemanticRouter, text: str) -> str:
    """A request's answer as a server gives it: written out, and not kept. Thousands of kept answers
    are the caller's own garbage collections."""
    return (await router.route(text)).to_json()


async def measure(data: Path, place: Path, requests: int) -> list[dict[str, object]]:
    texts = requests_of(data)
    crowd = [f"{texts[n % len(texts)]} {n}" for n in range(requests)]
    skills = copy_skills(data, place)
    settings = Settings(state_dir=place / "state", llm={"enabled": False})
    heart = Heartbeat()
    router = SemanticRouter(settings, roots=[skills])
    await router.open()
    ready_to_serve()
    async with heart.phase("nothing"):
        await asyncio.gather(*(asyncio.sleep(0) for _ in crowd))
    for name in ("crowd", "repeats"):
        async with heart.phase(name):
            await asyncio.gather(*(answered(router, text) for text in crowd))
    names = sorted(router.catalog.skills)
    async with heart.phase("reload"):
        for name in names[:EDITS]:
            path = router.catalog.skills[name].path
            path.write_text(path.read_text(encoding="utf-8") + "\nIt knits.\n", "utf-8")
            await router.reload()
    async with heart.phase("training"):
        labels = [
            Example(crowd[n % len(crowd)], (names[n % 50],), True, Source.FILE)
            for n in range(LABELS)
        ]
        store, known = router.learner._store, router.catalog.skills
        await asyncio.to_thread(lambda: store.add_many(labels, catalog=known))
        await router.learned()
    async with heart.phase("calibrating"):
        chance = np.random.default_rng(0)
        stated = chance.random(OUTCOMES)
        right = chance.random(OUTCOMES) < stated**2
        await router.learner.calibrate(
            (f"row {n}", "vector", float(p), bool(r))
            for n, (p, r) in enumerate(zip(stated, right, strict=True))
        )
    async with heart.phase("closing"):
        await router.aclose()
    return list(heart.figures())


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    options = parsed(parser)
    with tempfile.TemporaryDirectory() as place:
        rows = asyncio.run(measure(options.data, Path(place), options.requests))
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
