"""Finds the part in which two sequences differ that are mostly the same.

One skill of thousands changes at a time, and to look each of them up by its name takes a
millisecond. So the equal parts at the beginning and the end are found by comparing object
identities, and only the part between them needs a closer look.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count
from operator import is_not
from typing import TypeVar

T = TypeVar("T")


def differing(before: Sequence[T], after: Sequence[T]) -> tuple[Sequence[T], Sequence[T]]:
    """The part of each sequence that differs. Before and after it, both sequences contain the same
    objects."""
    start = _same(before, after)
    before, after = before[start:], after[start:]
    behind = _same(before[::-1], after[::-1])
    return before[: len(before) - behind], after[: len(after) - behind]


def _same(before: Sequence[T], after: Sequence[T]) -> int:
    """The number of objects at the beginning that are the same."""
    others = map(is_not, before, after)
    return next(compress(count(), others), min(len(before), len(after)))
