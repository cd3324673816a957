"""Numbers from outside: JSON has integers of any size, NaN and infinities."""

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
