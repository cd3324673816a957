"""How far a confidence can be trusted, and how sure a measured share is.

Confidences are P(right) in [0, 1]; ``right`` says, for each, whether the answer was right. Every
function is plain arithmetic over two sequences, so that benchmarks, tests and ``router eval`` all
report the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

DEFAULT_BINS: Final = 15


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bar of a reliability diagram.

    Attributes:
        low: lower edge of the bin; belongs to it only in the first bin.
        high: upper edge, which belongs to it.
        count: answers whose confidence lies in the bin; at least 1.
        confidence: their mean confidence.
        accuracy: share of them that was right.
    """

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


def reliability_bins(
    confidences: Sequence[float], right: Sequence[bool], *, bins: int = DEFAULT_BINS
) -> tuple[ReliabilityBin, ...]:
    """The answers by confidence, in ``bins`` bins of equal width; empty bins are left out."""
    _check(confidences, right)
    members: list[list[int]] = [[] for _ in range(bins)]
    for index, confidence in enumerate(confidences):
        members[max(0, math.ceil(confidence * bins) - 1)].append(index)
    return tuple(
        ReliabilityBin(
            low=number / bins,
            high=(number + 1) / bins,
            count=len(some),
            confidence=math.fsum(confidences[i] for i in some) / len(some),
            accuracy=sum(bool(right[i]) for i in some) / len(some),
        )
        for number, some in enumerate(members)
        if some
    )


def expected_calibration_error(
    confidences: Sequence[float], right: Sequence[bool], *, bins: int = DEFAULT_BINS
) -> float:
    """Mean distance of confidence and accuracy over the bins, weighted by their sizes.

    Naeini, Cooper and Hauskrecht (AAAI 2015). 0 is perfect.

    Raises:
        ValueError: there are no answers, or a confidence lies outside [0, 1].
    """
    if not confidences:
        raise ValueError("no answers to measure")
    found = reliability_bins(confidences, right, bins=bins)
    gaps = math.fsum(some.count * abs(some.confidence - some.accuracy) for some in found)
    return gaps / len(confidences)


def risk_coverage(
    confidences: Sequence[float], right: Sequence[bool]
) -> tuple[tuple[float, float], ...]:
    """(coverage, risk) when the n most confident answers are kept, for every n.

    Answers of equal confidence are kept or dropped together in truth, so each takes the mean
    risk of its group: the order of the rows does not matter.
    """
    _check(confidences, right)
    order = sorted(range(len(confidences)), key=lambda index: -confidences[index])
    points = []
    wrong = 0.0
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and confidences[order[end]] == confidences[order[start]]:
            end += 1
        share = sum(not right[index] for index in order[start:end]) / (end - start)
        for kept in range(start + 1, end + 1):
            wrong += share
            points.append((kept / len(order), wrong / kept))
        start = end
    return tuple(points)


def aurc(confidences: Sequence[float], right: Sequence[bool]) -> float:
    """Area under the risk-coverage curve: the mean risk over all coverages; lower is better.

    Geifman, Uziel and El-Yaniv (ICLR 2019).

    Raises:
        ValueError: there are no answers.
    """
    points = risk_coverage(confidences, right)
    if not points:
        raise ValueError("no answers to measure")
    return math.fsum(risk for _, risk in points) / len(points)


def _check(confidences: Sequence[float], right: Sequence[bool]) -> None:
    if len(confidences) != len(right):
        raise ValueError(f"{len(confidences)} confidences for {len(right)} outcomes")
    if not all(0 <= confidence <= 1 for confidence in confidences):
        raise ValueError("a confidence lies outside [0, 1]")
