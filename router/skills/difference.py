"""What differs between two sequences of which most is the same.

One skill of thousands changes at a time, and looking each of them up by its name takes a
millisecond. So what stands before and behind the change is found by comparing objects, and only
what lies between is looked at closer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import is_not
from typing import TypeVar

T = TypeVar("T")


def differing(before: Sequence[T], after: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """The part of each sequence that differs. What stands before the parts is the very same
    objects in both, and so is what stands behind them."""
    start = _same(before, after)
    before, after = before[start:], after[start:]
    behind = _same(before[::-1], after[::-1])
    return before[: len(before) - behind], after[: len(after) - behind]


def _same(before: Sequence[T], after: Sequence[T]) -> int:
    """How many of the first objects are the same."""
    others = map(is_not, before, after)
    return next(compress(count(), others), min(len(before), len(after)))
