"""A circuit breaker: leaves a failing provider alone for a while, then lets one trial call decide.

    closed ──failures in a row──► open ──reset_seconds──► half-open ──trial succeeds──► closed
                                    ▲                         │
                                    └──────trial fails────────┘

It has no lock: all its methods are synchronous and run on one event loop. A call is a ``with``
block; one that ends without a verdict (its caller was cancelled) says nothing about the provider,
so it counts neither way, and if it was the trial, the next call becomes the trial. Verdicts of
calls that began before the last change of state are stale and ignored: a late failure must not
prolong a pause, and a late success must not end it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final


class BreakerState(StrEnum):
    """Whether calls may be made."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


STATE_WORDS: Final = {"closed": "ok", "open": "failing", "half-open": "on trial"}
"""The states in plain words, for people and agents: a closed breaker lets calls through."""


class CircuitBreaker:
    """Counts consecutive failures of one provider.

    Args:
        failures: failures in a row that open it, at least 1.
        reset_seconds: how long it stays open before a trial.
        clock: monotonic seconds.
    """

    def __init__(self, *, failures: int, reset_seconds: float, clock: Callable[[], float]) -> None:
        self._limit = failures
        self._reset_seconds = reset_seconds
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._trial: GuardedCall | None = None
        self._epoch = 0

    @property
    def state(self) -> BreakerState:
        """The state now."""
        if self._opened_at is None:
            return BreakerState.CLOSED
        if self._clock() < self._opened_at + self._reset_seconds:
            return BreakerState.OPEN
        return BreakerState.HALF_OPEN

    def try_call(self) -> GuardedCall | None:
        """Permission to make one call; None while no call may be made."""
        state = self.state
        if state is BreakerState.OPEN or self._trial is not None:
            return None
        call = GuardedCall(self, self._epoch)
        if state is BreakerState.HALF_OPEN:
            self._trial = call
        return call

    def _settle(self, call: GuardedCall, succeeded: bool) -> None:
        if call.epoch != self._epoch:
            return
        if succeeded:
            self._failures = 0
            if self._opened_at is not None:
                self._opened_at = None
                self._epoch += 1
            return
        self._failures += 1
        if self._failures >= self._limit:  # only a success lowers it, so one failed trial is enough
            self._opened_at = self._clock()
            self._epoch += 1

    def _leave(self, call: GuardedCall) -> None:
        if self._trial is call:
            self._trial = None


class GuardedCall:
    """One call under a breaker; a context manager. At most one verdict counts."""

    def __init__(self, breaker: CircuitBreaker, epoch: int) -> None:
        self._breaker = breaker
        self.epoch = epoch

    def succeeded(self) -> None:
        """The provider answered."""
        self._breaker._settle(self, succeeded=True)

    def failed(self) -> None:
        """The provider did not answer, or refused the call."""
        self._breaker._settle(self, succeeded=False)

    def refused(self) -> None:
        """The provider said that it takes no calls: the breaker opens at once."""
        while self.epoch == self._breaker._epoch:
            self._breaker._settle(self, succeeded=False)

    def __enter__(self) -> GuardedCall:
        return self

    def __exit__(self, *error: object) -> None:
        self._breaker._leave(self)
