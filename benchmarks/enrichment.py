"""What do requests that an LLM has written for each skill bring, without any LLM at request time?

Every catalog plain and enriched: 574 real skills, 48 everyday tools, the shipped skills, and the
intents of CLINC150 and BANKING77 by their names alone (asked what people wrote). For each kind of
request: ``hit@1``, ``recall@5``, the share that is ``routed``, and the share that is routed
``right`` (to labelled skills only) or ``exact`` (to all of them), each with its 95% interval for
the first and the last. For requests that nothing fits, ``routed`` is the share of false accepts.
``ece`` is the expected calibration error of the confidences of all routes of the catalog, and
``precision`` the share of them that is right. The requests that nothing fits are shorter than the
others in all of these catalogs, which makes them easier to tell: see ``likelihood.py``.

``requests`` rows keep only the first so many of the eight written requests of each real skill; the
first two are direct, the next four in everyday words, then a terse and a long one. ``kinds`` rows
keep only some of them.

The decision's coefficients (``router/stages/likelihood.py``) are those that ship. They were chosen
by leaving out whole catalogs, and then fitted on all of these.

    python benchmarks/enrichment.py --data FOLDER [--json]
        [--encoder minilm]                                        (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.inputs import encoder_of, give, options_of, read, say
from router.learning.metrics import expected_calibration_error
from router.numeric import wilson
from router.request import Request
from router.result import Decision
from router.retrieval.encoders import Encoder
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog, load_catalog
from router.skills.discovery import shipped_skills_root
from router.skills.enrichment import Enrichment
from router.skills.manifest import SkillManifest
from router.stages.from_ranking import RetrievalDecision
from router.stages.retrieval import decide

INTENT_REQUESTS: Final = 1_000
SEED: Final = 0
KINDS: Final = {"direct": (0, 2), "everyday": (2, 6), "terse and long": (6, 8)}
"""Places of the written requests of each kind, in the file of the real skills."""

Written = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Asked:
    """One labelled request, a follow-up with what was said before it; ``right`` are all skills that
    may be chosen for it."""

    request: Request
    skills: frozenset[str]
    right: frozenset[str]
    kind: str


@dataclass(frozen=True)
class Case:
    """A catalog, what was written for its skills, and what is asked of it."""

    name: str
    skills: Mapping[str, SkillManifest]
    written: Written
    asked: Sequence[Asked]


Pair = tuple[Asked, RetrievalDecision]


def labelled(path: Path, key: str = "skills") -> list[Asked]:
    return [
        Asked(
            Request.parse(row["request"], history=row.get("history", ())),
            frozenset(row[key]),
            frozenset((*row[key], *row.get("also_right", ()))),
            row["kind"],
        )
        for row in read(path)
    ]


def written_in(path: Path) -> Written:
    return {row["skill"]: row["requests"] for row in read(path)}


def manifest(name: str, description: str, body: str = "") -> SkillManifest:
    return SkillManifest(
        name=name, description=description, body=body, path=Path(name, "SKILL.md"), digest=name
    )


def tools(path: Path) -> dict[str, SkillManifest]:
    found = {}
    for entry in json.loads(path.read_text(encoding="utf-8")):
        tool = entry["function"]
        parameters = tool["parameters"].get("properties", {})
        body = "\n".join(f"- {name}: {p.get('description', '')}" for name, p in parameters.items())
        found[tool["name"]] = manifest(tool["name"], tool["description"], body)
    return found


def intents(folder: Path) -> Case:
    written = written_in(folder / "enrichment.jsonl")
    rows = read(folder / "fewshot_split" / "test.jsonl")
    chosen = np.random.default_rng(SEED).permutation(len(rows))[:INTENT_REQUESTS]
    asked = []
    for place in chosen.tolist():
        right = frozenset((rows[place]["intent"],))
        asked.append(Asked(Request(rows[place]["text"]), right, right, "human"))
    skills = {name: manifest(name, name.replace("_", " ")) for name in written}
    return Case(folder.name, skills, written, asked)


def cases(data: Path) -> Iterator[Case]:
    real, small = data / "skills", data / "small_catalogs"
    yield Case(
        "real skills",
        load_catalog([real / "pool"]).skills,
        written_in(real / "enrichment.jsonl"),
        labelled(data / "skill_requests" / "dev.jsonl"),
    )
    yield Case(
        "everyday tools",
        tools(small / "tools.json"),
        written_in(small / "tools_enrichment.jsonl"),
        labelled(small / "tool_requests.jsonl", "tools"),
    )
    shipped = load_catalog([shipped_skills_root()]).skills
    shipped_requests = labelled(small / "skill_requests.jsonl")
    yield Case("shipped skills", shipped, {}, shipped_requests)
    yield intents(data / "clinc150")
    yield intents(data / "banking77")


def enriched(case: Case, written: Written) -> Catalog:
    """The catalog with these requests, and without any that came with it where there are none."""
    return Catalog(
        {
            name: replace(skill, enrichment=Enrichment(skill=name, requests=tuple(written[name])))
            if written.get(name)
            else skill
            for name, skill in sorted(case.skills.items())
        }
    )


async def decided(
    case: Case, label: str, written: Written, encoder: Encoder, store: VectorStore
) -> list[Pair]:
    """What is asked of one catalog with some of its requests, and what was decided."""
    say(f"{case.name}: {label}")
    index = SkillIndex.build(enriched(case, written), encoder=encoder, store=store)
    return [(asked, await decide(asked.request, index)) for asked in case.asked]


def rows_of(name: str, label: str, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """One row for each kind of request, with what holds for all routes together."""
    routes = [(a, d) for a, d in pairs if d.decision is Decision.ROUTE]
    correct = [set(d.selected) <= a.right for a, d in routes]
    common: dict[str, Any] = {"catalog": name, "written": label}
    common["precision"] = float(np.mean(correct)) if correct else 0.0
    common["ece"] = expected_calibration_error([d.confidence for _, d in routes], correct)
    kinds = dict.fromkeys(asked.kind for asked, _ in pairs)
    return [common | figures(kind, [p for p in pairs if p[0].kind == kind]) for kind in kinds]


def figures(kind: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    count = len(pairs)
    routed = [decided.decision is Decision.ROUTE for _, decided in pairs]
    row: dict[str, Any] = {"kind": kind, "rows": count, "routed": sum(routed) / count}
    if kind == "none":
        return row | {"routed_95": wilson(sum(routed), count)}
    hits = sum(d.ranked[0] in a.right for a, d in pairs)
    found = [len(a.skills.intersection(d.ranked[:5])) / len(a.skills) for a, d in pairs]
    right = sum(r and set(d.selected) <= a.right for r, (a, d) in zip(routed, pairs, strict=True))
    exact = sum(r and set(d.selected) == a.skills for r, (a, d) in zip(routed, pairs, strict=True))
    return row | {
        "hit@1": hits / count,
        "hit@1_95": wilson(hits, count),
        "recall@5": float(np.mean(found)),
        "right": right / count,
        "right_95": wilson(right, count),
        "exact": exact / count,
    }


async def measure(data: Path, encoder: Encoder, store: VectorStore) -> list[dict[str, Any]]:
    rows = []
    for case in cases(data):
        parts: dict[str, Written] = {"as it is": {}}
        if case.written:
            parts["all"] = case.written
        if case.name == "real skills":
            for number in (1, 2, 4, 6):
                parts[f"requests 1-{number}"] = {
                    name: texts[:number] for name, texts in case.written.items()
                }
            for kind, (start, end) in KINDS.items():
                parts[f"kinds: {kind}"] = {
                    name: texts[start:end] for name, texts in case.written.items()
                }
        for label, written in parts.items():
            rows += rows_of(case.name, label, await decided(case, label, written, encoder, store))
    return rows


def main() -> None:
    options = options_of(__doc__)
    encoder = encoder_of(options)
    with tempfile.TemporaryDirectory() as folder:
        store = VectorStore(Path(folder), identity=encoder.identity)
        rows = asyncio.run(measure(Path(options.data), encoder, store))
        store.close()
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
