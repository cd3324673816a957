"""``router route --explain``: one screen (at most 24 lines of 100 columns) that says why.

The evidence is that of retrieval, ranked once more for the request: it is there for every answer,
also for one that came from a cache or from an LLM, and the LLM's own word stands in its stage's
reason. A skill's score is the sum of three weighted parts, so the lead of one skill over another
can be split into them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from router.cli import output
from router.result import Decision
from router.service.explaining import (
    PARTS,
    SHOWN_TERMS,
    lead_of,
    role_of,
    weighted,
    winner_and_runner_up,
)

if TYPE_CHECKING:
    from router.result import RoutingResult
    from router.retrieval.index import Match, Ranking

MAX_CELLS = 165
"""Cells of a paragraph, which then takes two lines at 100 columns."""


def explanation(request: str, result: RoutingResult, ranking: Ranking) -> RenderableType:
    """What was decided, the best skill beside the next one, and what each stage did.

    Args:
        request: the text as asked.
        result: the answer.
        ranking: retrieval's ranking of every skill that could be chosen.
    """
    head = Table.grid(padding=(0, 2))
    head.add_row("Request", _cut(request))
    head.add_row("Decision", _decision(result))
    head.add_row("Why", _cut(result.reasoning))
    parts: list[RenderableType] = [head]
    winner, other = winner_and_runner_up(result, ranking.matches)
    if winner is not None and other is not None:
        parts += ["", _comparison(winner, other, result), Text(_cut(lead_of(winner, other)))]
    return Group(*parts, "", _stages(result))


def _cut(text: str) -> str:
    line = Text(output.plain(text))
    line.truncate(MAX_CELLS, overflow="ellipsis")
    return line.plain


def _decision(result: RoutingResult) -> str:
    names = ", ".join(result.selected_skills or result.suggested_skills)
    what = {Decision.ROUTE: "load", Decision.CLARIFY: "ask which", Decision.ABSTAIN: "perhaps"}
    chosen = f"; {what[result.decision]}: {names}" if names else ""
    return _cut(
        f"{result.decision.value}, confidence {output.confidence(result)}, "
        f"{output.answered_by(result)}{chosen}"
    )


def _comparison(winner: Match, other: Match, result: RoutingResult) -> Table:
    table = output.table("evidence", _role(winner, result), _role(other, result))
    for column in table.columns[1:]:
        column.no_wrap, column.overflow = True, "ellipsis"
    table.add_row("words in common", _terms(winner, other), _terms(other, winner))
    for label, mine, theirs in zip(PARTS, weighted(winner), weighted(other), strict=True):
        table.add_row(label, f"{mine:.3f}", f"{theirs:.3f}")
    table.add_row("score", f"{winner.score:.3f}", f"{other.score:.3f}")
    return table


def _role(match: Match, result: RoutingResult) -> str:
    return f"{output.plain(match.name)} ({role_of(match.name, result)})"


def _terms(match: Match, other: Match) -> str:
    """Matched words, those that only this skill has in front."""
    own = [term for term in match.terms if term not in other.terms]
    shared = [term for term in match.terms if term in other.terms]
    return output.plain(", ".join((own + shared)[:SHOWN_TERMS])) or "none"


def _stages(result: RoutingResult) -> Table:
    table = output.table("stage", "outcome", "reason", "ms", right=("ms",))
    table.expand, table.columns[2].ratio = True, 1
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    for entry in result.trace:
        table.add_row(
            entry.stage.value,
            entry.outcome.value,
            output.plain(entry.reason),
            f"{entry.microseconds / 1000:.3f}",
        )
    return table
