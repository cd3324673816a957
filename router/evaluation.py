"""How good the routing is, on labelled requests: the figures behind ``router eval``.

A row is a request with the names of the skills that serve it; an empty list means that nothing
installed fits, so the right answer is not to route. ``history`` and ``available`` are what they are
to ``route``; a row's other keys are its own. Every row is judged as soon as it is routed
and its result dropped, so memory holds a few numbers a row.

Caches must not help, or a repeated request would be graded for its first answer: each row is
routed under a scope of its own, which no cached answer crosses, and without the fuzzy cache.

What counts, and why:

* The ranking of a result is ``ranking`` below. Rows without labels have nothing to rank and are
  left out of hit@1, recall@5, nDCG@10 and coverage; they make the false-accept rate.
* A routed row is right when every selected skill is one of its labels. A part of a
  multi-skill answer is then still right; ``exact`` is the stricter share of routed rows whose
  selection is the very set of labels.
* Risk-coverage and calibration are about routed rows, whose confidence says how probable it is
  that the selection is right; routing a row that nothing fits is wrong there.
"""

from __future__ import annotations

import hashlib
import json
import math
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, NoReturn

from router.errors import ConfigurationError
from router.learning.evidence import copy_evidence
from router.learning.metrics import (
    ReliabilityBin,
    aurc,
    expected_calibration_error,
    reliability_bins,
    risk_coverage,
)
from router.learning.stage_calibrations import confidence_source, own_confidence
from router.numeric import wilson
from router.plain_json import PlainJson
from router.request import Request, Turn
from router.result import Decision, RoutingResult

if TYPE_CHECKING:
    from router.router import SemanticRouter
    from router.settings.settings import Settings

RECALL_DEPTH: Final = 5
NDCG_DEPTH: Final = 10
CURVE_POINTS: Final = 100
COVERAGE_POINTS: Final = (0.25, 0.5, 0.75, 1.0)
"""Shares of the routed rows, most confident first, at which the risk is reported."""


@dataclass(frozen=True, slots=True)
class LabelledRequest:
    """One row of an evaluation file.

    Attributes:
        line: 1-based line of the file.
        request: the text to route.
        skills: names of the skills that serve it; empty when nothing fits.
        extra: the row's other keys, kept for the per-row output.
        history: earlier turns of the conversation, which a follow-up is read with.
        available: names of the skills that may be chosen; None means all installed ones.
    """

    line: int
    request: str
    skills: tuple[str, ...]
    extra: Mapping[str, Any]
    history: tuple[Turn, ...] = ()
    available: tuple[str, ...] | None = None

    @property
    def kind(self) -> str | None:
        """The row's ``kind``, when it is a string."""
        kind = self.extra.get("kind")
        return kind if isinstance(kind, str) else None

    def digest(self, catalog_version: str) -> str:
        """Names this request with these labels over one catalog."""
        parts = [catalog_version, self.request, *sorted(self.skills)]
        if self.history or self.available is not None:
            parts.append(repr((self.history, self.available)))
        return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Judgement:
    """One routed row, reduced to what the report needs.

    Attributes:
        row: the labelled request.
        decision: what the router decided.
        selected: skills that it chose.
        ranking: its best ``NDCG_DEPTH`` skills, see ``ranking``.
        confidence: the result's confidence in [0, 1].
        own_confidence: the same before calibration.
        stage: name of the stage that answered; ``local`` where examples did.
        milliseconds: wall-clock time of ``route``.
    """

    row: LabelledRequest
    decision: Decision
    selected: tuple[str, ...]
    ranking: tuple[str, ...]
    confidence: float
    own_confidence: float
    stage: str
    milliseconds: float

    @property
    def right(self) -> bool:
        """Whether the decision is right: a route to labelled skills only, or no route where
        nothing fits. Asking or abstaining where a skill fits is not."""
        if self.decision is Decision.ROUTE:
            return bool(self.selected) and set(self.selected) <= set(self.row.skills)
        return not self.row.skills

    def to_dict(self) -> dict[str, Any]:
        """The row as plain JSON types: its own keys first, then what the router made of it."""
        labels = self.row.skills
        scores = {}
        if labels:
            scores = {
                "hit@1": hit_at_1(self.ranking, labels),
                "recall@5": recall_at(self.ranking, labels, RECALL_DEPTH),
                "ndcg@10": ndcg_at(self.ranking, labels, NDCG_DEPTH),
            }
        return {
            **self.row.extra,
            "line": self.row.line,
            "request": self.row.request,
            "skills": list(labels),
            "decision": self.decision.value,
            "selected_skills": list(self.selected),
            "ranking": list(self.ranking),
            "confidence": self.confidence,
            "stage": self.stage,
            "right": self.right,
            **scores,
            "milliseconds": round(self.milliseconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Share:
    """A share of rows, or a mean of values in [0, 1], with its 95% interval.

    Attributes:
        value: the share.
        low: lower end of the interval.
        high: upper end of the interval.
        rows: how many rows it was taken over.
    """

    value: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True, slots=True)
class Report(PlainJson):
    """The figures over a set of rows. None means that no row can answer the question.

    Attributes:
        rows: how many rows were routed.
        decisions: rows a decision, all three always present.
        hit_at_1: labelled rows whose ranking starts with a label.
        recall_at_5: mean share of a labelled row's labels among the first five.
        ndcg_at_10: mean nDCG of the labelled rows' first ten.
        right: rows that are routed to labels only or, where nothing fits, not routed.
        coverage: labelled rows that are routed.
        accuracy: routed rows with labels whose every selected skill is a label.
        exact: routed rows with labels whose selection is exactly the labels.
        false_accepts: rows that nothing fits which are routed all the same.
        aurc: area under the risk-coverage curve of all routed rows; lower is better.
        risk_at: share of routed rows, most confident first, to the share of them that is wrong.
        ece: expected calibration error of the routed rows.
        reliability: their reliability diagram: the bins that hold any, by confidence.
        risk_coverage: their risk-coverage curve, (coverage, risk), at some hundred points.
        latency_ms: percentile (``p50``, ``p90``, ``p99``) to milliseconds a request.
    """

    rows: int
    decisions: Mapping[str, int]
    hit_at_1: Share | None
    recall_at_5: Share | None
    ndcg_at_10: Share | None
    right: Share | None
    coverage: Share | None
    accuracy: Share | None
    exact: Share | None
    false_accepts: Share | None
    aurc: float | None
    risk_at: Mapping[str, float]
    ece: float | None
    reliability: tuple[ReliabilityBin, ...]
    risk_coverage: tuple[tuple[float, float], ...]
    latency_ms: Mapping[str, float]


def read_rows(lines: Iterable[bytes], *, source: str) -> list[LabelledRequest]:
    """Parse an evaluation file; blank lines are skipped.

    Args:
        lines: the file's lines, UTF-8.
        source: the file's name, for messages.

    Raises:
        ConfigurationError: a line is not a row, or there is none; the message names file and line.
    """
    rows = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            rows.append(_read_row(number, line))
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(f"{source}:{number}: {error}") from error
    if not rows:
        raise ConfigurationError(f'{source}: no rows; expected {{"request": ..., "skills": [...]}}')
    return rows


def _read_row(number: int, line: bytes) -> LabelledRequest:
    try:
        raw = json.loads(line.decode("utf-8-sig"), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start + 1}") from error
    if not isinstance(raw, dict):
        raise ValueError(f"expected an object, not {type(raw).__name__}")
    extra = dict(raw)
    request, skills = extra.pop("request", None), extra.pop("skills", None)
    if not isinstance(request, str):
        raise ValueError("'request' must be a string")
    if not isinstance(skills, list) or not all(isinstance(name, str) for name in skills):
        raise ValueError("'skills' must be a list of names; an empty list when nothing fits")
    history, available = extra.get("history"), extra.get("available")
    for key, value in (("history", history), ("available", available)):
        if not isinstance(value, list | None):
            raise ValueError(f"{key!r} must be a list")
    asked = Request.parse(request, history=history or (), available=available)
    labels = tuple(dict.fromkeys(skills))
    return LabelledRequest(number, request, labels, extra, asked.history, asked.available)


def _no_constant(name: str) -> NoReturn:
    """Refuse NaN and infinities: JSON has none, but Python reads and writes them."""
    raise ValueError(f"{name} is not JSON")


def unknown_labels(
    rows: Iterable[LabelledRequest], installed: Iterable[str]
) -> dict[str, tuple[int, ...]]:
    """Labels that name no installed skill, with the lines that use them; such rows are misses."""
    known = set(installed)
    missing: dict[str, list[int]] = {}
    for row in rows:
        for name in row.skills:
            if name not in known:
                missing.setdefault(name, []).append(row.line)
    return {name: tuple(lines) for name, lines in missing.items()}


@contextmanager
def apart(served: Settings) -> Iterator[dict[str, Any]]:
    """Settings of a router that is evaluated while the block runs: it begins with a copy of what
    was learnt under ``served``, it is given no answer or label of another process, and what it
    decides and learns goes into a temporary folder.

    Raises:
        StoreError: the evidence cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="router-evaluation-") as state:
        if served.learning.enabled:
            copy_evidence(served.evidence_directory, Path(state))
        own = {"state_dir": state, "learning": {"directory": state}}
        yield {**own, "answer_cache": "local", "cluster": {"url": None}}


async def evaluate(
    router: SemanticRouter, rows: Iterable[LabelledRequest]
) -> AsyncIterator[Judgement]:
    """Route the rows one after the other, so that times are those of a lone request.

    Raises:
        RouterError: the skills cannot be read or indexed.
    """
    await router.learned()  # so that the first rows and the last are routed by the same model
    for row in rows:
        began = perf_counter()
        # A scope of its own: no cached answer crosses scopes. See the module's text.
        result = await router.route(
            row.request,
            available_skills=row.available,
            history=row.history,
            scope=f"evaluation-line-{row.line}",
            use_semantic_cache=False,
        )
        yield judge(row, result, milliseconds=(perf_counter() - began) * 1000)


def judge(row: LabelledRequest, result: RoutingResult, *, milliseconds: float) -> Judgement:
    """Reduce a result to what the report needs."""
    return Judgement(
        row=row,
        decision=result.decision,
        selected=result.selected_skills,
        ranking=ranking(result)[:NDCG_DEPTH],
        confidence=result.confidence,
        own_confidence=own_confidence(result),
        stage=confidence_source(result),
        milliseconds=milliseconds,
    )


def ranking(result: RoutingResult) -> tuple[str, ...]:
    """The skills of a result in the order in which it favours them, without repeats.

    First what it selects, then what it suggests, then the candidates of the last trace entry that
    has any: the stage that saw the most skills with the best evidence.
    """
    considered = next(
        (entry.candidates for entry in reversed(result.trace) if entry.candidates), ()
    )
    names = (*result.selected_skills, *result.suggested_skills, *(c.name for c in considered))
    return tuple(dict.fromkeys(names))


def summarise(judgements: Sequence[Judgement]) -> Report:
    """The figures over some judged rows, in any order."""
    labelled = [j for j in judgements if j.row.skills]
    routed = [j for j in judgements if j.decision is Decision.ROUTE]
    routed_labelled = [j for j in routed if j.row.skills]
    nothing_fits = [j for j in judgements if not j.row.skills]
    confidences = [j.confidence for j in routed]
    right = [j.right for j in routed]
    curve = risk_coverage(confidences, right)
    risks = [risk for _, risk in curve]
    return Report(
        rows=len(judgements),
        decisions={d.value: sum(j.decision is d for j in judgements) for d in Decision},
        hit_at_1=share(hit_at_1(j.ranking, j.row.skills) for j in labelled),
        recall_at_5=share(recall_at(j.ranking, j.row.skills, RECALL_DEPTH) for j in labelled),
        ndcg_at_10=share(ndcg_at(j.ranking, j.row.skills, NDCG_DEPTH) for j in labelled),
        right=share(j.right for j in judgements),
        coverage=share(j.decision is Decision.ROUTE for j in labelled),
        accuracy=share(j.right for j in routed_labelled),
        exact=share(set(j.selected) == set(j.row.skills) for j in routed_labelled),
        false_accepts=share(j.decision is Decision.ROUTE for j in nothing_fits),
        aurc=aurc(confidences, right) if routed else None,
        risk_at={
            f"{point:.0%}": risks[math.ceil(point * len(risks)) - 1]
            for point in COVERAGE_POINTS
            if risks
        },
        ece=expected_calibration_error(confidences, right) if routed else None,
        reliability=reliability_bins(confidences, right),
        risk_coverage=curve[:: max(1, len(curve) // CURVE_POINTS)],
        latency_ms={
            f"p{p}": percentile([j.milliseconds for j in judgements], p)
            for p in (50, 90, 99)
            if judgements
        },
    )


def summarise_by_kind(judgements: Sequence[Judgement]) -> dict[str, Report]:
    """One report a ``kind``, in the order of first appearance; empty unless all rows have one."""
    groups: dict[str, list[Judgement]] = {}
    for judgement in judgements:
        if judgement.row.kind is None:
            return {}
        groups.setdefault(judgement.row.kind, []).append(judgement)
    return {kind: summarise(group) for kind, group in groups.items()}


def hit_at_1(ranked: Sequence[str], labels: Sequence[str]) -> bool:
    """Whether the first of the ranking is one of the labels."""
    return bool(ranked) and ranked[0] in labels


def recall_at(ranked: Sequence[str], labels: Sequence[str], k: int) -> float:
    """Share of the labels among the first ``k``, in [0, 1]; ``labels`` is not empty.

    With more labels than ``k`` the best attainable value is below 1.
    """
    return len(set(ranked[:k]) & set(labels)) / len(set(labels))


def ndcg_at(ranked: Sequence[str], labels: Sequence[str], k: int) -> float:
    """Normalised discounted cumulative gain of the first ``k``, in [0, 1]; labels not empty.

    Gain 1 for a label, discount log2(rank + 1), divided by the value of the best possible order
    (Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS 20(4),
    2002, with the discount that has since become usual).
    """
    wanted = set(labels)
    gains = (1 / math.log2(rank + 1) for rank, name in enumerate(ranked[:k], 1) if name in wanted)
    best = (1 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return math.fsum(gains) / math.fsum(best)


def share(values: Iterable[float]) -> Share | None:
    """Mean of values in [0, 1] with its 95% Wilson interval; None without values."""
    listed = list(values)
    if not listed:
        return None
    total = math.fsum(listed)
    return Share(total / len(listed), *wilson(total, len(listed)), len(listed))


def percentile(values: Sequence[float], p: float) -> float:
    """The nearest-rank percentile, ``p`` in (0, 100]: a value that did occur. Values not empty."""
    return sorted(values)[math.ceil(p / 100 * len(values)) - 1]
