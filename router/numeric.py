"""Numbers: those from outside, where JSON has any size, NaN and infinities; and probabilities."""

from __future__ import annotations

import math


def finite(value: object) -> float | None:
    """The value as a finite float; None when it is no number, a boolean, NaN, or too large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def logistic(log_odds: float) -> float:
    """The probability, in (0, 1), of log-odds; those beyond 30 count as 30."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, log_odds))))
