"""How well are catalogs routed that were written for no measurement but this one?

Twenty-two catalogs of 16 to 40 skills (``data/trades``): the tools of a veterinary practice, of a
hotel, a freight forwarder, a nursing station, a farm, a smart home, a school, an airline, a payroll
office, a public library and a cluster of servers; the skills of a law office, a laboratory, a
studio, a museum, a car workshop and a data team; the intents of a shop, a town hall, a bank's app,
an internet provider and a housing association. Each is asked 54 requests (66 in ``later``):
``plain`` ones by people of the trade, ``everyday`` ones that avoid the words of the skill,
``terse`` and ``followup`` ones, ``several`` that need two or three skills, and ``none``, which
nothing serves, half of them from the same trade. Those are as long as the others: length tells
nothing here.

Skills, requests and what "an LLM has written" for the skills were written by language models that
did not see each other's part, and know nothing of the router. Half of the requests are about skills
that have a close neighbour (create, change, cancel), so these catalogs are harder than those of the
table ``enrichment``, whose measures these are.

The coefficients of the decision (``router/stages/likelihood.py``) were chosen with the nine
catalogs of ``develop`` among others. The six of ``held_out`` only measured them, but were looked at
when signals were chosen. The four of ``unseen`` were written after that. How follow-ups and clauses
are read was chosen over the fifteen of ``develop`` and ``held_out``, and the three of ``later``,
which another writer made meanwhile, measured it. They ask for more: fourteen follow-ups, of which
half want the skill of the turn before and half another one, and ten requests for several.

    python benchmarks/trades.py [--encoder minilm] [--json]
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from benchmarks.enrichment import (
    Case,
    Pair,
    decided,
    labelled,
    manifest,
    rows_of,
    written_in,
)
from benchmarks.inputs import encoder_of, give, parser_of, read, with_encoder
from router.result import Decision
from router.retrieval.encoders import Encoder
from router.retrieval.vectors import VectorStore

DATA: Final = Path(__file__).with_name("data") / "trades"
PARTS: Final = {
    "develop": (
        "analytics",
        "farm",
        "freight",
        "home",
        "hotel",
        "lab",
        "studio",
        "vet",
        "wallet",
    ),
    "held_out": ("cluster", "law", "school", "shop", "town", "ward"),
    "unseen": ("airline", "internet", "museum", "payroll"),
    "later": ("council", "library", "workshop"),
}


def case(name: str) -> Case:
    """One catalog, what was written for its skills, and what is asked of it."""
    return Case(
        name,
        {row["name"]: manifest(**row) for row in read(DATA / f"{name}.jsonl")},
        written_in(DATA / f"{name}.enrichment.jsonl"),
        labelled(DATA / f"{name}.requests.jsonl"),
    )


def summary(name: str, label: str, pairs: list[Pair]) -> dict[str, Any]:
    """One catalog in one row."""
    routed = [(a, d) for a, d in pairs if d.decision is Decision.ROUTE]
    fitting = [a for a, _ in pairs if a.skills]
    right = sum(bool(a.skills) and set(d.selected) <= a.right for a, d in routed)
    nothing = sum(not a.skills for a, _ in routed)
    return {
        "catalog": name,
        "written": label,
        "precision": right / len(routed) if routed else 0.0,
        "right": right / len(fitting),
        "none routed": nothing / (len(pairs) - len(fitting)),
    }


async def measure(encoder: Encoder, store: VectorStore) -> list[dict[str, Any]]:
    together: defaultdict[tuple[str, str], list[Pair]] = defaultdict(list)
    each = []
    for part, names in PARTS.items():
        for one in map(case, names):
            for label, written in (("nothing", {}), ("all", one.written)):
                pairs = await decided(one, label, written, encoder, store)
                together[part, label] += pairs
                each.append(summary(f"{part}: {one.name}", label, pairs))
    rows = [row for (part, label), pairs in together.items() for row in rows_of(part, label, pairs)]
    return rows + each


def main() -> None:
    options = with_encoder(parser_of(__doc__)).parse_args()
    encoder = encoder_of(options)
    with tempfile.TemporaryDirectory() as folder:
        store = VectorStore(Path(folder), identity=encoder.identity)
        rows = asyncio.run(measure(encoder, store))
        store.close()
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
