"""``router demo``: a handful of requests over the shipped skills, as the router really answers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from router.cli import output
from router.cli.commands import prints
from router.cli.options import open_router, read_settings
from router.result import RoutingResult

REQUESTS: Final = (
    ("a clear route", "Fix the bug in the login form"),
    ("the same again", "Fix the bug in the login form"),
    ("a paraphrase of it", "please fix bug in login form"),
    (
        "two skills at once",
        "Upgrade the vulnerable dependencies in the lock file and draft an announcement email",
    ),
    ("ambiguous", "tidy up"),
    ("nothing fits", "What should I cook for dinner tonight?"),
)
"""What each request is meant to show, and the request. What it does show is up to the router."""


def _show(rows: list[dict[str, Any]]) -> None:
    table = output.table(
        "request", "decision", "skills", "stage", "confidence", "ms", right=("confidence", "ms")
    )
    for row in rows:
        result = RoutingResult.from_dict(row["result"])
        skills = result.selected_skills or (f"({s}?)" for s in result.suggested_skills)
        table.add_row(
            f"{row['request']}\n  {row['shows']}",
            result.decision.value,
            "\n".join(map(output.plain, skills)),
            result.stage.value,
            f"{result.confidence:.2f}",
            f"{sum(entry.microseconds for entry in result.trace) / 1000:.2f}",
        )
    output.screen().print(table)


@prints(_show)
async def demo() -> list[dict[str, Any]]:
    """Route a few telling requests over the shipped skills. Asks no LLM, and leaves nothing
    behind."""
    from router.skills.discovery import shipped_skills_root

    with tempfile.TemporaryDirectory(prefix="router-demo-") as state:
        settings = read_settings(no_llm=True, state_dir=Path(state))
        async with open_router([shipped_skills_root()], settings) as router:
            return [
                {"shows": shows, "request": text, "result": (await router.route(text)).to_dict()}
                for shows, text in REQUESTS
            ]
