"""Does the classifier read the right memory layers, without an LLM?

Classifies labelled queries and prints a table by kind of query (plain, hard, none): how often the
primary layer is right, how often every wanted layer is among those read, how many layers are read
for each wanted one, and how often nothing is read, each share with its 95% interval (Wilson).
For queries that want nothing only the last column means anything.

Beside the classifier stand the substring rules that the design documents give, the commonest layer
of the rows themselves, and the nearest of the classifier's own examples by the bundled encoder
alone. ``--half even`` or ``--half odd`` takes the rows of even or odd place only, from 0: the even
ones were looked at while the classifier was made, the odd ones never.

The data folder holds ``memory_queries/dev.jsonl`` ({"query", "layers", "type", "kind"}).

    python benchmarks/memory_queries.py --data FOLDER [--half even] [--json]
        [--errors]                                        (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.classifier_training import read_examples
from benchmarks.inputs import give, parsed, parser_of, read
from router.memory.query.classifier import QueryClassifier
from router.numeric import wilson
from router.retrieval.bundled_encoder import BundledEncoder

KINDS = ("plain", "hard", "none")

SUBSTRINGS = (
    (("when", "last", "recent", "week", "date"), "episodic"),
    (("depends", "related", "connection", "uses"), "graph"),
    (("decompose", "plan", "strategy", "orchestration", "validate"), "planning"),
    (("how to", "workflow", "process", "steps", "procedure"), "procedural"),
    (("task", "todo", "remind", "pending"), "prospective"),
    (("what do we know", "coverage", "expertise"), "meta"),
)
"""The documents' rules, in their order; what none of them holds is a fact."""

Read = Callable[[str], list[str]]
"""The layers to read for a query, primary first."""


@dataclass(frozen=True)
class Share:
    """How often something was so; the interval holds the true rate with 95% confidence."""

    rate: float
    low: float
    high: float

    @classmethod
    def of(cls, hits: int, rows: int) -> Share:
        return cls(hits / rows, *wilson(hits, rows))

    def __str__(self) -> str:
        return f"{self.rate:.3f} ({self.low:.2f}-{self.high:.2f})"


@dataclass(frozen=True)
class Line:
    """One method on one kind of query; None where a figure does not apply."""

    method: str
    kind: str
    rows: int
    primary: Share | None
    covered: Share | None
    read_per_wanted: float | None
    nothing: Share


def line(method: str, kind: str, rows: Sequence[dict[str, Any]], read: Read) -> Line:
    given = [read(row["query"]) for row in rows]
    nothing = Share.of(sum(1 for layers in given if not layers), len(rows))
    wanted = [row["layers"] for row in rows]
    if not any(wanted):
        return Line(method, kind, len(rows), None, None, None, nothing)
    pairs = list(zip(given, wanted, strict=True))
    return Line(
        method,
        kind,
        len(rows),
        Share.of(sum(1 for got, want in pairs if got[:1] == want[:1]), len(rows)),
        Share.of(sum(1 for got, want in pairs if set(want) <= set(got)), len(rows)),
        sum(map(len, given)) / sum(map(len, wanted)),
        nothing,
    )


def by_substrings(query: str) -> list[str]:
    lowered = query.lower()
    for needles, layer in SUBSTRINGS:
        if any(needle in lowered for needle in needles):
            return [layer]
    return ["semantic"]


def by_majority(rows: Sequence[dict[str, Any]]) -> Read:
    ((commonest, _),) = Counter(row["layers"][0] for row in rows if row["layers"]).most_common(1)
    return lambda _: [commonest]


def by_nearest_example(encoder: BundledEncoder) -> Read:
    examples = read_examples()
    vectors = encoder.encode([example.query for example in examples])

    def read(query: str) -> list[str]:
        nearest = examples[int((vectors @ encoder.encode([query])[0]).argmax())]
        layers = [layer for kind in nearest.kinds for layer in kind.layers]
        return list(dict.fromkeys(layers))

    return read


def by_classifier(classifier: QueryClassifier) -> Read:
    return lambda query: [layer.name for layer in classifier.classify(query).layers]


def milliseconds(read: Read, rows: Sequence[dict[str, Any]]) -> float:
    """The median time of a query after the first round."""
    times = []
    for row in [*rows, *rows]:
        start = time.perf_counter()
        read(row["query"])
        times.append((time.perf_counter() - start) * 1e3)
    return sorted(times[len(rows) :])[len(rows) // 2]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument(
        "--file", default="memory_queries/dev.jsonl", help="rows, inside the folder"
    )
    parser.add_argument("--half", choices=("even", "odd"), help="rows of even or odd place only")
    parser.add_argument("--errors", action="store_true", help="print the rows that went wrong")
    arguments = parsed(parser)
    rows = read(arguments.data / arguments.file)
    if arguments.half:
        rows = rows[arguments.half == "odd" :: 2]

    encoder = BundledEncoder()
    classifier = by_classifier(QueryClassifier(encoder=encoder))
    methods = {
        "substring rules": by_substrings,
        "majority": by_majority(rows),
        "nearest example": by_nearest_example(encoder),
        "classifier": classifier,
    }
    groups = {kind: [row for row in rows if row["kind"] == kind] for kind in KINDS}
    groups["wanted"] = [row for row in rows if row["layers"]]
    lines = [
        line(method, kind, some, read)
        for method, read in methods.items()
        for kind, some in groups.items()
        if some
    ]
    rows_of_table = [*map(asdict, lines), {"milliseconds": milliseconds(classifier, rows)}]
    give(rows_of_table, as_json=arguments.json)
    if arguments.errors:
        for row in rows:
            got = classifier(row["query"])
            if got[:1] != row["layers"][:1] or not set(row["layers"]) <= set(got):
                print(f"{row['kind']:6}{row['layers']} read {got}: {row['query']}")


if __name__ == "__main__":
    main()
