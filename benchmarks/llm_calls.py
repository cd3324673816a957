"""How many LLM calls does the router save, and at what error?

A stream of 8,000 labelled requests, from no evidence at all. A request is answered locally where
the method allows it; otherwise the LLM is asked, which is simulated by the gold label, and what it
says becomes evidence. A request that came before, word for word, is answered by the exact cache.
``error`` is the share of all requests that were answered wrongly, ``saved`` the share that
cost no call (an audited answer costs one), both over the whole stream; ``in bound`` is the share of
streams whose error stayed within the 1%. ``router, enriched`` begins with the requests that an LLM
wrote from the intents' names alone, as the product does over enriched skills; ``router`` begins
with nothing. ``4 processes`` is the router as a cluster: the same
stream, each request to one of four. Requests that nothing serves are part of the
CLINC150 stream; the right answer to them is "none".

Beside the router: a semantic cache with a fixed threshold (the answer of the nearest earlier
request when its cosine reaches it: the rule of GPTCache), and the verified cache of Schroeder et
al. (arXiv 2502.03771), written from the paper: every cached request has a logistic model of P(same
answer | cosine), and is used with the probability that keeps the expected error within the bound,
at a confidence limit of the model. A request joins that cache when its answer is not the one of
its nearest neighbour, which served it better than to add every request. ``unverified`` is the same
rule without its confidence limit.

``--part dev`` mixes training (and CLINC150's validation) requests; ``--part test`` streams hold
every test request, filled up with others. ``--llm-error`` makes the LLM name a random other answer
so often; the error is then counted against the gold label, and ``LLM`` is its own.

The data folder holds ``clinc150/full.jsonl``, ``banking77/{train,test}.jsonl``, and
``enrichment.jsonl`` beside both.

    python benchmarks/llm_calls.py --data FOLDER [--seeds N] [--part dev|test] [--llm-error SHARE]
        [--only METHOD ...] [--json] [--encoder sentence-transformers --model FOLDER]
                                                                (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.inputs import encoder_of, give, parsed, parser_of, read, say, with_encoder
from router.learning.bound import BoundDecision, ErrorBound
from router.learning.evidence import Example, Source
from router.learning.examples import WRITTEN_WEIGHT
from router.learning.local import LocalModel
from router.learning.trainer import labels_until_fit
from router.retrieval.encoders import Encoder
from router.text import normalise

LENGTH = 8_000
MAX_ERROR = 0.01
THRESHOLDS = (0.8, 0.85, 0.9, 0.95)
FIRST_SEED = 1_000
"""Seeds below it were used while the rules were chosen."""
BLOCK = 500
"""Requests a point of the figures over time."""

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Labelled:
    """One request; an empty label says that nothing serves it."""

    text: str
    label: str


@dataclass(frozen=True)
class Data:
    name: str
    train: Sequence[Labelled]
    test: Sequence[Labelled]
    written: Sequence[Labelled]
    """What an LLM wrote beforehand."""


@dataclass(frozen=True)
class Stream:
    texts: Sequence[str]
    labels: Sequence[str]
    answers: Sequence[str]
    vectors: Vectors
    written: Sequence[Labelled]
    written_vectors: Vectors

    @property
    def llm_error(self) -> float:
        return share(a != b for a, b in zip(self.labels, self.answers, strict=True))


@dataclass(frozen=True)
class Run:
    """One method on one stream; calls over time are shares by blocks of ``BLOCK`` requests."""

    data: str
    method: str
    seed: int
    llm: float
    error: float
    saved: float
    last_quarter: float
    calls_over_time: list[float]


class Method(Protocol):
    def answer(self, number: int) -> tuple[str | None, bool]:
        """The local answer, or None; and whether the LLM is asked behind it."""
        ...

    def learn(self, number: int, label: str) -> None:
        """What the LLM said of the request that was last asked about."""
        ...


class Router:
    """The product's own parts: the local model, refitted when and as the trainer does it, and the
    error bound. A fit is there at once, and not after the trainer's delay.

    Processes of a cluster take the requests in turns. They share evidence and the model; each has
    an account of the error bound of its own, and hears of the outcomes of the others."""

    def __init__(
        self, stream: Stream, seed: int, *, processes: int = 1, enriched: bool = False
    ) -> None:
        self._stream = stream
        self._bounds = [
            ErrorBound(MAX_ERROR, seed=seed * processes + number) for number in range(processes)
        ]
        self._model: LocalModel | None = None
        self._known: list[int] = []
        self._examples = [
            Example(row.text, (row.label,), True, Source.FILE, WRITTEN_WEIGHT)
            for row in (stream.written if enriched else ())
        ]
        self._written_vectors = stream.written_vectors[: len(self._examples)]
        self._new = len(self._examples)
        self._decision: BoundDecision | None = None
        self._train()

    def answer(self, number: int) -> tuple[str | None, bool]:
        bound = self._bounds[number % len(self._bounds)]
        if self._model is None:
            self._decision = bound.decide(None)
            return None, False
        best = self._model.answer(self._stream.texts[number], self._stream.vectors[number])
        self._decision = bound.decide(best.signals.vector(), answer=best.answer)
        return (best.answer, self._decision.audit) if self._decision.local else (None, False)

    def learn(self, number: int, label: str) -> None:
        assert self._decision is not None  # noqa: S101 - answer comes before learn
        right, own = self._decision.answer == label, self._bounds[number % len(self._bounds)]
        outcome = own.outcome_of(self._decision, right=right)
        for bound in self._bounds:
            if bound is own:
                bound.observe(self._decision, right=right)
            elif outcome is not None:
                bound.pool(outcome)
            if bound.due:
                bound.refit()
        skills = (label,) if label else ()
        self._examples.append(Example(self._stream.texts[number], skills, True, Source.LLM))
        self._known.append(number)
        self._new += 1
        self._train()

    def _train(self) -> None:
        """Fit the model anew where that is due."""
        if self._new < labels_until_fit(self._model):
            return
        vectors = np.concatenate((self._written_vectors, self._stream.vectors[self._known]))
        self._model = LocalModel.fit(self._examples, vectors, version=len(self._examples))
        self._new = 0


class Nearest:
    """Earlier requests and their answers; the nearest by cosine."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._matrix = np.empty_like(stream.vectors)
        self.labels: list[str] = []

    def find(self, number: int) -> tuple[int, float] | None:
        if not self.labels:
            return None
        similar = self._matrix[: len(self.labels)] @ self._stream.vectors[number]
        best = int(similar.argmax())
        return best, float(similar[best])

    def add(self, number: int, label: str) -> None:
        self._matrix[len(self.labels)] = self._stream.vectors[number]
        self.labels.append(label)


class FixedThreshold:
    def __init__(self, stream: Stream, threshold: float) -> None:
        self._nearest = Nearest(stream)
        self._threshold = threshold

    def answer(self, number: int) -> tuple[str | None, bool]:
        found = self._nearest.find(number)
        if found is None or found[1] < self._threshold:
            return None, False
        return self._nearest.labels[found[0]], False

    def learn(self, number: int, label: str) -> None:
        self._nearest.add(number, label)


class Verified:
    """The verified cache. With L the logistic of slope g and turning point t of the nearest
    item at cosine s, the LLM is asked with probability

        min over e of  1 - d / (1 - (1 - e) L(s; t', g)),

    where d is the bound and t' the upper limit of t at confidence 1 - e. Not ``sure``: with e = 0
    and the likeliest t, which saves more, without the guarantee."""

    LEVELS = tuple(10 ** (-power / 10) for power in range(3, 41))  # 0.5 to 0.0001
    MIN_OBSERVATIONS = 6

    def __init__(self, stream: Stream, seed: int, *, sure: bool = True) -> None:
        self._nearest = Nearest(stream)
        self._levels = self.LEVELS if sure else (0.0,)
        self._quantiles = [NormalDist().inv_cdf(1 - e) if e else 0.0 for e in self._levels]
        self._random = random.Random(seed)  # noqa: S311 - a seeded benchmark
        self._seen: list[list[tuple[float, bool]]] = []
        self._found: tuple[int, float] | None = None

    def answer(self, number: int) -> tuple[str | None, bool]:
        self._found = self._nearest.find(number)
        if self._found is None:
            return None, False
        item, cosine = self._found
        if self._random.random() <= self._asks(self._seen[item], cosine):
            return None, False
        return self._nearest.labels[item], False

    def learn(self, number: int, label: str) -> None:
        same = False
        if self._found is not None:
            item, cosine = self._found
            same = self._nearest.labels[item] == label
            self._seen[item].append((cosine, same))
        if not same:
            self._nearest.add(number, label)
            self._seen.append([])

    def _asks(self, seen: Sequence[tuple[float, bool]], cosine: float) -> float:
        if len(seen) < self.MIN_OBSERVATIONS:
            return 1.0
        slope, turn, spread = turning_point(seen)
        chances = []
        for level, quantile in zip(self._levels, self._quantiles, strict=True):
            z = slope * (cosine - min(1.0, turn + quantile * spread))
            right = (1 - level) / (1 + math.exp(-max(-30.0, min(30.0, z))))
            chances.append(1 - MAX_ERROR / max(1 - right, MAX_ERROR))
        return max(0.0, min(chances))


def turning_point(seen: Sequence[tuple[float, bool]]) -> tuple[float, float, float]:
    """Slope and turning point of the logistic by maximum likelihood, and the standard error of the
    turning point (delta method). Two imagined observations, (0, other) and (1, same), and a faint
    ridge keep separable ones finite."""
    cosines = np.asarray([cosine for cosine, _ in seen] + [0.0, 1.0])
    same = np.asarray([same for _, same in seen] + [False, True], dtype=float)
    design = np.stack([np.ones_like(cosines), cosines], axis=1)
    ridge = np.diag([1e-3, 1e-3])
    weights = np.zeros(2)
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        hessian = (design * (p * (1 - p))[:, None]).T @ design + ridge
        step = np.linalg.solve(hessian, design.T @ (same - p) - ridge @ weights)
        weights = weights + np.clip(step, -5, 5)
        if np.abs(step).max() < 1e-4:
            break
    offset, slope = float(weights[0]), max(float(weights[1]), 1e-3)
    turn = -offset / slope
    gradient = np.asarray([-1 / slope, offset / slope**2])
    return slope, turn, math.sqrt(max(0.0, float(gradient @ np.linalg.solve(hessian, gradient))))


def fixed(threshold: float) -> Callable[[Stream, int], Method]:
    return lambda stream, _: FixedThreshold(stream, threshold)


METHODS: dict[str, Callable[[Stream, int], Method]] = {
    "exact cache": fixed(math.inf),
    **{f"fixed {threshold}": fixed(threshold) for threshold in THRESHOLDS},
    "verified": Verified,
    "unverified": lambda stream, seed: Verified(stream, seed, sure=False),
    "router": Router,
    "router, enriched": lambda stream, seed: Router(stream, seed, enriched=True),
    "4 processes": lambda stream, seed: Router(stream, seed, processes=4),
}


def run(data: str, name: str, stream: Stream, seed: int) -> Run:
    method = METHODS[name](stream, seed)
    exact: dict[str, str] = {}
    calls = np.zeros(len(stream.texts), dtype=bool)
    wrong = np.zeros(len(stream.texts), dtype=bool)
    for number, (text, label) in enumerate(zip(stream.texts, stream.labels, strict=True)):
        key = normalise(text)
        answer: str | None
        if key in exact:
            answer = exact[key]
        else:
            answer, audit = method.answer(number)
            calls[number] = answer is None or audit
            if calls[number]:
                said = exact[key] = stream.answers[number]
                method.learn(number, said)
                answer = said if answer is None else answer
        wrong[number] = answer != label
    quarter = len(calls) // 4
    return Run(
        data=data,
        method=name,
        seed=seed,
        llm=stream.llm_error,
        error=float(wrong.mean()),
        saved=float(1 - calls.mean()),
        last_quarter=float(1 - calls[-quarter:].mean()),
        calls_over_time=blocks(calls),
    )


def blocks(values: NDArray[np.bool_]) -> list[float]:
    return [float(values[start : start + BLOCK].mean()) for start in range(0, len(values), BLOCK)]


def share(values: Iterator[bool]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


def data_in(folder: Path) -> Iterator[Data]:
    def written(name: str) -> list[Labelled]:
        lines = read(folder / name / "enrichment.jsonl")
        return [Labelled(text, line["skill"]) for line in lines for text in line["requests"]]

    train, test = (
        [
            Labelled(row["text"], row["intent"])
            for row in read(folder / "banking77" / f"{part}.jsonl")
        ]
        for part in ("train", "test")
    )
    yield Data("BANKING77", train, test, written("banking77"))
    clinc = read(folder / "clinc150" / "full.jsonl")
    train, test = (
        [
            Labelled(row["text"], "" if row["oos"] else row["intent"])
            for row in clinc
            if (row["split"] == "test") == final
        ]
        for final in (False, True)
    )
    yield Data("CLINC150", train, test, written("clinc150"))


def stream_of(
    data: Data, *, part: str, seed: int, llm_error: float, vectors: dict[str, Vectors]
) -> Stream:
    """The rarest rows come whole (test requests, requests that nothing serves), others fill up."""
    chance = random.Random(seed)  # noqa: S311 - a seeded benchmark
    if part == "test":
        whole, others = list(data.test), [row for row in data.train if row.label]
    else:
        whole = [row for row in data.train if not row.label]
        others = [row for row in data.train if row.label]
    rows = whole + chance.sample(others, LENGTH - len(whole))
    chance.shuffle(rows)
    names = sorted({row.label for row in rows})
    answers = [
        chance.choice([name for name in names if name != row.label])
        if llm_error and chance.random() < llm_error
        else row.label
        for row in rows
    ]
    return Stream(
        [row.text for row in rows],
        [row.label for row in rows],
        answers,
        np.stack([vectors[row.text] for row in rows]),
        data.written,
        np.stack([vectors[row.text] for row in data.written]),
    )


def encoded(data: Data, encoder: Encoder) -> dict[str, Vectors]:
    texts = list(dict.fromkeys(row.text for row in (*data.train, *data.test, *data.written)))
    return dict(zip(texts, encoder.encode(texts), strict=True))


@dataclass(frozen=True)
class Line:
    """One method over its streams; intervals are of the mean over streams."""

    data: str
    method: str
    streams: int
    llm_error: float
    error: float
    error_95: tuple[float, float]
    worst_error: float
    in_bound: float
    saved: float
    saved_95: tuple[float, float]
    least_saved: float
    saved_last_quarter: float


def lines(runs: Sequence[Run]) -> Iterator[Line]:
    for data, method in dict.fromkeys((some.data, some.method) for some in runs):
        rows = [some for some in runs if (some.data, some.method) == (data, method)]
        errors = [some.error for some in rows]
        saved = [some.saved for some in rows]
        yield Line(
            data=data,
            method=method,
            streams=len(rows),
            llm_error=fmean([some.llm for some in rows]),
            error=fmean(errors),
            error_95=interval(errors),
            worst_error=max(errors),
            in_bound=share(some.error <= some.llm + MAX_ERROR for some in rows),
            saved=fmean(saved),
            saved_95=interval(saved),
            least_saved=min(saved),
            saved_last_quarter=fmean([some.last_quarter for some in rows]),
        )


def over_time(runs: Sequence[Run]) -> dict[str, dict[str, list[list[float]]]]:
    """Share of requests that cost a call, by data set and method, in points (requests, share)."""
    series: dict[str, dict[str, list[list[float]]]] = {}
    for line in lines(runs):
        rows = [some for some in runs if (some.data, some.method) == (line.data, line.method)]
        blocks = np.mean([some.calls_over_time for some in rows], axis=0).tolist()
        points = [[(number + 1.0) * BLOCK, value] for number, value in enumerate(blocks)]
        series.setdefault(line.data, {})[line.method] = points
    return series


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95% interval of the mean, normal; the point itself for a single value."""
    half = 1.96 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return fmean(values) - half, fmean(values) + half


def main() -> None:
    parser = with_encoder(parser_of(__doc__))
    parser.add_argument("--part", choices=("dev", "test"), default="test")
    parser.add_argument("--seeds", type=int, default=5, help="streams of each data set")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--llm-error", type=float, default=0.0)
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--sets", nargs="+", default=["BANKING77", "CLINC150"])
    arguments = parsed(parser)
    encoder = encoder_of(arguments)
    runs = []
    for data in data_in(arguments.data):
        if data.name not in arguments.sets:
            continue
        vectors = encoded(data, encoder)
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            stream = stream_of(
                data,
                part=arguments.part,
                seed=seed,
                llm_error=arguments.llm_error,
                vectors=vectors,
            )
            for name in arguments.only:
                runs.append(run(data.name, name, stream, seed))
                say(f"{data.name} {name} {seed}: done")
    rows = [asdict(line) for line in lines(runs)]
    give(rows, as_json=arguments.json, series={"llm_calls": over_time(runs)})


if __name__ == "__main__":
    main()
