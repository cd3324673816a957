"""What a cluster costs and saves, with 1, 2, 4 and 8 processes around one Redis or Valkey.

    PYTHONPATH=.:tests python benchmarks/cluster.py [--processes 1 2 4 8] [--only QUESTION]

Four questions, each with its baseline in the same run:

* ``hit``: a shared exact hit (the look of the cache, as ``route`` does it) beside a bare GET of the
  same bytes by the same client.
* ``calls``: 50 identical requests in each process at once; how many calls of the LLM they make.
* ``learn``: a request decided in one process, asked of another at once; how long that takes.
* ``load``: exact hits a second of all processes together, beside as many that share nothing,
  and beside two of those.

The LLM is a plug-in that answers after 0.2 s. On a busy machine only ratios of one run mean
anything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from cascade import write_skill
from cluster_process import SteeredProcess
from servers.redis_server import RedisServer

from router.cluster.answers import SharedAnswers
from router.cluster.keys import Keys, entry_of
from router.cluster.link import Link
from router.cluster.members import Members
from router.events import Events
from router.settings.settings import Settings
from router.stages.conformance import kept_answer

HITS: Final = 2_000
LEARNT: Final = 100
LOAD: Final = 20_000


@asynccontextmanager
async def processes(
    folder: Path, number: int, url: str | None, namespace: str
) -> AsyncIterator[list[SteeredProcess]]:
    """Processes with the same skills; without an address they share nothing."""
    found = []
    for name in range(number):
        skills = folder / f"{namespace}-skills-{name}"
        write_skill(skills, "alpha", "Answers requests by number.")
        settings: dict[str, Any] = {
            "state_dir": str(folder / f"{namespace}-state-{name}"),
            "shipped_skills": False,
        }
        if url is not None:
            settings["cluster"] = {"url": url, "namespace": namespace}
        found.append(SteeredProcess(settings, skills))
    await asyncio.gather(*(process.start() for process in found))
    try:
        yield found
    finally:
        await asyncio.gather(*(process.close() for process in found))


async def hit(url: str, folder: Path) -> dict[str, Any]:
    """Microseconds of a bare GET and of a shared hit, in turns; medians."""
    settings = Settings(state_dir=folder / "hit", cluster={"url": url, "namespace": "hit"})
    link, keys = Link(settings.cluster, Events()), Keys("hit")
    members, answers = Members(link, keys), SharedAnswers(link, keys, settings)
    await answers.open()
    await members.begin("v1")
    text = "squash the last four commits on this branch"
    await answers.keep(text, "c", kept_answer("git"), similar=True)
    key = keys.answer(entry_of(text, "c"))

    async def timed(work: Callable[[], Awaitable[object]]) -> float:
        began = perf_counter()
        await work()
        return (perf_counter() - began) * 1e6

    bare, shared = [], []
    for _ in range(HITS):
        bare.append(await timed(lambda: link._redis.get(key)))
        shared.append(await timed(lambda: answers.find(text, "c", similar=True)))
    await answers.aclose()
    await members.aclose()
    await link.aclose()
    get, whole = statistics.median(bare), statistics.median(shared)
    return {"bare_get_us": get, "shared_hit_us": whole, "ratio": whole / get}


async def calls(found: list[SteeredProcess]) -> int:
    """LLM calls for 50 identical requests in each process at once."""
    text = "request number one"
    await asyncio.gather(*(p.ask("route", text=text) for p in found for _ in range(50)))
    return sum([(await process.ask("status"))["calls"] for process in found])


async def learn(found: list[SteeredProcess]) -> dict[str, float]:
    """Milliseconds of a route in another process, right after one has decided."""
    took = []
    for number in range(LEARNT):
        text = f"learn request {number} " + "xyz"[number % 3]
        await found[0].ask("route", text=text)
        answer = await found[-1].ask("route", text=text)
        if not answer["cached"]:
            raise RuntimeError(f"{text!r} was decided twice")
        took.append(answer["seconds"] * 1e3)
    took.sort()
    return {"p50_ms": statistics.median(took), "p99_ms": took[int(0.99 * len(took)) - 1]}


async def load(found: list[SteeredProcess]) -> float:
    """Exact hits a second, of all together."""
    texts = [f"load request {number}" for number in range(20)]
    for process in found:
        await process.ask("routes", texts=texts)
    began = perf_counter()
    await asyncio.gather(*(p.ask("routes", texts=(texts * (LOAD // len(texts)))) for p in found))
    return len(found) * LOAD / (perf_counter() - began)


async def measure(numbers: list[int], only: str | None) -> dict[str, Any]:
    """The figures, by question and number of processes."""
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server = RedisServer(folder)
        try:
            if only in (None, "hit"):
                report["hit"] = await hit(server.url, folder)
            for number in numbers:
                of = report.setdefault(f"{number} processes", {})
                async with processes(folder, number, server.url, f"n{number}") as found:
                    if only in (None, "calls"):
                        of["llm_calls"] = await calls(found)
                    if only in (None, "learn") and number > 1:
                        of["learn"] = await learn(found)
                    if only in (None, "load"):
                        of["hits_per_second"] = await load(found)
                if only in (None, "load"):
                    for local in sorted({number, 2}):
                        async with processes(folder, local, None, f"{number}of{local}") as found:
                            of[f"hits_per_second_of_{local}_sharing_nothing"] = await load(found)
        finally:
            server.close()
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--only", choices=("hit", "learn", "calls", "load"))
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.processes, given.only)), indent=2))
