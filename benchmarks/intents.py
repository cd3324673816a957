"""Which intent does a request have, and does it have one at all, from labelled examples?

CLINC150 (150 intents) and BANKING77 (77 that are close to one another), from 10 examples of each
(the published few-shot split) and from all training requests. The product's head stands beside the
nearest example by cosine, the class mean, and the nearest example by BM25. ``names`` adds each
intent's name, as words, to its examples: a skill always has a name.

For CLINC150's out-of-scope requests: ``auroc`` of the method's own score of being in scope (the
head's energy, a cosine, BM25); ``refused``, the share of them below the score that 90% of the
in-scope test requests reach. A threshold for that has to come from other requests; set so that 90%
of the validation requests reach it, it keeps ``kept`` of the in-scope test requests and refuses
``refused_then``. No method has seen an out-of-scope request, except where ``none`` is named: there
the 100 of the validation part are examples of "none".

``ece`` is the expected calibration error of the confidence that the method states over the in-scope
test requests (the head's softmax, a cosine, the odds that a BM25 score would be), ``ece_fitted``
the same after the product's calibrator, which is fitted on the validation requests.

``fit_seconds`` is the time to fit on one thread, ``p50_ms`` that of one decision with the encoding,
which BM25 alone would not need.
The curves are of the 10-shot methods: risk and coverage over all test requests, an answer to an
out-of-scope one being wrong, and reliability of the calibrated confidences.

    python benchmarks/intents.py --data FOLDER [--rows FILE] [--json]
        [--encoder sentence-transformers --model FOLDER]         (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import numpy as np

from benchmarks.classifiers import (
    NONE,
    Answers,
    Classifier,
    Examples,
    class_mean,
    head,
    nearest_by_words,
    nearest_example,
)
from benchmarks.inputs import encoder_of, give, options_of, read, say, write
from benchmarks.metrics import COVERAGE, refusal_figures
from router.learning.calibration import Calibrator
from router.learning.metrics import expected_calibration_error, reliability_bins, risk_coverage
from router.numeric import wilson
from router.retrieval.encoders import Encoder

SETS: Final = ("clinc150", "banking77")
FEW: Final = "10"
TIMED: Final = 300
CURVE_POINTS: Final = 100
SEED: Final = 0

METHODS: Final[dict[str, Callable[[Examples], Classifier]]] = {
    "BM25": nearest_by_words,
    "nearest example": nearest_example,
    "class mean": class_mean,
    "head": head,
}


@dataclass(frozen=True)
class Intents:
    """One data set; ``train`` by the number of examples of each intent. Out-of-scope requests are
    labelled ``NONE``; there may be none of them."""

    name: str
    train: dict[str, Examples]
    validation: Examples
    test: Examples
    out_of_scope_validation: Examples
    out_of_scope: Examples


@dataclass(frozen=True)
class Measured:
    """One method: its row, its answers to the test requests, those out of scope last, and its
    calibrated confidence in each of those that are in scope."""

    row: dict[str, Any]
    answers: Answers
    calibrated: list[float]


def load(folder: Path, name: str, encoder: Encoder) -> Intents:
    few_shot = folder / name / "fewshot_split"

    def examples(rows: Sequence[dict[str, Any]], label: str | None = None) -> Examples:
        texts = [row["text"] for row in rows]
        labels = [row["intent"] if label is None else label for row in rows]
        # Without texts there is no dimension to know.
        return Examples(texts, labels, encoder.encode(texts) if texts else np.zeros((0, 1), "f"))

    def out_of_scope(part: str) -> Examples:
        path = few_shot / "oos" / f"{part}.jsonl"
        return examples(read(path) if path.exists() else [], NONE)

    return Intents(
        name,
        {FEW: examples(read(few_shot / "train_10.jsonl")), "all": examples(train(folder, name))},
        examples(read(few_shot / "valid.jsonl")),
        examples(read(few_shot / "test.jsonl")),
        out_of_scope("valid"),
        out_of_scope("test"),
    )


def train(folder: Path, name: str) -> list[dict[str, Any]]:
    """The whole training part. The validation part of BANKING77 was drawn from it, and is left
    out."""
    if name == "banking77":
        validation = {row["text"] for row in read(folder / name / "fewshot_split" / "valid.jsonl")}
        rows = read(folder / name / "train.jsonl")
        return [row for row in rows if row["text"] not in validation]
    rows = read(folder / name / "full.jsonl")
    return [row for row in rows if row["split"] == "train" and not row["oos"]]


def with_names(examples: Examples, encoder: Encoder) -> Examples:
    labels = sorted(set(examples.labels))
    names = [label.replace("_", " ") for label in labels]
    return Examples(names, labels, encoder.encode(names)).plus(examples)


def plans(data: Intents, encoder: Encoder) -> Iterator[tuple[str, str, str, Examples]]:
    """What to fit: number of examples, method as the table shows it, method, examples."""
    for count, examples in data.train.items():
        for method in METHODS:
            yield count, method, method, examples
        if count == FEW:
            yield count, "head, names", "head", with_names(examples, encoder)
        if data.out_of_scope_validation.texts:
            both = examples.plus(data.out_of_scope_validation)
            yield count, "nearest example, none", "nearest example", both
            yield count, "head, none", "head", both


def measure(data: Intents, classifier: Classifier, encoder: Encoder) -> Measured:
    test = data.test.plus(data.out_of_scope) if data.out_of_scope.texts else data.test
    answers = classifier.answers(test.texts, test.vectors)
    inside = len(data.test.texts)
    right = rightness(answers, data.test)
    stated = answers.confidences[:inside].tolist()
    validated = classifier.answers(data.validation.texts, data.validation.vectors)
    calibrator = Calibrator.fit(
        validated.confidences.tolist(), rightness(validated, data.validation)
    )
    calibrated = [calibrator(confidence) for confidence in stated]
    row: dict[str, Any] = {
        "requests": inside,
        "accuracy": sum(right) / inside,
        "accuracy_95": wilson(sum(right), inside),
        "ece": expected_calibration_error(stated, right),
        "ece_fitted": expected_calibration_error(calibrated, right),
    }
    if data.out_of_scope.texts:
        kept, others = answers.scores[:inside], answers.scores[inside:]
        threshold = np.quantile(validated.scores, 1 - COVERAGE)
        row |= refusal_figures(kept, others, seed=SEED)
        row["kept"] = float((kept >= threshold).mean())
        row["refused_then"] = float((others < threshold).mean())
    row["p50_ms"] = median_ms(classifier, encoder, data.test.texts[:TIMED])
    return Measured(row, answers, calibrated)


def rightness(answers: Answers, asked: Examples) -> list[bool]:
    """Whether each answer is right; answers to further requests are passed over."""
    return [got == want for got, want in zip(answers.labels, asked.labels, strict=False)]


def median_ms(classifier: Classifier, encoder: Encoder, texts: Sequence[str]) -> float:
    taken = []
    for text in texts:
        began = perf_counter()
        classifier.answers([text], encoder.encode([text]))
        taken.append((perf_counter() - began) * 1e3)
    return statistics.median(taken)


def measure_all(data: Intents, encoder: Encoder) -> dict[tuple[str, str], Measured]:
    """By number of examples and method, as the table shows it."""
    measured = {}
    for count, title, method, examples in plans(data, encoder):
        say(f"{data.name}, {count}: {title}")
        began = perf_counter()
        classifier = METHODS[method](examples)
        seconds = perf_counter() - began
        found = measure(data, classifier, encoder)
        row = {"data": data.name, "examples": count, "method": title, **found.row}
        measured[count, title] = replace(found, row=row | {"fit_seconds": seconds})
    return measured


def gold(data: Intents) -> list[str]:
    """The labels of the test requests, those out of scope last."""
    return [*data.test.labels, *data.out_of_scope.labels]


def curves(data: Intents, measured: dict[tuple[str, str], Measured]) -> dict[str, Any]:
    """The series of the 10-shot methods: risk and coverage by their scores, of which only the order
    counts, and reliability of their calibrated confidences."""
    risks, reliability = {}, {}
    for (count, method), one in measured.items():
        if count != FEW:
            continue
        places = np.unique(one.answers.scores, return_inverse=True)[1]
        ranks = (places / max(places.max(), 1)).tolist()
        right = [got == want for got, want in zip(one.answers.labels, gold(data), strict=True)]
        points = risk_coverage(ranks, right)
        step = max(1, len(points) // CURVE_POINTS)
        risks[method] = points[::-1][::step][::-1]  # the last one is of all requests
        bins = reliability_bins(one.calibrated, right[: len(one.calibrated)])
        reliability[method] = [(some.confidence, some.accuracy) for some in bins]
    return {f"risk_coverage_{data.name}": risks, f"reliability_{data.name}": reliability}


def request_rows(
    data: Intents, measured: dict[tuple[str, str], Measured]
) -> Iterator[dict[str, Any]]:
    """One row a test request: its label (None when out of scope), and by number of examples and
    method the best intent and how much in scope the request seems."""
    for number, label in enumerate(gold(data)):
        yield {
            "id": f"{data.name}/test/{number}",
            "label": label or None,
            "answers": {
                f"{count}, {method}": (
                    one.answers.labels[number],
                    float(one.answers.scores[number]),
                )
                for (count, method), one in measured.items()
            },
        }


def main() -> None:
    options = options_of(__doc__)
    encoder = encoder_of(options)
    rows: list[dict[str, Any]] = []
    by_request: list[dict[str, Any]] = []
    series: dict[str, Any] = {}
    for name in SETS:
        data = load(options.data, name, encoder)
        measured = measure_all(data, encoder)
        rows += (one.row for one in measured.values())
        by_request += request_rows(data, measured)
        series |= curves(data, measured)
    if options.rows:
        write(options.rows, by_request)
    give(rows, as_json=options.json, series=series)


if __name__ == "__main__":
    main()
