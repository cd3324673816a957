"""Tools that nobody has asked for yet: a sample of MetaTool, plain and enriched.

62 tools were drawn by seed (60, of the 152 that are one plug-in each) and six requests were written
for each from its name and description alone, by an LLM that had not seen a query of the set
(``data/metatool_enrichment.jsonl``). The catalog is these 62 tools; asked are queries of the set
that one of them serves, drawn by seed. Nothing is learnt from any query.

    python benchmarks/metatool_enrichment.py --data FOLDER [--encoder KIND --model NAME]
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.inputs import encoder_of, give, options_of, read
from benchmarks.metrics import mean_95
from benchmarks.tool_index import Tool, indexed
from router.retrieval.encoders import Encoder
from router.skills.enrichment import Enrichment, read_enrichment

ENRICHMENT: Final = Path(__file__).parent / "data" / "metatool_enrichment.jsonl"
SEED: Final = 62
QUERIES: Final = 1_500
DEPTH: Final = 5


async def measured(
    tools: Sequence[Tool],
    queries: Sequence[Mapping[str, Any]],
    encoder: Encoder,
    enrichment: Mapping[str, Enrichment],
) -> dict[str, Any]:
    """nDCG@5 and hit@1 over the queries, each with one right tool."""
    gains, hits = [], []
    with indexed(tools, encoder, enrichment) as index:
        for query in queries:
            ranking = await index.rank(query["query"], limit=DEPTH)
            names = [match.name for match in ranking.matches]
            place = names.index(query["tool"]) if query["tool"] in names else None
            gains.append(0.0 if place is None else 1 / math.log2(place + 2))
            hits.append(float(place == 0))
    return {
        "tools": len(tools),
        "queries": len(queries),
        "ndcg@5": sum(gains) / len(gains),
        "ndcg@5_95": mean_95(np.array(gains), seed=SEED),
        "hit@1": sum(hits) / len(hits),
        "hit@1_95": mean_95(np.array(hits), seed=SEED),
    }


def main() -> None:
    options = options_of(__doc__)
    encoder = encoder_of(options)
    written = read_enrichment(ENRICHMENT).by_skill
    folder = options.data / "metatool"
    tools = [
        Tool(row["name"], row["description"])
        for row in read(folder / "tools.jsonl")
        if row["name"] in written
    ]
    queries = [row for row in read(folder / "single_tool.jsonl") if row["tool"] in written]
    queries = random.Random(SEED).sample(queries, min(QUERIES, len(queries)))  # noqa: S311 - a sample
    rows = [
        {"texts": texts, **asyncio.run(measured(tools, queries, encoder, enrichment))}
        for texts, enrichment in (("plain", {}), ("enriched", written))
    ]
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
