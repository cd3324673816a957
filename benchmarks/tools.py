"""Which tools does a request need, beside the tool searches of others?

Every method is given the same tools (name, description, parameters) and nothing to learn from:

- MetaTool: 199 tools, 1,000 of its single-tool queries drawn by a fixed seed.
- BFCL: one function of each of 1,853 names, pooled, and 1,000 of the queries that need one or more.
- StableToolBench: 2,490 APIs and 765 queries, most of which need several.
- everyday: 48 tools and the requests of an assistant's user, follow-ups included.

``retrieval`` is ``rank`` of this project with the bundled encoder; ``enriched`` is the same with
the requests that an LLM wrote once for each of the everyday tools. ``FastMCP`` is its BM25 search
transform, ``CallBus`` its BM25 (its other scorers need an embedding model of 8 billion parameters
on a server), ``semantic-router`` its ``IndexedRouter`` with the bundled encoder and each tool's
text as the one utterance of a route. LangChain's tool selector is one call of an LLM with all the
tools in its prompt for every request, so it has no row. Peers do not read earlier turns.

``routed`` is the share of requests for which a method chooses a tool by its own default rule, and
``refused`` the share of those that no tool serves for which it chooses none. A search that has no
rule refuses only what shares no word with any tool.

    python benchmarks/tools.py --data FOLDER [--json]              (or ROUTER_BENCH_DATA=FOLDER)

It runs in the peers' environment (``make bench-peers``).
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.inputs import give, parsed, parser_of, read, say
from benchmarks.metrics import mean_95
from benchmarks.peers import Remembering, peer_encoder
from router import SemanticRouter, Settings
from router.evaluation import hit_at_1, ndcg_at, recall_at
from router.numeric import wilson
from router.result import Decision
from router.retrieval.bundled_encoder import BundledEncoder

SEED: Final = 7
SAMPLE: Final = 1_000
FOUND: Final = 10


class Asked(NamedTuple):
    """A request; ``right`` is empty when no tool serves it, ``also`` may be chosen as well."""

    text: str
    right: Sequence[str]
    also: Sequence[str] = ()
    history: Sequence[Any] = ()


@dataclass(frozen=True)
class Data:
    """Tools as Anthropic takes them, and requests."""

    name: str
    tools: list[dict[str, Any]]
    asked: list[Asked]
    enrichment: Path | None = None
    needed: list[Asked] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "needed", [one for one in self.asked if one.right])


class Found(NamedTuple):
    """The best tools for a request, and whether the method would choose any of them."""

    names: list[str]
    routed: bool


Method = Callable[[Asked], Awaitable[Found]]


def tool(name: str, description: str | None, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"name": name, "description": description or "", "input_schema": schema}


def sampled(asked: list[Asked]) -> list[Asked]:
    chosen = random.Random(SEED)  # noqa: S311 - not for secrets
    return chosen.sample(asked, min(SAMPLE, len(asked)))


def metatool(folder: Path) -> Data:
    rows = read(folder / "single_tool.jsonl")
    asked = sampled([Asked(row["query"], [row["tool"]]) for row in rows])
    awareness = read(folder / "task1_awareness.jsonl")
    asked += [Asked(row["query"], []) for row in awareness if not row["needs_tool"]]
    tools = read(folder / "tools.jsonl")
    return Data("metatool", [tool(one["name"], one["description"], {}) for one in tools], asked)


def bfcl(folder: Path) -> Data:
    """Functions of one name are near-identical copies: the first one stands for all."""
    tools: dict[str, dict[str, Any]] = {}
    for row in read(folder / "tools.jsonl"):
        properties = (row["parameters"] or {}).get("properties", {})
        tools.setdefault(row["name"], tool(row["name"], row["description"], properties))
    asked = [
        Asked(row["messages"][-1]["content"], row["gold_names"])
        for row in read(folder / "queries.jsonl")
        if row["gold_names"]
    ]
    return Data("bfcl", list(tools.values()), sampled(asked))


def stabletoolbench(folder: Path) -> Data:
    tools = [
        tool(
            row["id"], row["description"], {p["name"]: p for p in row["required"] + row["optional"]}
        )
        for row in read(folder / "tools.jsonl")
    ]
    asked = [Asked(row["query"], row["gold"]) for row in read(folder / "queries.jsonl")]
    return Data("stabletoolbench", tools, [one for one in asked if one.right])


def everyday(folder: Path) -> Data:
    tools = [
        tool(f["name"], f["description"], f["parameters"].get("properties", {}))
        for one in json.loads((folder / "tools.json").read_text(encoding="utf-8"))
        for f in [one["function"]]
    ]
    asked = [
        Asked(row["request"], row["tools"], row["also_right"], row["history"])
        for row in read(folder / "tool_requests.jsonl")
    ]
    return Data("everyday", tools, asked, folder / "tools_enrichment.jsonl")


def words_of(tool: dict[str, Any]) -> str:
    """A tool in words, for methods that take one text."""
    properties = tool["input_schema"]["properties"]
    lines = [f"{name}: {_told(value)}" for name, value in properties.items()]
    return "\n".join((tool["name"], tool["description"], *lines))


def _told(value: Any) -> str:
    return str(value.get("description", "")) if isinstance(value, dict) else ""


def ours(router: SemanticRouter) -> Method:
    async def find(asked: Asked) -> Found:
        ranked = await router.rank(asked.text, limit=FOUND, history=asked.history)
        return Found(list(ranked.names), ranked.decision is Decision.ROUTE)

    return find


def fastmcp(data: Data) -> Method:
    from fastmcp.server.transforms.search import BM25SearchTransform
    from fastmcp.tools import Tool

    search = BM25SearchTransform(max_results=FOUND)
    tools = [
        Tool(name=one["name"], description=one["description"], parameters=one["input_schema"])
        for one in data.tools
    ]

    async def find(asked: Asked) -> Found:
        # Its own search, without the rendering of the tools around it.
        names = [one.name for one in await search._search(tools, asked.text)]
        return Found(names, bool(names))

    return find


def callbus(data: Data) -> Method:
    from callbus.adapters.bm25 import BM25Scorer
    from callbus.domain import Query, Tool

    scorer = BM25Scorer()
    scorer.index(Tool(id=one["name"], doc=one, documentation=words_of(one)) for one in data.tools)

    async def find(asked: Asked) -> Found:
        [best] = scorer.rank([Query(id="q", text=asked.text, qrels={})], FOUND)
        matching = [
            name for name, score in zip(best.tool_ids, best.scores, strict=True) if score > 0
        ]
        return Found(matching, bool(matching))

    return find


def semantic_router(data: Data, encoder: Remembering) -> Method:
    from semantic_router import IndexedRouter, Route

    routes = [Route(name=one["name"], utterances=[words_of(one)]) for one in data.tools]
    router = IndexedRouter(encoder=peer_encoder(encoder), routes=routes)

    async def find(asked: Asked) -> Found:
        best = await router.acall(asked.text, FOUND, -1.0)  # all of them, whatever the threshold
        first = await router.acall(asked.text)
        return Found([choice.name for choice in best], first.name is not None)

    return find


async def row_of(data: Data, method: str, find: Method) -> dict[str, Any]:
    say(f"{data.name}: {method}")
    found = [await find(asked) for asked in data.asked]
    needed = [(one, asked) for one, asked in zip(found, data.asked, strict=True) if asked.right]
    needless = [one for one, asked in zip(found, data.asked, strict=True) if not asked.right]
    row: dict[str, Any] = {
        "data": data.name,
        "tools": len(data.tools),
        "method": method,
        "requests": len(needed),
    }
    first = [hit_at_1(one.names, [*asked.right, *asked.also]) for one, asked in needed]
    row["hit@1"], row["hit@1_95"] = sum(first) / len(first), wilson(sum(first), len(first))
    for figure, values in {
        "recall@5": [recall_at(one.names, asked.right, 5) for one, asked in needed],
        "ndcg@5": [ndcg_at(one.names, asked.right, 5) for one, asked in needed],
        "ndcg@10": [ndcg_at(one.names, asked.right, 10) for one, asked in needed],
    }.items():
        row[figure] = sum(values) / len(values)
        row[f"{figure}_95"] = mean_95(np.array(values), seed=SEED)
    row["routed"] = sum(one.routed for one, _ in needed) / len(needed)
    row["needless"] = len(needless)
    if needless:
        refused = sum(not one.routed for one in needless)
        row["refused"] = refused / len(needless)
        row["refused_95"] = wilson(refused, len(needless))
    return row


async def rows_of(data: Data) -> list[dict[str, Any]]:
    rows = []
    with tempfile.TemporaryDirectory() as state:
        settings = Settings(state_dir=Path(state), llm={"enabled": False})
        async with SemanticRouter.from_tools(data.tools, settings) as router:
            rows.append(await row_of(data, "retrieval", ours(router)))
        if data.enrichment is not None:
            async with SemanticRouter.from_tools(
                data.tools, settings, enrichment=data.enrichment
            ) as router:
                rows.append(await row_of(data, "retrieval, enriched", ours(router)))
    encoder = Remembering("bundled", BundledEncoder())
    for method, find in (
        ("FastMCP BM25", fastmcp(data)),
        ("CallBus BM25", callbus(data)),
        ("semantic-router", semantic_router(data, encoder)),
    ):
        rows.append(await row_of(data, method, find))
    return rows


async def measure(folder: Path) -> list[dict[str, Any]]:
    rows = []
    for load in (everyday, metatool, bfcl, stabletoolbench):
        name = "small_catalogs" if load is everyday else load.__name__
        rows += await rows_of(load(folder / name))
    return rows


def main() -> None:
    options = parsed(parser_of(__doc__))
    rows = asyncio.run(measure(options.data))
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
