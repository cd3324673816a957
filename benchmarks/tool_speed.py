"""How quick and how large are thousands of tools in memory, and what does an adapter add?

The tools are those of StableToolBench and BFCL, some 5,700; more than that, and those of a run
without data, are made up from a fixed seed. The requests are StableToolBench's own queries.

``rank`` is one ranking over all tools, ``among 45`` one over 45 of them, ``add`` and ``remove`` one
change of the source until it is routable (``reload``). ``adapter`` is what ``OpenAITools.select``
takes for a turn that it has not seen, beyond ``rank`` of a ``SyncSemanticRouter`` over the same
tools. Each figure is given in milliseconds of wall time and
of the CPU time of the process; where other programs run, the CPU time and the least are to be
believed. ``mb_per_10000`` is by how much the resident memory of a process grows when it opens a
router over all tools, beyond the growth over a single tool, scaled. The definitions are the
caller's and were read before.

    python benchmarks/tool_speed.py [--data FOLDER] [--tools 5000] [--rounds 200] [--json]
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.inputs import give, parser_of, read, resident_bytes
from router import SemanticRouter, Settings, SyncSemanticRouter, ToolSource
from router.adapters.openai import OpenAITools

SEED: Final = 7
AMONG: Final = 45
CHANGES: Final = 20
ADAPTER_TOOLS: Final = 500


class Times:
    """Wall and CPU times of one thing, in milliseconds."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    async def take(self, work: Callable[[], Awaitable[Any]]) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        await work()
        self.wall.append((time.perf_counter() - wall) * 1e3)
        self.cpu.append((time.process_time() - cpu) * 1e3)

    def row(self, what: str, tools: int) -> dict[str, Any]:
        figures: dict[str, Any] = {"what": what, "tools": tools, "times": len(self.wall)}
        for kind, taken in (("wall", self.wall), ("cpu", self.cpu)):
            ordered = sorted(taken)
            figures[f"{kind}_least"] = ordered[0]
            figures[f"{kind}_p50"] = ordered[len(ordered) // 2]
            figures[f"{kind}_p95"] = ordered[int(0.95 * len(ordered))]
        return figures


def tools_of(data: Path | None, count: int) -> tuple[list[dict[str, Any]], list[str]]:
    """So many tools, and requests for some of them."""
    tools: list[dict[str, Any]] = []
    requests: list[str] = []
    if data is not None:
        for row in read(data / "stabletoolbench" / "tools.jsonl"):
            given = {
                one["name"]: {"type": one["type"].lower(), "description": one["description"]}
                for one in (*row["required"], *row["optional"])
            }
            tools.append(_tool(f"{row['tool']} {row['api']}", row["description"], given))
        for row in read(data / "bfcl" / "tools.jsonl"):
            given = (row["parameters"] or {}).get("properties", {})
            tools.append(_tool(row["name"], row["description"], given))
        requests = [row["query"] for row in read(data / "stabletoolbench" / "queries.jsonl")]
    random_ = random.Random(SEED)  # noqa: S311 - made-up words, no secrets
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(random_.choices(letters, k=random_.randint(4, 9))) for _ in range(3_000)]
    while len(tools) < count:
        text = random_.choices(words, k=random_.randint(12, 40))
        names = {word: {"description": " ".join(random_.choices(words, k=6))} for word in text[:4]}
        tools.append(_tool(text[0], " ".join(text), names))
    requests += [" ".join(random_.choices(words, k=8)) for _ in range(0 if requests else 500)]
    random_.shuffle(tools)
    random_.shuffle(requests)
    for number, tool in enumerate(tools):
        tool["name"] = f"{tool['name']}_{number}"
    return tools[:count], requests


def _tool(name: str, description: str | None, properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {
        "name": "_".join(name[:150].split()),
        "description": description or "",
        "input_schema": schema,
    }


async def timed(tools: list[dict[str, Any]], requests: list[str]) -> list[dict[str, Any]]:
    """Rankings and changes over all tools but some few, which come and go."""
    here, later = tools[:-CHANGES], tools[-CHANGES:]
    some = [tool["name"] for tool in here[:AMONG]]
    every, among, added, removed = Times(), Times(), Times(), Times()
    with tempfile.TemporaryDirectory() as state:
        settings = Settings(state_dir=Path(state), llm={"enabled": False})
        source = ToolSource(here)
        async with SemanticRouter(settings, sources=[source]) as router:
            for request in requests[:20]:  # what is made at the first use
                await router.rank(request)
            for request in requests[20:]:
                await every.take(lambda: router.rank(request))  # noqa: B023 - awaited at once
                # Another text, so that nothing is remembered of the one above.
                await among.take(lambda: router.rank(f"{request} .", available=some))  # noqa: B023
            for tool in later:
                await added.take(lambda: _changed(router, source.add, tool))  # noqa: B023
            for tool in later:
                await removed.take(lambda: _changed(router, source.remove, tool["name"]))  # noqa: B023
    rows = {"rank": every, f"among {AMONG}": among, "add": added, "remove": removed}
    return [times.row(what, len(here)) for what, times in rows.items()]


async def _changed(router: SemanticRouter, change: Callable[[Any], None], what: Any) -> None:
    change(what)
    await router.reload()


async def adapter(tools: list[dict[str, Any]], requests: list[str]) -> dict[str, Any]:
    """What the adapter adds to a ranking: pairs of both, one after the other."""
    definitions = [
        {"type": "function", "function": {"name": f"t{n}", "description": tool["description"]}}
        for n, tool in enumerate(tools[:ADAPTER_TOOLS])
    ]
    added = Times()
    settings = Settings(llm={"enabled": False})
    with (
        OpenAITools(definitions, timeout=60) as adapted,
        SyncSemanticRouter.from_tools(definitions, settings) as router,
    ):
        adapted.prepare()
        for number, request in enumerate(requests):
            ranked, selected = Times(), Times()

            async def rank() -> None:
                router.rank(f"{request} .")  # noqa: B023 - awaited at once

            async def select() -> None:
                adapted.select([{"role": "user", "content": request}])  # noqa: B023

            for times, work in ((ranked, rank), (selected, select))[:: 1 if number % 2 else -1]:
                await times.take(work)
            if number >= 20:
                added.wall.append(selected.wall[0] - ranked.wall[0])
                added.cpu.append(selected.cpu[0] - ranked.cpu[0])
    return added.row("adapter", len(definitions))


def resident_mb(count: int, data: Path | None) -> float:
    """By how much the resident memory of a fresh process grows with a router over so many tools."""
    command = [sys.executable, __file__, "--resident", "--tools", str(count)]
    command += ["--data", str(data)] if data else []
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


async def print_resident(tools: list[dict[str, Any]]) -> None:
    """Cold: what a process that has read and encoded all tools keeps of the system's memory."""
    before = resident_bytes()
    with tempfile.TemporaryDirectory() as state:
        settings = Settings(state_dir=Path(state), llm={"enabled": False})
        async with SemanticRouter.from_tools(tools, settings) as router:
            await router.rank("what will the weather be")
            print((resident_bytes() - before) / 1e6)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--tools", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--resident", action="store_true", help="print resident megabytes only")
    options = parser.parse_args()
    if options.resident:
        asyncio.run(print_resident(tools_of(options.data, options.tools)[0]))
        return
    tools, requests = tools_of(options.data, options.tools + CHANGES)
    requests = requests[: options.rounds + 20]
    rows = asyncio.run(timed(tools, requests))
    rows.append(asyncio.run(adapter(tools, requests)))
    grown = resident_mb(options.tools, options.data) - resident_mb(1, options.data)
    rows.append(
        {"what": "memory", "tools": options.tools, "mb_per_10000": grown / options.tools * 1e4}
    )
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
