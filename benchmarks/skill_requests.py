"""How well does the router pick skills without an LLM?

Routes labelled requests over a folder of real skills, with the thresholds that the product ships
with, and prints a table by kind of request: hit@1, recall@5, and the share of requests that are
routed (for requests that nothing fits: falsely accepted). Beside the router stand textbook BM25
(k1 = 1.2, b = 0.75) over name, description and 1,500 characters of the body, the encoder alone
(cosine to name and description), and reciprocal rank fusion (k = 60) of the two; they cannot
refuse, so their last column is empty. ``--ablate`` repeats the router with one source left out.

The data folder holds ``skill_requests/dev.jsonl`` ({"request", "skills", "kind"}) and the skills
under ``skills/pool``.

    python benchmarks/skill_requests.py --data FOLDER [--ablate] [--rows OUT] [--json]
        [--encoder sentence-transformers --model FOLDER]         (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.baselines import bm25, cosine, rank_fusion
from benchmarks.inputs import give, parsed, parser_of, with_encoder, write
from router import SemanticRouter, Settings
from router.evaluation import Judgement, LabelledRequest, hit_at_1, judge, read_rows, recall_at
from router.retrieval import scoring
from router.retrieval.configured_encoder import build_encoder
from router.retrieval.encoders import Encoder
from router.skills.manifest import SkillManifest

DEPTH = 5
BODY_CHARACTERS = 1_500


@dataclass(frozen=True)
class Line:
    """One method on one kind of request; None where a figure does not apply."""

    method: str
    kind: str
    rows: int
    hit_at_1: float | None
    recall_at_5: float | None
    routed: float | None


def table_of(method: str, kinds: Sequence[str], judged: Sequence[Judgement]) -> list[Line]:
    lines = []
    for kind in kinds:
        rows = [j for j in judged if j.row.kind == kind]
        labelled = [j for j in rows if j.row.skills]
        routed = mean([j.decision == "route" for j in rows])
        hits = mean([hit_at_1(j.ranking, j.row.skills) for j in labelled])
        recall = mean([recall_at(j.ranking, j.row.skills, DEPTH) for j in labelled])
        lines.append(Line(method, kind, len(rows), hits, recall, routed))
    return lines


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


async def route_all(
    router: SemanticRouter, rows: Sequence[LabelledRequest], method: str
) -> list[Judgement]:
    """Every request by itself: a scope of its own keeps cached answers away from it."""
    judged = []
    for number, row in enumerate(rows):
        scope = f"{method} {number}"
        result = await router.route(row.request, scope=scope, use_semantic_cache=False)
        judged.append(judge(row, result, milliseconds=0.0))
    return judged


@contextmanager
def without(source: str) -> Iterator[None]:
    """Fusion with one source's weight at 0."""
    name = f"{source.upper()}_WEIGHT"
    weight = getattr(scoring, name)
    setattr(scoring, name, 0.0)
    try:
        yield
    finally:
        setattr(scoring, name, weight)


def baselines(
    skills: Sequence[SkillManifest], encoder: Encoder, rows: Sequence[LabelledRequest]
) -> Iterator[tuple[str, list[Line]]]:
    heads = [f"{skill.name.replace('-', ' ')}. {skill.description}" for skill in skills]
    lexical = bm25(
        [
            f"{head} {skill.body[:BODY_CHARACTERS]}"
            for head, skill in zip(heads, skills, strict=True)
        ]
    )
    dense = cosine(encoder, heads)
    names = [skill.name for skill in skills]
    kinds = kinds_of(row for row in rows if row.skills)
    for method, source in (
        ("BM25", lexical),
        ("encoder", dense),
        ("rank fusion of both", rank_fusion(lexical, dense)),
    ):
        lines = []
        for kind in kinds:
            some = [row for row in rows if row.kind == kind]
            ranked = [
                [names[i] for i in np.argsort(-source(row.request), kind="stable")[:DEPTH]]
                for row in some
            ]
            pairs = list(zip(ranked, some, strict=True))
            hits = mean([hit_at_1(best, row.skills) for best, row in pairs])
            recall = mean([recall_at(best, row.skills, DEPTH) for best, row in pairs])
            lines.append(Line(method, kind, len(some), hits, recall, None))
        yield method, lines


def kinds_of(rows: Iterator[LabelledRequest] | Sequence[LabelledRequest]) -> list[str]:
    return list(dict.fromkeys(row.kind or "all" for row in rows))


async def measure(arguments: argparse.Namespace, state: Path) -> tuple[list[Line], list[Judgement]]:
    data = arguments.data
    settings = Settings(
        state_dir=state,
        llm={"enabled": False},
        encoder={"kind": arguments.encoder, "model": arguments.model},
    )
    encoder = build_encoder(settings)
    with (data / "skill_requests" / "dev.jsonl").open("rb") as file:
        rows = read_rows(file, source=file.name)
    kinds = kinds_of(rows)
    lines: list[Line] = []
    async with SemanticRouter(
        settings, roots=[data / "skills" / "pool"], encoder=encoder
    ) as router:
        for _, some in baselines(router.catalog.routable, encoder, rows):
            lines += some
        judged = await route_all(router, rows, "router")
        lines += table_of("router", kinds, judged)
        for source in ("lexical", "dense", "examples") if arguments.ablate else ():
            method = f"router without {source}"
            with without(source):
                lines += table_of(method, kinds, await route_all(router, rows, method))
    return lines, judged


def main() -> None:
    parser = with_encoder(parser_of(__doc__))
    parser.add_argument("--ablate", action="store_true", help="leave out each source in turn")
    parser.add_argument("--rows", type=Path, help="write one JSON object a request to this file")
    arguments = parsed(parser)
    with tempfile.TemporaryDirectory() as state:
        lines, judged = asyncio.run(measure(arguments, Path(state)))
    if arguments.rows:
        write(arguments.rows, [judgement.to_dict() for judgement in judged])
    give([vars(line) for line in lines], as_json=arguments.json)


if __name__ == "__main__":
    main()
