"""What do examples make of the whole router, without an LLM?

Skills are written to a folder and routed to with ``SemanticRouter``, learning off and on:

* clinc150, banking77: a skill for each intent, with its name as description and 10 examples in its
  manifest; the test requests, and for CLINC150 those out of scope.
* metatool: 199 tools by name and description. Of the single-tool queries 70% may be learnt from
  (all of them, or all of every second tool), 2,000 of the others are asked.
* skills: 572 real skills; half of the labelled requests are learnt, the other half asked, and the
  other way round.

``right`` is the share of requests that a skill serves whose selection is exactly right,
``precision`` that among the routed ones, ``offered`` the share whose skills are selected or
suggested, ``clarified`` the share that is answered by a question. ``accepted`` is the share of
requests that nothing serves which are routed all the same; ``others`` is ``right`` for requests
about skills without examples. ``ece_routes`` is the expected calibration error of the confidences
of routes (that the selection is right), ``ece`` that of all answers: where nothing is loaded the
confidence is that no skill serves the request, of which CLINC150's test part has more than other
traffic. Nothing is fitted on what is asked.

    python benchmarks/learnt_routes.py --data FOLDER [--rows FILE] [--json]
        [--encoder sentence-transformers --model FOLDER]         (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.inputs import encoder_of, give, options_of, read, say, write
from router import Decision, RoutingResult, SemanticRouter, Settings
from router.learning.evidence import EvidenceStore, Example, Source, evidence_file
from router.learning.metrics import expected_calibration_error, reliability_bins, risk_coverage
from router.numeric import wilson
from router.retrieval.encoders import Encoder
from router.skills.registry import SkillRegistry

SPLIT_SEED: Final = 0
LEARNT_SHARE: Final = 0.7
TOOL_QUERIES: Final = 2_000
CURVE_POINTS: Final = 100
FROM_MANIFESTS: Final = "10 each, in the manifests"


@dataclass(frozen=True)
class Labelled:
    """A request and the skills that serve it; none for one that nothing serves."""

    text: str
    skills: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """Skills on disk, what may be learnt, and what is asked."""

    data: str
    learnt: str
    folder: Path
    examples: Sequence[Labelled]
    asked: Sequence[Labelled]
    known: frozenset[str]
    """Skills that there are examples of."""


@dataclass(frozen=True)
class Answered:
    """One request, its answer, and how long that took."""

    row: Labelled
    result: RoutingResult
    milliseconds: float

    @property
    def right(self) -> bool:
        return set(self.result.selected_skills) == set(self.row.skills)

    @property
    def confirmed(self) -> bool:
        """Whether what the confidence is about came true."""
        return self.right if self.result.decision is Decision.ROUTE else not self.row.skills


def intents(data: Path, name: str, folder: Path) -> Task | None:
    parts = data / name / "fewshot_split"
    if not parts.is_dir():
        return None
    by_intent: dict[str, list[str]] = {}
    for row in read(parts / "train_10.jsonl"):
        by_intent.setdefault(row["intent"], []).append(row["text"])
    for intent, texts in by_intent.items():
        write_skill(folder, intent, intent.replace("_", " "), texts)
    asked = [Labelled(row["text"], (slug(row["intent"]),)) for row in read(parts / "test.jsonl")]
    if (parts / "oos" / "test.jsonl").exists():
        asked += [Labelled(row["text"], ()) for row in read(parts / "oos" / "test.jsonl")]
    known = frozenset(map(slug, by_intent))
    return Task(name, FROM_MANIFESTS, folder, (), asked, known)


def tools(data: Path, folder: Path) -> Iterator[Task]:
    if not (data / "metatool").is_dir():
        return
    names = sorted(row["name"] for row in read(data / "metatool" / "tools.jsonl"))
    for row in read(data / "metatool" / "tools.jsonl"):
        write_skill(folder, row["name"], row["description"], ())
    gold: dict[str, set[str]] = {}
    for row in read(data / "metatool" / "single_tool.jsonl"):
        gold.setdefault(row["query"], set()).add(row["tool"])
    rows = [Labelled(text, (slug(min(found)),)) for text, found in gold.items()]
    order = np.random.default_rng(SPLIT_SEED).permutation(len(rows))
    cut = int(LEARNT_SHARE * len(rows))
    learnt = [rows[n] for n in order[:cut]]
    asked = [rows[n] for n in order[cut:][:TOOL_QUERIES]]
    for title, known in (("all", names), ("every second tool", names[::2])):
        slugs = frozenset(map(slug, known))
        some = [row for row in learnt if slugs.issuperset(row.skills)]
        yield Task("metatool", title, folder, some, asked, slugs)


def skills(data: Path) -> Iterator[Task]:
    if not (data / "skill_requests").is_dir():
        return
    rows = [
        Labelled(row["request"], tuple(sorted(row["skills"])))
        for row in read(data / "skill_requests" / "dev.jsonl")
    ]
    order = np.random.default_rng(SPLIT_SEED).permutation(len(rows)).tolist()
    for half in (0, 1):
        learnt = [rows[n] for n in order[half::2]]
        asked = [rows[n] for n in order[1 - half :: 2]]
        known = frozenset(name for row in learnt for name in row.skills)
        title = f"{('one', 'the other')[half]} half of the requests"
        yield Task("skills", title, data / "skills" / "pool", learnt, asked, known)


def slug(name: str) -> str:
    """A skill's name for an intent or a tool."""
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()).strip("-")


def write_skill(folder: Path, name: str, description: str, examples: Sequence[str]) -> None:
    lines = ["---", f"name: {slug(name)}", f"description: {json.dumps(description)}"]
    if examples:
        lines += ["metadata:", "  examples: |", *(f"    {' '.join(t.split())}" for t in examples)]
    path = folder / slug(name) / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, "---", "", f"# {slug(name)}", ""]), encoding="utf-8")


async def answers(task: Task, encoder: Encoder, *, learning: bool) -> list[Answered]:
    with tempfile.TemporaryDirectory() as state:
        settings = Settings(
            state_dir=Path(state), llm={"enabled": False}, learning={"enabled": learning}
        )
        if learning:
            store = EvidenceStore(evidence_file(settings.state_dir), clock=time.time)
            labels = [Example(row.text, row.skills, True, Source.FILE) for row in task.examples]
            store.add_many(labels, catalog=SkillRegistry([task.folder]).catalog.skills)
            store.close()
        router = SemanticRouter(settings, roots=[task.folder], encoder=encoder)
        async with router:
            await router.learned()
            found = []
            for row in task.asked:
                began = time.perf_counter()
                result = await router.route(row.text, use_semantic_cache=False)
                found.append(Answered(row, result, (time.perf_counter() - began) * 1e3))
            return found


def figures(task: Task, learnt: str, found: Sequence[Answered]) -> dict[str, Any]:
    served = [item for item in found if item.row.skills]
    routed = [item for item in served if item.result.decision is Decision.ROUTE]
    right = [item for item in routed if item.right]
    needless = [item for item in found if not item.row.skills]
    others = [item for item in served if task.known.isdisjoint(item.row.skills)]
    row: dict[str, Any] = {
        "data": task.data,
        "learnt": learnt,
        "requests": len(served),
        "right": len(right) / len(served),
        "right_95": wilson(len(right), len(served)),
        "precision": len(right) / max(len(routed), 1),
        "offered": share(
            {*item.result.selected_skills, *item.result.suggested_skills} >= {*item.row.skills}
            for item in served
        ),
        "clarified": share(item.result.decision is Decision.CLARIFY for item in served),
    }
    if others:
        row["others"] = share(item.right for item in others)
    if needless:
        accepted = sum(item.result.decision is Decision.ROUTE for item in needless)
        row["accepted"] = accepted / len(needless)
        row["accepted_95"] = wilson(accepted, len(needless))
    row["ece_routes"] = calibration_error(
        [item for item in found if item.result.decision is Decision.ROUTE]
    )
    row["ece"] = calibration_error(found)
    row["p50_ms"] = statistics.median(item.milliseconds for item in found)
    return row


def calibration_error(found: Sequence[Answered]) -> float:
    return expected_calibration_error(
        [item.result.confidence for item in found], [item.confirmed for item in found]
    )


def share(these: Iterable[bool]) -> float:
    return statistics.fmean(these)


def curves(found: Sequence[Answered]) -> tuple[list[Any], list[Any]]:
    """Risk against coverage over all requests, and confidence against what came true."""
    confidences = [item.result.confidence for item in found]
    points = risk_coverage(
        [item.result.confidence if item.result.selected_skills else 0.0 for item in found],
        [item.right and bool(item.row.skills) for item in found],
    )
    step = max(1, len(points) // CURVE_POINTS)
    bins = reliability_bins(confidences, [item.confirmed for item in found])
    return (
        list(points[::-1][::step][::-1]),  # the last one is of all requests
        [(one.confidence, one.accuracy) for one in bins],
    )


async def measure(
    data: Path, encoder: Encoder
) -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    series: dict[str, Any] = {"risk_coverage": {}, "reliability": {}}
    with tempfile.TemporaryDirectory() as folder:
        tasks = [
            task
            for name in ("clinc150", "banking77")
            if (task := intents(data, name, Path(folder, name))) is not None
        ]
        tasks += [*tools(data, Path(folder, "metatool")), *skills(data)]
        for task in tasks:
            for learning in (False, True):
                learnt = task.learnt if learning else "nothing"
                say(f"{task.data}: learnt {learnt}, {len(task.asked):,} requests")
                found = await answers(task, encoder, learning=learning)
                rows.append(figures(task, learnt, found))
                name = f"{task.data}, learnt {learnt}"
                series["risk_coverage"][name], series["reliability"][name] = curves(found)
                lines += [
                    {
                        "data": task.data,
                        "learnt": learnt,
                        "request": number,
                        "skills": item.row.skills,
                        "decision": item.result.decision.value,
                        "selected": item.result.selected_skills,
                        "confidence": item.result.confidence,
                    }
                    for number, item in enumerate(found)
                ]
    return rows, series, lines


def main() -> None:
    options = options_of(__doc__)
    rows, series, lines = asyncio.run(measure(options.data, encoder_of(options)))
    if options.rows is not None:
        write(options.rows, lines)
    give(rows, as_json=options.json, series=series)


if __name__ == "__main__":
    main()
