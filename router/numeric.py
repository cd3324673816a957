"""Numbers: those from outside, where JSON has any size, NaN and infinities; sums of dollars as they
are shown; and probabilities, with how sure a measured one is."""

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


def dollars(amount: float) -> str:
    """A sum as it is shown, with two decimals, or with two significant digits if it is below ten
    cents: a call of an LLM costs parts of a cent."""
    digits = 2
    if 0 < amount < 0.1:
        digits = 1 - math.floor(math.log10(amount))
    return f"{amount:,.{digits}f} dollars"


def logistic(log_odds: float) -> float:
    """The probability, in (0, 1), of log-odds; those beyond 30 count as 30."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, log_odds))))


def log_odds(probability: float, *, least: float = 1e-6) -> float:
    """Of a probability, in [0, 1]. One nearer than ``least`` to 0 or 1 counts as so far from it, so
    that certainty stays a number."""
    bounded = min(max(probability, least), 1 - least)
    return math.log(bounded / (1 - bounded))


def wilson(successes: float, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Two-sided interval of a proportion (E. B. Wilson, 1927); (0, 1) without trials.

    ``successes`` may be a sum of values in [0, 1]. The interval of their mean is then wide rather
    than narrow: they vary at most as much as zeros and ones with the same mean.
    """
    if trials == 0:
        return 0.0, 1.0
    from statistics import NormalDist  # with what it needs, too long for every start

    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    # At 0 and 1 the interval ends there exactly; min and max take off the rounding error.
    return max(0.0, min(share, centre - half)), min(1.0, max(share, centre + half))
