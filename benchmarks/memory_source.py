"""How long it takes until skills that a program holds in memory are routable.

It opens a router over 1,000 skills in memory, cold (an empty state folder) and again, then adds and
removes one at a time, and prints the median and the 95th percentile of the time from the call to
the end of ``reload``. The texts are made up from a fixed seed, 12 to 40 words each.

    python benchmarks/memory_source.py [--skills 1000] [--rounds 30]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from pathlib import Path

from router import SemanticRouter, Settings
from router.skills.manifest import SkillManifest
from router.skills.memory_source import MemorySource


def made_up(count: int, *, seed: int = 7) -> list[SkillManifest]:
    """Skills with random texts over 3,000 words."""
    random_ = random.Random(seed)  # noqa: S311 - made-up words, no secrets
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(random_.choices(letters, k=random_.randint(4, 9))) for _ in range(3_000)]
    return [
        SkillManifest.in_memory(
            f"skill-{number}", " ".join(random_.choices(words, k=random_.randint(12, 40)))
        )
        for number in range(count)
    ]


async def opened(settings: Settings, source: MemorySource) -> float:
    """Seconds from nothing to an open router."""
    began = time.perf_counter()
    async with SemanticRouter(settings, sources=[source]):
        return time.perf_counter() - began


async def measure(count: int, rounds: int) -> None:
    """Print the table."""
    skills = made_up(count + rounds)
    with tempfile.TemporaryDirectory() as state:
        settings = Settings(state_dir=Path(state), llm={"enabled": False})
        source = MemorySource(skills[:count])
        print(f"{count:,} skills in memory")
        print(f"  opened cold   {await opened(settings, source):6.2f} s")
        print(f"  opened again  {await opened(settings, source):6.2f} s")
        async with SemanticRouter(settings, sources=[source]) as router:
            for label in ("added", "removed"):
                taken = []
                for skill in skills[count:]:
                    began = time.perf_counter()
                    if label == "added":
                        source.add(skill)
                    else:
                        source.remove(skill.name)
                    await router.reload()
                    taken.append((time.perf_counter() - began) * 1000)
                p95 = sorted(taken)[int(0.95 * len(taken))]
                print(f"  one {label:8}  {statistics.median(taken):6.1f} ms (p95 {p95:.1f})")


def main() -> None:
    """Read the options, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skills", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    asyncio.run(measure(options.skills, options.rounds))


if __name__ == "__main__":
    main()
