"""How often does the fuzzy cache answer, and how often with another request's answer?

Fills a cache with the training requests of a labelled data set and asks the test requests. A hit
whose intent is not the request's own is a false hit; a request that has no intent (out of scope)
can only be hit falsely. Beside the cache stand two trivial ones: Levenshtein similarity alone, on
lower-cased text and on normalised text without fillers.

The data folder holds ``clinc150/full.jsonl`` and ``banking77/{train,test}.jsonl`` with the fields
``text`` and ``intent``, in CLINC150 also ``split`` and ``oos``.

    python benchmarks/fuzzy_cache.py --data FOLDER [--json]        (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from benchmarks.inputs import give, parsed, parser_of, read
from router.numeric import wilson
from router.result import Decision, RoutingResult, Stage
from router.stages.fuzzy import FuzzyCache
from router.stages.wording import signature_of
from router.text import normalise

THRESHOLD = 0.75
Ask = Callable[[str], str | None]


@dataclass(frozen=True)
class Labelled:
    text: str
    intent: str


@dataclass(frozen=True)
class Data:
    name: str
    train: Sequence[Labelled]
    test: Sequence[Labelled]
    out_of_scope: Sequence[Labelled]


def load(folder: Path) -> list[Data]:
    clinc = read(folder / "clinc150" / "full.jsonl")
    banking = folder / "banking77"

    def part(split: str, *, oos: bool) -> list[Labelled]:
        return [
            Labelled(row["text"], row["intent"])
            for row in clinc
            if row["split"] == split and bool(row["oos"]) == oos
        ]

    train, test = (
        [Labelled(row["text"], row["intent"]) for row in read(banking / f"{split}.jsonl")]
        for split in ("train", "test")
    )
    return [
        Data("CLINC150", part("train", oos=False), part("test", oos=False), part("test", oos=True)),
        Data("BANKING77", train, test, []),
    ]


def answer(intent: str) -> RoutingResult:
    return RoutingResult(
        decision=Decision.ROUTE,
        selected_skills=(intent,),
        confidence=1.0,
        stage=Stage.LLM,
        id=intent,
    )


def gated(train: Sequence[Labelled]) -> Ask:
    cache = FuzzyCache(similarity_threshold=THRESHOLD, max_entries=len(train))

    async def fill() -> None:
        for row in train:
            await cache.learn(row.text, answer(row.intent))

    asyncio.run(fill())

    def ask(text: str) -> str | None:
        result = cache.find(text).result
        return None if result is None else result.selected_skills[0]

    return ask


def levenshtein_alone(train: Sequence[Labelled], prepare: Callable[[str], str]) -> Ask:
    held = [prepare(row.text) for row in train]

    def ask(text: str) -> str | None:
        best = process.extractOne(
            prepare(text),
            held,
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=THRESHOLD,
        )
        return None if best is None else train[best[2]].intent

    return ask


def measure(data: Data, what: str, ask: Ask) -> dict[str, Any]:
    answers = [(ask(row.text), row.intent) for row in data.test]
    hits = [(got, right) for got, right in answers if got is not None]
    false = sum(got != right for got, right in hits)
    return {
        "data": data.name,
        "cache": what,
        "requests": len(answers),
        "hits": len(hits),
        "hit_rate": len(hits) / len(answers),
        "hit_rate_95": wilson(len(hits), len(answers)),
        "false_hits": false,
        "false_hit_rate": false / len(hits) if hits else 0.0,
        "false_hit_rate_95": wilson(false, len(hits)),
        "out_of_scope_requests": len(data.out_of_scope),
        "out_of_scope_hits": sum(ask(row.text) is not None for row in data.out_of_scope),
    }


def main() -> None:
    options = parsed(parser_of(__doc__))
    rows: list[dict[str, Any]] = []
    for data in load(options.data):
        for what, ask in (
            ("fuzzy cache", gated(data.train)),
            ("Levenshtein, lower case", levenshtein_alone(data.train, str.lower)),
            (
                "Levenshtein, no fillers",
                levenshtein_alone(data.train, lambda text: signature_of(normalise(text)).core),
            ),
        ):
            rows.append(measure(data, what, ask))
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
