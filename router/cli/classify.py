"""``router memory classify``: which memory layers a query needs, one query or a stream of them.

No memory is opened for it, and no setting is read. Of a stream each line is answered when it has
come, by one line of JSON; whatever is wrong with a line is that line's answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from router.cli import output
from router.cli.batch import Line, parse_line, read_lines
from router.cli.options import AsJson, or_standard_input
from router.errors import InvalidRequest

if TYPE_CHECKING:
    from router.memory.model import Classification


def classify_query(
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY",
            help="What is asked; - reads standard input.",
            callback=or_standard_input,
        ),
    ] = None,
    batch: Annotated[
        typer.FileBinaryRead | None,
        typer.Option(
            metavar="FILE",
            help='JSONL rows {"query": ...}, or plain queries, one a line; - is standard input.',
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a query asks for and which memory layers to read, primary first.

    With --batch every line gets one line of JSON, in order, with the keys query, id (if there is
    one), types, layers, weights, secondary, confidence and reasons; a line that cannot be read
    gets its number and an error.
    """
    if (query is None) == (batch is None):
        raise typer.BadParameter("give either a query or --batch FILE")
    from router.memory.query.classifier import QueryClassifier

    classifier = QueryClassifier()
    if batch is not None:
        raise typer.Exit(1 if _classify_lines(classifier.classify, batch) else 0)
    assert query is not None  # noqa: S101 - one of the two is given
    found = classifier.classify(query)
    if as_json:
        output.print_json({"query": query, **found.to_dict()})
    else:
        _print_classification(found)


def _print_classification(found: Classification) -> None:
    table = output.table("layer", "weight", "", right=("weight",))
    for choice in found.layers:
        table.add_row(choice.name, f"{choice.weight:.2f}", "read")
    for choice in found.secondary:
        table.add_row(choice.name, f"{choice.weight:.2f}", "if those give too little")
    screen = output.screen()
    types = ", ".join(found.types) or "nothing that memory could hold"
    screen.print(f"{types} (confidence {found.confidence:.2f})")
    if table.rows:
        screen.print(table)
    for reason in found.reasons:
        screen.print(f"- {output.plain(reason)}")


def _classify_lines(classify: Callable[[str], Classification], source: BinaryIO) -> int:
    """Answer every line; returns how many could not be read."""
    faults = 0
    for line in read_lines(source):
        row: dict[str, Any] = {}
        try:
            row = _row(line)
            answer = row | classify(row["query"]).to_dict()
        except InvalidRequest as error:
            faults += 1
            answer = row | {"line": line.number, "error": str(error)}
        output.print_json_line(answer)
    return faults


def _row(line: Line) -> dict[str, Any]:
    """The query of a line, and its ``id`` if it has one; other keys are left out."""
    raw = parse_line(line, "query")
    if not isinstance(raw.get("query"), str):
        raise InvalidRequest("the key 'query' is missing, or no string")
    return {key: raw[key] for key in ("query", "id") if raw.get(key) is not None}
