"""Figures of the tables that the product itself never needs, and their intervals.

What ``router eval`` reports as well lives in ``router/evaluation.py`` and in
``router/learning/metrics.py``, and is taken from there. Tests compare all of them with scikit-learn
and trec_eval.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from router.numeric import wilson

COVERAGE: Final = 0.9
RESAMPLES: Final = 1_000

Floats = NDArray[np.floating[Any]]


def auroc(higher: ArrayLike, lower: ArrayLike) -> float:
    """How probable it is that one of ``higher`` is above one of ``lower``; a tie counts half.

    The area under the receiver operating characteristic, as Mann and Whitney's U (1947).
    """
    ours, theirs = np.asarray(higher), np.sort(np.asarray(lower))
    below = np.searchsorted(theirs, ours, side="left")
    at_most = np.searchsorted(theirs, ours, side="right")
    return float((below + at_most).sum() / (2 * len(ours) * len(theirs)))


def refused_at(coverage: float, inside: Floats, outside: Floats) -> NDArray[np.bool_]:
    """Which of ``outside`` score less than the score that this share of ``inside`` reaches."""
    return np.asarray(outside < np.quantile(inside, 1 - coverage))


def refusal_figures(inside: Floats, outside: Floats, *, seed: int) -> dict[str, Any]:
    """How well a score tells requests that something serves from those that nothing does.

    Args:
        inside: scores of requests that something serves.
        outside: scores of the others.
        seed: of the bootstrap, over both kinds of requests, that gives the AUROC's interval.
    """
    choose = np.random.default_rng(seed)
    resampled = [
        auroc(choose.choice(inside, len(inside)), choose.choice(outside, len(outside)))
        for _ in range(RESAMPLES)
    ]
    refused = refused_at(COVERAGE, inside, outside)
    return {
        "auroc": auroc(inside, outside),
        "auroc_95": _middle_95(resampled),
        "refused": float(refused.mean()),
        "refused_95": wilson(int(refused.sum()), len(refused)),
    }


def mean_95(values: Floats, *, seed: int) -> tuple[float, float]:
    """95% interval of a mean by the percentile bootstrap; for values that are no plain shares."""
    choose = np.random.default_rng(seed)
    return _middle_95([float(choose.choice(values, len(values)).mean()) for _ in range(RESAMPLES)])


def _middle_95(resampled: list[float]) -> tuple[float, float]:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(low), float(high)
