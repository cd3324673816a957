"""How do the time of a local decision and memory grow with the number of skills?

Made-up skills, 10 to 100,000, each size in a process of its own, indexed through the product's own
classes: ``SkillIndex`` over a ``Catalog`` made in memory, and a fresh Chroma store. Then requests,
half of them about some skill in other words than its own and half about none, one after the other
through the local decision (``router.stages.retrieval``): encoding, retrieval, fusion, verdict.

Skills are verb, object, system and setting, drawn without repetition, in one of several wordings.
Systems are made of syllables, one new one for every ten skills, so the vocabulary grows with the
catalog as it does in texts (Heaps). Bodies are about 60 words: real ones are ten times as long,
which costs indexing time and memory, but hardly any time of a decision.

``best_found`` is the share of requests whose best match scores what the best of all skills scores:
large catalogs are not scored whole. Many of these skills differ in words that no request names, so
what is missed is close. The ``growth`` of a row is the slope of log p50 over log size since the row
before: 0 is constant, 1 linear.

With ``--examples`` each skill has so many written requests (up to 8), as an enriched catalog has.

    python benchmarks/catalog_size.py [--sizes 10 100 ...] [--examples 8] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.inputs import give, resident_bytes, say
from router.request import Request
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest
from router.stages.retrieval import decide

SIZES = (10, 100, 1_000, 10_000, 100_000)
REQUESTS = 400
WARM_UP = 20
COMPARED = 100
"""Requests whose ranking is compared with that of scoring all skills."""
SEED = 7
SKILLS_A_SYSTEM = 10


def words(text: str, between: str | None = None) -> list[str]:
    return [" ".join(word.split()) for word in text.split(between)]


# What is done, its noun, and how somebody asks for it who does not know the skill.
VERBS = [
    words(entry, "/")
    for entry in words(
        """audit/auditing/check whether we can trust|migrate/migration/move over
        |summarise/summaries/give me the gist of|validate/validation/make sure nothing is wrong with
        |translate/translation/put into French|schedule/scheduling/plan ahead
        |visualise/charts/draw me a picture of|refactor/refactoring/clean up
        |deploy/deployment/put live|monitor/monitoring/keep an eye on
        |reconcile/reconciliation/find out why we disagree about|archive/archiving/put away for good
        |benchmark/benchmarks/find out how fast we are at
        |encrypt/encryption/keep strangers away from
        |document/documentation/write down how we handle|forecast/forecasting/guess next month's
        |import/imports/bring in|export/exports/send out
        |deduplicate/deduplication/throw out the doubles among
        |classify/classification/sort into piles|negotiate/negotiation/get a better price for
        |transcribe/transcription/type up|annotate/annotation/add remarks to
        |restore/recovery/get back""",
        "|",
    )
]
OBJECTS = words(
    "invoices contracts spreadsheets dashboards notebooks containers certificates backups tickets "
    "payroll meetings photographs recipes itineraries prescriptions timetables shipments leases "
    "subscriptions passwords changelogs migrations queries transcripts podcasts slides datasets "
    "warranties donations auctions blueprints genomes telescopes orchards vineyards turbines"
)
SETTINGS = words(
    "a small clinic|the sales team|a law firm|remote engineers|school teachers|a museum|night "
    "shifts|the finance department|a newsroom|airport staff|volunteer groups|a research laboratory|"
    "film crews|city councils|farmers|first-year students",
    "|",
)
WORDINGS = (
    "{Verb} {object} kept in {system} for {setting}. Use when somebody needs {noun} of {object}.",
    "Helps {setting} to {verb} {object} with {system}, including {noun} in bulk and by hand.",
    "{Noun} of {object}: connects to {system}, asks what {setting} need, then reports back.",
    "Step-by-step {noun} for {object} in {system}. Triggers on questions of {setting}.",
)
ASKED = (
    "{asked} the {object} in {system}",
    "{verb} our {object} for {setting}, please",
    "the {object} that {setting} keep in {system} need {noun}",
    "{asked} what {setting} have in {system}",
    "somebody of {setting} asks for {noun} of {object}",
    "can {system} help us to {verb} {object}?",
    "{noun} {object} {system}",
    "{setting} wait for the {object}: open {system} and {asked} all of them before tonight",
)
BODY = """# {Noun} of {object}

## When to use
Somebody of {setting} wants to {verb} {object}, or mentions {system}.

## Steps
1. Open {system} and list the {object} that are concerned.
2. Ask which of them matter to {setting}, and what may not change.
3. {Verb} them one by one, and keep a record of each step.
4. Compare the outcome with what was asked, and report what is left.
"""
STRAY = words(
    "what is the capital of Mongolia|tell me a joke about penguins|how tall is that tower in Paris|"
    "my knee hurts when I climb stairs|who won the cup final in 1998|good morning, how are you|"
    "write a poem for my grandmother|is it going to rain tomorrow",
    "|",
)
SYLLABLES = words(
    "ba be bo ca ce da de do fa fe ga go ka ke ki la le lo ma me mi na ne no pa pe po ra re ri ro "
    "sa se so ta te to va ve vo xa xe za ze zo"
)


def skills(count: int, examples: int) -> Iterator[SkillManifest]:
    """The first ``count`` skills; a larger catalog begins with the smaller one's."""
    choose = random.Random(SEED)  # noqa: S311 - not for secrets
    systems = ["".join(parts).capitalize() for parts in product(SYLLABLES, repeat=3)]
    choose.shuffle(systems)
    taken: set[str] = set()
    for number in range(count):
        name = ""
        while not name or name in taken:
            verb, noun, asked = choose.choice(VERBS)
            thing, setting = choose.choice(OBJECTS), choose.choice(SETTINGS)
            system = systems[choose.randrange(number // SKILLS_A_SYSTEM + 1)]
            name = f"{system}-{verb}-{thing}".lower()
        taken.add(name)
        texts = {"verb": verb, "noun": noun, "object": thing, "system": system, "setting": setting}
        texts |= {"Verb": verb.capitalize(), "Noun": noun.capitalize(), "asked": asked}
        description = choose.choice(WORDINGS).format(**texts)
        yield SkillManifest(
            name=name,
            description=description,
            body=BODY.format(**texts),
            path=Path(name, "SKILL.md"),
            digest=hashlib.sha256(name.encode()).hexdigest(),
            examples=tuple(example.format(**texts) for example in ASKED[:examples]),
        )


def requests(count: int) -> list[str]:
    choose = random.Random(SEED + 1)  # noqa: S311 - not for secrets
    made = []
    for number in range(count):
        if number % 2:
            *_, asked = choose.choice(VERBS)
            made.append(f"{asked} the {choose.choice(OBJECTS)}, case {number}")
        else:
            made.append(f"{choose.choice(STRAY)}, question {number}")
    return made


def megabytes_of(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


async def agreement(index: SkillIndex, names: list[str]) -> float:
    """The share of requests whose best match is that of scoring all skills, which naming all of
    them asks for."""
    some = requests(COMPARED)
    pairs = [(await index.rank(r), await index.rank(r, among=names)) for r in some]
    alike = [math.isclose(a.matches[0].score, b.matches[0].score, abs_tol=1e-5) for a, b in pairs]
    return sum(alike) / len(alike)


async def measure(size: int, examples: int) -> dict[str, Any]:
    encoder = BundledEncoder()
    catalog = Catalog({skill.name: skill for skill in skills(size, examples)})
    before = resident_bytes()
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        store = VectorStore(Path(folder), identity=encoder.identity)
        index = SkillIndex.build(catalog, encoder=encoder, store=store)
        built = time.perf_counter() - began
        taken = []
        for request in requests(WARM_UP + REQUESTS):
            began = time.perf_counter()
            await decide(Request(request), index)
            taken.append((time.perf_counter() - began) * 1e3)
        memory = (resident_bytes() - before) / 2**20
        best_found = await agreement(index, list(catalog.skills))
        on_disk = megabytes_of(Path(folder))
        index.close()
    p50, p99 = np.percentile(taken[WARM_UP:], [50, 99])
    return {
        "skills": size,
        "examples": examples,
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "best_found": best_found,
        "index_memory_mb": memory,
        "index_disk_mb": on_disk,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "build_seconds": built,
    }


def in_a_process(size: int, examples: int) -> dict[str, Any]:
    say(f"{size:,} skills")
    command = [sys.executable, __file__, "--alone", str(size), "--examples", str(examples)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--examples", type=int, default=0, help="written requests of each skill")
    parser.add_argument("--alone", type=int, help="measure one size in this process")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.alone is not None:
        print(json.dumps(asyncio.run(measure(options.alone, options.examples))))
        return
    rows = [in_a_process(size, options.examples) for size in sorted(options.sizes)]
    for less, row in pairwise(rows):
        row["growth"] = math.log(row["p50_ms"] / less["p50_ms"], row["skills"] / less["skills"])
    latency = {"x": [row["skills"] for row in rows]}
    latency |= {name: [row[name] for row in rows] for name in ("p50_ms", "p99_ms")}
    give(rows, as_json=options.json, series={"latency": latency})


if __name__ == "__main__":
    main()
