"""Does a route wait while the router learns?

A router over 150 skills of 10 examples each (CLINC150), without an LLM, answers a steady stream of
requests: as it is, and with feedback after every answer, which is stored durably and fits the local
model again and again in the background. Times are of the routes alone, each beginning after the
feedback on the one before; ``times`` is relative to the first line, in the same run. ``models`` is
how many were fitted meanwhile.

    python benchmarks/retraining.py --data FOLDER [--json]
        [--encoder sentence-transformers --model FOLDER]         (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.inputs import encoder_of, give, options_of, say
from benchmarks.learnt_routes import Task, intents
from router import SemanticRouter, Settings
from router.retrieval.encoders import Encoder

ROUTES: Final = 3_000
PAUSE: Final = 0.005
"""Seconds between two requests."""


async def stream(router: SemanticRouter, task: Task, *, feedback: bool) -> list[float]:
    """How long each of the requests took, in milliseconds."""
    taken = []
    for row in task.asked[:ROUTES]:
        began = time.perf_counter()
        result = await router.route(row.text, use_semantic_cache=False)
        taken.append((time.perf_counter() - began) * 1e3)
        if feedback:
            await router.feedback(result.id, row.skills)
        await asyncio.sleep(PAUSE)
    return taken


async def measure(data: Path, encoder: Encoder) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as state:
        task = intents(data, "clinc150", Path(folder))
        if task is None:
            raise SystemExit(f"{data}: no clinc150")
        settings = Settings(state_dir=Path(state), llm={"enabled": False})
        async with SemanticRouter(settings, roots=[task.folder], encoder=encoder) as router:
            await router.learned()
            say("a stream")
            alone = await stream(router, task, feedback=False)
            before = router.learner.status()["model"]["version"]
            say("the same with feedback")
            beside = await stream(router, task, feedback=True)
            models = router.learner.status()["model"]["version"] - before
    return [
        {"stream": name, "routes": len(taken), "models": count, **figures(taken, alone)}
        for name, taken, count in (("routes", alone, 0), ("routes and feedback", beside, models))
    ]


def figures(taken: list[float], baseline: list[float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for percent in (50, 99):
        ours, theirs = np.percentile(taken, percent), np.percentile(baseline, percent)
        found |= {f"p{percent}_ms": float(ours), f"p{percent}_times": float(ours / theirs)}
    return found


def main() -> None:
    options = options_of(__doc__)
    rows = asyncio.run(measure(options.data, encoder_of(options)))
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
