"""``router route --explain``: one screen (at most 24 lines of 100 columns) that says why.

The evidence is that of ``router/service/explaining.py``; the LLM's own word stands in its stage's
reason.
"""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from router.cli import output
from router.result import Decision, RoutingResult
from router.service.explaining import PARTS, SHOWN_TERMS, Explanation, Weighed

MAX_CELLS = 165
"""The length of a paragraph in cells; it then takes two lines at 100 columns."""


def explanation(request: str, result: RoutingResult, why: Explanation) -> RenderableType:
    """What was decided, the best skill beside the next one, and what each stage did."""
    head = Table.grid(padding=(0, 2))
    head.add_row("Request", _cut(request))
    head.add_row("Decision", _decision(result))
    head.add_row("Why", _cut(result.reasoning))
    if by_clause := _clauses(result):
        head.add_row("Clauses", _cut(by_clause))
    parts: list[RenderableType] = [head]
    if why.winner is not None and why.runner_up is not None:
        parts += ["", _comparison(why.winner, why.runner_up), Text(_cut(why.lead))]
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


def _clauses(result: RoutingResult) -> str:
    """What each clause of the request asks for by itself; empty where it was not decided so."""
    found = result.trace[-1].evidence.get("by_clause")
    return "; ".join(found) if isinstance(found, tuple) else ""


def _comparison(winner: Weighed, other: Weighed) -> Table:
    table = output.table("evidence", _role(winner), _role(other))
    # Rich would leave it no width where the screen is narrow.
    table.columns[0].min_width = len("words in common")
    for column in table.columns[1:]:
        column.no_wrap, column.overflow = True, "ellipsis"
    table.add_row("words in common", _terms(winner, other), _terms(other, winner))
    for label, mine, theirs in zip(PARTS, winner.parts, other.parts, strict=True):
        table.add_row(label, f"{mine:.3f}", f"{theirs:.3f}")
    table.add_row("score", f"{winner.score:.3f}", f"{other.score:.3f}")
    return table


def _role(skill: Weighed) -> str:
    return f"{output.plain(skill.name)} ({skill.role})"


def _terms(skill: Weighed, other: Weighed) -> str:
    """The matched words; those that only this skill has come first."""
    own = [term for term in skill.terms if term not in other.terms]
    shared = [term for term in skill.terms if term in other.terms]
    return output.plain(", ".join((own + shared)[:SHOWN_TERMS])) or "none"


def _stages(result: RoutingResult) -> Table:
    table = output.table("stage", "outcome", "reason", "ms", right=("ms",), one_line="reason")
    for entry in result.trace:
        table.add_row(
            entry.stage.value,
            entry.outcome.value,
            output.plain(entry.reason),
            f"{entry.microseconds / 1000:.3f}",
        )
    return table
