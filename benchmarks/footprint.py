"""What does the router cost to have around: import, index, memory?

Each figure is taken in a fresh process: seconds and peak resident memory of ``import router``; of
a cold start over a folder of skills (everything encoded); of a warm start over the same (nothing
encoded), and resident memory after routing with it.

    python benchmarks/footprint.py --skills FOLDER [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.inputs import give

IMPORT = """
import json, resource, time
began = time.perf_counter()
import router
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "peak_mb": peak}))
"""

START = """
import asyncio, json, resource, sys, time
from router import SemanticRouter, Settings

async def main():
    encoded = []
    settings = Settings(state_dir=sys.argv[1], llm={"enabled": False})
    began = time.perf_counter()
    router = SemanticRouter.from_skills(
        sys.argv[2], settings=settings, progress=lambda done, total: encoded.append(total)
    )
    async with router:
        seconds = time.perf_counter() - began
        await router.route("rebase my branch")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        skills = len(router.catalog.skills)
    encoded = encoded[0] if encoded else 0
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "skills": skills, "encoded": encoded}))

asyncio.run(main())
"""


def run(code: str, *arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skills", required=True, help="folder of skills")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    run(IMPORT)  # warms the disk cache, so that the figures are the interpreter's
    with tempfile.TemporaryDirectory() as state:
        rows = [
            {"what": "import router", **run(IMPORT)},
            {"what": "cold start", **run(START, state, arguments.skills)},
            {"what": "warm start", **run(START, state, arguments.skills)},
        ]
    give(rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
