"""The tables: one script each in this folder, with the arguments of its published figures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
RESULTS_FOLDER: Final = FOLDER / "results"
"""One JSON file a table, and its plots. Kept in the repository."""
RUNS_FOLDER: Final = FOLDER / "runs"
"""One JSON line a request. Not kept."""


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        name: of the table and of its kept result.
        title: above it in RESULTS.md.
        script: in this folder; its first paragraph says what the table shows.
        data: parts of the data folder that it reads; empty when it needs none.
        arguments: for the script. ``{data}`` stands for the data folder.
        peers: whether it runs in the peers' environment.
        rows: whether the script takes ``--rows FILE`` for one JSON line a request.
    """

    name: str
    title: str
    script: str
    data: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    peers: bool = False
    rows: bool = False


INTENTS: Final = ("clinc150", "banking77")
SKILLS: Final = ("skill_requests", "skills")
TOOLS: Final = ("metatool", "bfcl")


def _both(table: Table) -> tuple[Table, Table]:
    """A table over the bundled encoder, and the same over MiniLM without what else is asked."""
    minilm = replace(
        table,
        name=f"{table.name}_minilm",
        title=f"{table.title}, with MiniLM",
        arguments=("--encoder", "minilm"),
    )
    return table, minilm


TABLES: Final = (
    *_both(
        Table(
            "skill_requests", "Which skill", "skill_requests.py", SKILLS, ("--ablate",), rows=True
        )
    ),
    *_both(Table("intents", "Which intent, from examples", "intents.py", INTENTS, rows=True)),
    *_both(Table("tool_selection", "Which tool", "tool_selection.py", TOOLS, rows=True)),
    *_both(
        Table(
            "enrichment",
            "Catalogs plain and enriched",
            "enrichment.py",
            (*SKILLS, "small_catalogs", *INTENTS),
        )
    ),
    *_both(Table("trades", "Catalogs of trades, plain and enriched", "trades.py")),
    *_both(
        Table(
            "metatool_enrichment",
            "Tools, plain and enriched",
            "metatool_enrichment.py",
            ("metatool",),
        )
    ),
    Table(
        "tools",
        "Which tool, beside the tool searches of others",
        "tools.py",
        (*TOOLS, "stabletoolbench", "small_catalogs"),
        peers=True,
    ),
    Table("peers", "Which intent, beside semantic-router", "peers.py", INTENTS, peers=True),
    Table(
        "learnt_routes",
        "Routes without an LLM, before and after learning",
        "learnt_routes.py",
        (*INTENTS, "metatool", *SKILLS),
        rows=True,
    ),
    *_both(Table("llm_calls", "LLM calls saved inside an error bound", "llm_calls.py", INTENTS)),
    Table(
        "llm_calls_noisy",
        "LLM calls saved, with an LLM that is wrong 5% of the time",
        "llm_calls.py",
        INTENTS,
        ("--llm-error", "0.05"),
    ),
    Table("memory_queries", "Which memory", "memory_queries.py", ("memory_queries",)),
    *_both(Table("memory_finding", "Finding what was saved", "memory_finding.py")),
    Table(
        "memory_unseen",
        "Finding what was saved with questions, people of trades",
        "memory_finding.py",
        arguments=("--part", "unseen", "--questions"),
    ),
    Table(
        "memory_later",
        "Finding what was saved, people whose failures nobody has read",
        "memory_finding.py",
        arguments=("--part", "later"),
    ),
    Table("locomo", "Memory of long conversations", "locomo.py", ("locomo",)),
    Table("memory_gather", "Gathering from layers that fail", "memory_gather.py"),
    Table("retraining", "Routes while the router learns", "retraining.py", ("clinc150",)),
    Table("fuzzy_cache", "The fuzzy cache", "fuzzy_cache.py", INTENTS),
    Table("cache_speed", "Speed of the caches", "cache_speed.py"),
    Table("route_speed", "Speed of a route", "route_speed.py", SKILLS, peers=True),
    Table("catalog_size", "From ten to a hundred thousand skills", "catalog_size.py"),
    Table(
        "footprint",
        "Import, start, memory",
        "footprint.py",
        ("skills",),
        ("--skills", "{data}/skills/pool"),
    ),
    Table("hot_reload", "Skills that change meanwhile", "hot_reload.py", SKILLS),
)
