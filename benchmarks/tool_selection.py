"""Which of 199 tools does a request need, and does it need one at all?

MetaTool's single-tool queries, of which 70% (drawn by a fixed seed) may be learnt from and the
others are asked. ``learnt`` says how many of them: none, that is, names and descriptions alone; 3
of each tool; all; or all of every second tool and none of the others, for which ``ndcg@5_others``
is the figure of the queries about the others. "retrieval" is the product's index. "head" is fitted
on the learnt queries and on each tool's name and description as one example more; "head and
retrieval" adds the index' score times a fixed weight.

``refused`` is the share of needless requests below the score that 90% of the others reach.
MetaTool's own questions of whether a tool is needed at all are never learnt from, except in the
row that says so: one half of the needless ones as examples of "none", the other half asked, and the
other way round. BFCL has no tool in common between its questions, so no tool can be learnt; each
question has its own few functions, none of which is right for the irrelevant ones. "parameters"
says that the names and descriptions of a function's parameters are read too, as a skill's body.
"retrieval, fits" is the product's own estimate of whether anything fits, "retrieval, score" the
index' score of the best tool, and "words expressed" how much of a tool's wording the request
expresses (``baselines.expressed``). That one was found among more than fifty on one half of BFCL,
so all figures of BFCL are of the other half; the halves are by a hash of the question's id.

    python benchmarks/tool_selection.py --data FOLDER [--rows FILE] [--json]
        [--encoder sentence-transformers --model FOLDER]         (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.baselines import Floats, bm25, expressed
from benchmarks.bfcl import Bfcl
from benchmarks.classifiers import (
    NONE,
    Classifier,
    Examples,
    class_mean,
    head,
    nearest_example,
)
from benchmarks.inputs import encoder_of, give, options_of, read, say, write
from benchmarks.metrics import mean_95, refusal_figures
from benchmarks.tool_index import Refusals, Tool, indexed, judged
from router.evaluation import hit_at_1, ndcg_at
from router.numeric import wilson
from router.retrieval.encoders import Encoder
from router.retrieval.index import SkillIndex

LEARNT_SHARE: Final = 0.7
FEW: Final = 3
DEPTH: Final = 5
RETRIEVAL_WEIGHT: Final = 2.0
"""Of the index' fused score beside the head's; chosen on the part that may be learnt from."""
SEED: Final = 0


@dataclass(frozen=True)
class Rankings:
    """One method's scores of all tools, shape (queries, tools)."""

    method: str
    learnt: str
    table: Floats


class MetaTool:
    """The tools, and their queries in two parts. A query's label is its tool; some few have two, of
    which either is right, and the first is learnt. Places are those of the distinct queries."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        rows = read(folder / "tools.jsonl")
        self.tools = sorted(Tool(row["name"], row["description"]) for row in rows)
        self.names = [tool.name for tool in self.tools]
        texts = [tool.text for tool in self.tools]
        self.described = Examples(texts, self.names, encoder.encode(texts))
        right: dict[str, set[str]] = {}
        for row in read(folder / "single_tool.jsonl"):
            right.setdefault(row["query"], set()).add(row["tool"])
        say(f"metatool: encoding {len(right):,} queries")
        queries = list(right)
        every = Examples(queries, [min(right[q]) for q in queries], encoder.encode(queries))
        order = np.random.default_rng(SEED).permutation(len(queries))
        cut = int(LEARNT_SHARE * len(queries))
        self.asked_places = order[cut:].tolist()
        self.learnt, self.asked = every.some(order[:cut]), every.some(order[cut:])
        self.gold = [sorted(right[query]) for query in self.asked.texts]
        awareness = read(folder / "task1_awareness.jsonl")
        texts = [row["query"] for row in awareness]
        labels = [row["tool"] if row["needs_tool"] else NONE for row in awareness]
        about = Examples(texts, labels, encoder.encode(texts))
        self.needed_places = [n for n, label in enumerate(labels) if label != NONE]
        self.needless_places = [n for n, label in enumerate(labels) if label == NONE]
        self.needed, self.needless = (
            about.some(places) for places in (self.needed_places, self.needless_places)
        )

    def few(self, each: int) -> Examples:
        """The first learnt queries of each tool."""
        seen = dict.fromkeys(self.names, 0)
        chosen = []
        for place, label in enumerate(self.learnt.labels):
            if seen[label] < each:
                seen[label] += 1
                chosen.append(place)
        return self.learnt.some(chosen)

    def every_second(self) -> Examples:
        """All that is learnt about every second tool."""
        known = set(self.names[::2])
        places = (n for n, label in enumerate(self.learnt.labels) if label in known)
        return self.learnt.some(places)

    def others(self) -> list[int]:
        """The asked queries about the other tools."""
        known = set(self.names[::2])
        return [place for place, right in enumerate(self.gold) if not known & set(right)]

    def scores(self, classifier: Classifier) -> Floats:
        """Of all tools for the asked queries; minus infinity where nothing is known of a tool."""
        found = classifier.table(self.asked.texts, self.asked.vectors)
        table = np.full((len(found), len(self.names)), -np.inf)
        places = {name: place for place, name in enumerate(self.names)}
        table[:, [places[name] for name in classifier.classes]] = found
        return table

    async def rankings(self, index: SkillIndex) -> list[Rankings]:
        texts = self.asked.texts
        say("metatool: retrieval")
        retrieved = np.stack([await index.scores(text, self.names) for text in texts])
        words = bm25(self.described.texts)
        found = [
            Rankings("BM25", "none", np.stack([words(text) for text in texts])),
            Rankings("encoder", "none", self.asked.vectors @ self.described.vectors.T),
            Rankings("retrieval", "none", retrieved),
        ]
        for learnt, queries in (
            ("none", self.learnt.some([])),
            (f"{FEW} of each tool", self.few(FEW)),
            ("of every second tool", self.every_second()),
            ("all", self.learnt),
        ):
            say(f"metatool: learning {learnt}")
            table = self.scores(head(self.described.plus(queries)))
            found.append(Rankings("head", learnt, table))
            both = table + RETRIEVAL_WEIGHT * retrieved
            found.append(Rankings("head and retrieval", learnt, both))
        for method, made in (("nearest query", nearest_example), ("class mean", class_mean)):
            found.append(Rankings(method, "all", self.scores(made(self.learnt))))
        return found

    async def refusals(self, index: SkillIndex, encoder: Encoder) -> list[Refusals]:
        say("metatool: needed or not")
        parts = (self.needed, self.needless)
        words = bm25(self.described.texts)
        # The needed ones are among the queries to learn from.
        asked = {*self.needed.texts, *self.needless.texts}
        learnt = self.learnt.some(n for n, t in enumerate(self.learnt.texts) if t not in asked)
        both = self.described.plus(learnt)
        near, ours = nearest_example(learnt), head(both)
        retrieved = [await judged(index, p.texts, [None] * len(p.texts)) for p in parts]
        all_tools = range(len(self.tools))
        worded = (
            expressed(encoder, self.described.texts, p.texts, [all_tools] * len(p.texts))
            for p in parts
        )
        return [
            Refusals("BM25", "none", *(np.array([words(t).max() for t in p.texts]) for p in parts)),
            Refusals(
                "encoder",
                "none",
                *((p.vectors @ self.described.vectors.T).max(axis=1) for p in parts),
            ),
            Refusals("retrieval, fits", "none", *(some["fits"] for some in retrieved)),
            Refusals("retrieval, score", "none", *(some["score"] for some in retrieved)),
            Refusals("words expressed", "none", *worded),
            Refusals(
                "nearest query", "all", *(near.answers(p.texts, p.vectors).scores for p in parts)
            ),
            Refusals("head", "all", *(ours.answers(p.texts, p.vectors).scores for p in parts)),
            Refusals("head", "all, and half of the needless", *self.with_none(both)),
        ]

    def with_none(self, learnt: Examples) -> tuple[Floats, Floats]:
        """The head's scores with the needless ones cross-fitted in halves. The needed ones, of
        which none is learnt, take the mean of both."""
        count = len(self.needless.texts)
        needed, needless = np.zeros(len(self.needed.texts)), np.zeros(count)
        for half in (0, 1):
            fitted = head(learnt.plus(self.needless.some(range(half, count, 2))))
            needed += fitted.answers(self.needed.texts, self.needed.vectors).scores / 2
            asked = self.needless.some(range(1 - half, count, 2))
            needless[1 - half :: 2] = fitted.answers(asked.texts, asked.vectors).scores
        return needed, needless


def ranked(table: Floats, names: Sequence[str]) -> list[list[str]]:
    """The best tools of each query."""
    best = np.argsort(-table, axis=1, kind="stable")[:, :DEPTH]
    return [[names[place] for place in row] for row in best]


def ranking_row(found: Rankings, data: MetaTool) -> dict[str, Any]:
    best = ranked(found.table, data.names)
    first = [hit_at_1(some, right) for some, right in zip(best, data.gold, strict=True)]
    ndcg = np.array(
        [ndcg_at(some, right, DEPTH) for some, right in zip(best, data.gold, strict=True)]
    )
    return {
        "data": "metatool",
        "method": found.method,
        "learnt": found.learnt,
        "queries": len(best),
        "ndcg@5": float(ndcg.mean()),
        "ndcg@5_95": mean_95(ndcg, seed=SEED),
        "ndcg@5_others": float(ndcg[data.others()].mean()),
        "hit@1": sum(first) / len(first),
        "hit@1_95": wilson(sum(first), len(first)),
    }


# --- the table


def refusal_row(name: str, found: Refusals) -> dict[str, Any]:
    return {
        "data": name,
        "method": found.method,
        "learnt": found.learnt,
        "needed": len(found.needed),
        "needless": len(found.needless),
        **refusal_figures(found.needed, found.needless, seed=SEED),
    }


def request_rows(
    name: str, refusals: Sequence[Refusals], needed: Sequence[Any], needless: Sequence[Any]
) -> Iterator[dict[str, Any]]:
    """One row a request that may need no tool: each method's score of needing one."""
    for needs, places in ((True, needed), (False, needless)):
        for number, place in enumerate(places):
            scores = {
                f"{found.method}; {found.learnt}": float(
                    (found.needed if needs else found.needless)[number]
                )
                for found in refusals
            }
            yield {"id": f"{name}/{place}", "needs_tool": needs, "scores": scores}


def query_rows(data: MetaTool, rankings: Sequence[Rankings]) -> Iterator[dict[str, Any]]:
    """One row an asked query: each method's best tools."""
    best = {f"{r.method}; {r.learnt}": ranked(r.table, data.names) for r in rankings}
    for number, (place, right) in enumerate(zip(data.asked_places, data.gold, strict=True)):
        yield {
            "id": f"metatool/single_tool/{place}",
            "tools": right,
            "ranked": {method: names[number] for method, names in best.items()},
        }


async def measure(
    folder: Path, encoder: Encoder
) -> tuple[list[dict[str, Any]], Iterator[dict[str, Any]]]:
    """The rows of the table, and those of the requests."""
    metatool = MetaTool(folder / "metatool", encoder)
    with indexed(metatool.tools, encoder) as index:
        rankings = await metatool.rankings(index)
        awareness = await metatool.refusals(index, encoder)
    bfcl = Bfcl.load(folder / "bfcl")
    irrelevance = await bfcl.refusals(encoder)
    rows = [ranking_row(found, metatool) for found in rankings]
    rows += (refusal_row("metatool", found) for found in awareness)
    rows += (refusal_row("bfcl", found) for found in irrelevance)

    def by_request() -> Iterator[dict[str, Any]]:
        yield from query_rows(metatool, rankings)
        places = (metatool.needed_places, metatool.needless_places)
        yield from request_rows("metatool/task1_awareness", awareness, *places)
        ids = (bfcl.places(needs=True), bfcl.places(needs=False))
        yield from request_rows("bfcl", irrelevance, *ids)

    return rows, by_request()


def main() -> None:
    options = options_of(__doc__)
    rows, by_request = asyncio.run(measure(options.data, encoder_of(options)))
    if options.rows:
        write(options.rows, by_request)
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
