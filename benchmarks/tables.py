"""The tables: one script each in this folder, with the arguments of its published figures."""

from __future__ import annotations

from dataclasses import dataclass
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


MINILM: Final = ("--encoder", "minilm")
INTENTS: Final = ("clinc150", "banking77")
SKILLS: Final = ("skill_requests", "skills")
TOOLS: Final = ("metatool", "bfcl")

TABLES: Final = (
    Table("skill_requests", "Which skill", "skill_requests.py", SKILLS, ("--ablate",), rows=True),
    Table(
        "skill_requests_minilm",
        "Which skill, with MiniLM",
        "skill_requests.py",
        SKILLS,
        MINILM,
        rows=True,
    ),
    Table("intents", "Which intent, from examples", "intents.py", INTENTS, rows=True),
    Table(
        "intents_minilm",
        "Which intent, from examples, with MiniLM",
        "intents.py",
        INTENTS,
        MINILM,
        rows=True,
    ),
    Table("tool_selection", "Which tool", "tool_selection.py", TOOLS, rows=True),
    Table(
        "tool_selection_minilm",
        "Which tool, with MiniLM",
        "tool_selection.py",
        TOOLS,
        MINILM,
        rows=True,
    ),
    Table(
        "enrichment",
        "Catalogs plain and enriched",
        "enrichment.py",
        (*SKILLS, "small_catalogs", *INTENTS),
    ),
    Table(
        "enrichment_minilm",
        "Catalogs plain and enriched, with MiniLM",
        "enrichment.py",
        (*SKILLS, "small_catalogs", *INTENTS),
        MINILM,
    ),
    Table(
        "metatool_enrichment",
        "Tools, plain and enriched",
        "metatool_enrichment.py",
        ("metatool",),
    ),
    Table(
        "metatool_enrichment_minilm",
        "Tools, plain and enriched, with MiniLM",
        "metatool_enrichment.py",
        ("metatool",),
        MINILM,
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
    Table("llm_calls", "LLM calls saved inside an error bound", "llm_calls.py", INTENTS),
    Table(
        "llm_calls_noisy",
        "LLM calls saved, with an LLM that is wrong 5% of the time",
        "llm_calls.py",
        INTENTS,
        ("--llm-error", "0.05"),
    ),
    Table(
        "llm_calls_minilm",
        "LLM calls saved inside an error bound, with MiniLM",
        "llm_calls.py",
        INTENTS,
        MINILM,
    ),
    Table("memory_queries", "Which memory", "memory_queries.py", ("memory_queries",)),
    Table("memory_finding", "Finding what was saved", "memory_finding.py"),
    Table(
        "memory_finding_minilm",
        "Finding what was saved, with MiniLM",
        "memory_finding.py",
        arguments=MINILM,
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
