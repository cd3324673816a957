"""How fast are the two caches, as ratios against plain baselines in the same run?

* exact ``get`` (a hit) against a bare dictionary look-up of the same texts;
* fuzzy ``find`` against one ``rapidfuzz.process.extractOne`` over the same texts with the same
  scorer and cut-off: identical requests, hits by another wording, hits by a typo, and misses,
  over 500 and over 100,000 entries.

Every figure is a median over single calls (exact: over rounds of a thousand calls). But for the
identical ones, the fuzzy requests are asked in spellings that no call before has asked, so their
normal forms come from no memo; the baseline runs after, and finds them there.

    python benchmarks/cache_speed.py [--sizes 500 100000] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from benchmarks.inputs import give
from router.result import Decision, RoutingResult, Stage
from router.stages.exact import ExactCache
from router.stages.fuzzy import FuzzyCache
from router.text import normalise


def words(text: str, between: str | None = None) -> list[str]:
    return text.split(between)


_VERBS = words(
    "fix open close review rename deploy test document profile migrate explain summarise translate "
    "refactor publish schedule archive compare benchmark visualise"
)
_THINGS = words(
    "parser scheduler dashboard pipeline database transaction connection certificate configuration "
    "notebook spreadsheet repository container dependency permission notification migration "
    "interface component middleware"
)
_PLACES = words(
    "billing checkout search onboarding reporting analytics inventory payments messaging accounts "
    "scheduling monitoring shipping identity catalogue storage streaming marketing support mobile"
)
_DETAILS = words(
    "before the release|after the outage|for the auditors|with better logging|without downtime"
    "|on the staging cluster|for the new customers|in the nightly build|from the command line"
    "|during the migration|for the weekly report|under heavy load",
    between="|",
)


def requests(count: int, seed: int) -> list[str]:
    """Distinct made-up requests."""
    choose = random.Random(seed)  # noqa: S311 - not for secrets
    made: dict[str, None] = {}
    while len(made) < count:
        made[
            f"{choose.choice(_VERBS)} the {choose.choice(_THINGS)} of the {choose.choice(_PLACES)} "
            f"service {choose.choice(_DETAILS)}, ticket {choose.randrange(count)}"
        ] = None
    return list(made)


def reworded(text: str) -> str:
    """The same request with other fillers."""
    return "Could you please " + text.replace(" the ", " ")


def misspelt(text: str) -> str:
    """The same request with two letters of its longest word swapped."""
    word = max(text.split(), key=len)
    return text.replace(word, word[:3] + word[4] + word[3] + word[5:])


def median_seconds(call: Callable[[str], object], texts: Sequence[str]) -> float:
    taken = []
    for text in texts:
        start = time.perf_counter()
        call(text)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def exact_rows(result: RoutingResult) -> list[dict[str, object]]:
    texts = requests(1000, seed=1)
    bare = dict.fromkeys(texts, result)
    cache: ExactCache[RoutingResult] = ExactCache(max_entries=1000)
    for text in texts:
        cache.set(text, result, "context")
    baseline, measured = [], []
    for _ in range(101):
        start = time.perf_counter()
        for text in texts:
            bare[text]
        baseline.append((time.perf_counter() - start) / len(texts))
        start = time.perf_counter()
        for text in texts:
            cache.get(text, "context")
        measured.append((time.perf_counter() - start) / len(texts))
    return [
        row(
            "exact get, hit", 1000, statistics.median(measured), statistics.median(baseline), "dict"
        )
    ]


async def fuzzy_rows(result: RoutingResult, size: int, repeats: int) -> list[dict[str, object]]:
    texts = requests(size + repeats, seed=2)
    held, others = texts[:size], texts[size:]
    cache = FuzzyCache(max_entries=size)
    start = time.perf_counter()
    for text in held:
        await cache.learn(text, result)
    seconds = time.perf_counter() - start
    print(f"# {size:,} entries learned in {seconds:.1f} s", file=sys.stderr)
    asked = random.Random(3).sample(held, min(repeats, size))  # noqa: S311 - not for secrets
    normal = [normalise(text) for text in held]

    def scan(text: str) -> object:
        return process.extractOne(
            normalise(text), normal, scorer=Levenshtein.normalized_similarity, score_cutoff=0.75
        )

    rows = []
    for name, queries, hits in (
        ("identical", asked, True),
        ("other wording", [reworded(text) for text in asked], True),
        ("typo", [misspelt(text) for text in asked], True),
        ("miss, near", others, False),
        ("miss, far", [f"what is the capital of country {n}?" for n in range(repeats)], False),
    ):
        measured = median_seconds(cache.find, queries)
        baseline = median_seconds(scan, queries)
        hit_share = sum(cache.find(q).result is not None for q in queries) / len(queries)
        if hits != (hit_share > 0.5):
            raise SystemExit(f"{name}: {hit_share:.0%} hits; the rows would mislead")
        rows.append(row(f"fuzzy find, {name}", size, measured, baseline, "extractOne"))
    return rows


def row(
    what: str, entries: int, seconds: float, baseline_seconds: float, baseline: str
) -> dict[str, object]:
    return {
        "what": what,
        "entries": entries,
        "microseconds": seconds * 1e6,
        "baseline": baseline,
        "baseline_microseconds": baseline_seconds * 1e6,
        "times_baseline": seconds / baseline_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 100_000])
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    result = RoutingResult(
        decision=Decision.ROUTE,
        selected_skills=("debugging",),
        mission_brief="Fix it.",
        reasoning="It fits.",
        confidence=0.9,
        stage=Stage.LLM,
        catalog_version="0",
        id="0",
    )
    rows = exact_rows(result)
    for size in options.sizes:
        rows += asyncio.run(fuzzy_rows(result, size, repeats=300 if size <= 1000 else 60))
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
