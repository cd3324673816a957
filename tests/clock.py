"""A clock for tests."""

from __future__ import annotations


class Clock:
    """Stands still until a test sets ``now``."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
