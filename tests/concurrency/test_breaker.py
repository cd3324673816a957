"""The circuit breaker, with a clock that tests turn."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st

from router.concurrency.breaker import BreakerState, CircuitBreaker, GuardedCall


@pytest.fixture
def clock() -> Clock:
    return Clock(100.0)


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return CircuitBreaker(failures=2, reset_seconds=30, clock=clock)


def begin(breaker: CircuitBreaker) -> GuardedCall:
    call = breaker.try_call()
    assert call is not None
    return call


def fail(breaker: CircuitBreaker) -> None:
    with begin(breaker) as call:
        call.failed()


def succeed(breaker: CircuitBreaker) -> None:
    with begin(breaker) as call:
        call.succeeded()


def open_it(breaker: CircuitBreaker) -> None:
    fail(breaker)
    fail(breaker)


def state_of(breaker: CircuitBreaker) -> BreakerState:
    return breaker.state


def test_it_opens_after_that_many_failures_in_a_row(breaker: CircuitBreaker) -> None:
    fail(breaker)
    assert state_of(breaker) is BreakerState.CLOSED
    fail(breaker)
    assert state_of(breaker) is BreakerState.OPEN
    assert breaker.try_call() is None


def test_a_success_starts_the_count_anew(breaker: CircuitBreaker) -> None:
    fail(breaker)
    succeed(breaker)
    fail(breaker)
    assert state_of(breaker) is BreakerState.CLOSED


def test_after_the_pause_exactly_one_trial_is_let_through(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    open_it(breaker)
    clock.now += 29.9
    assert breaker.try_call() is None
    clock.now += 0.1
    assert state_of(breaker) is BreakerState.HALF_OPEN
    with begin(breaker):
        assert breaker.try_call() is None


def test_a_trial_that_succeeds_closes_it(breaker: CircuitBreaker, clock: Clock) -> None:
    open_it(breaker)
    clock.now += 30
    succeed(breaker)
    assert state_of(breaker) is BreakerState.CLOSED
    fail(breaker)
    assert state_of(breaker) is BreakerState.CLOSED


def test_a_trial_that_fails_opens_it_for_another_pause(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    open_it(breaker)
    clock.now += 30
    fail(breaker)
    assert state_of(breaker) is BreakerState.OPEN
    clock.now += 30
    assert state_of(breaker) is BreakerState.HALF_OPEN


def test_a_trial_that_is_cancelled_leaves_the_next_call_to_be_the_trial(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    open_it(breaker)
    clock.now += 30
    with pytest.raises(KeyboardInterrupt), begin(breaker):
        raise KeyboardInterrupt
    assert state_of(breaker) is BreakerState.HALF_OPEN
    succeed(breaker)
    assert state_of(breaker) is BreakerState.CLOSED


def test_a_late_failure_of_an_older_call_does_not_prolong_the_pause(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    with begin(breaker) as slow:
        open_it(breaker)
        clock.now += 20
        slow.failed()
    clock.now += 10
    assert state_of(breaker) is BreakerState.HALF_OPEN


def test_a_late_success_of_an_older_call_does_not_end_the_pause(breaker: CircuitBreaker) -> None:
    with begin(breaker) as slow:
        open_it(breaker)
        slow.succeeded()
    assert state_of(breaker) is BreakerState.OPEN


def test_the_pause_is_over_on_time_where_the_clock_s_sums_are_rounded(
    breaker: CircuitBreaker, clock: Clock
) -> None:
    clock.now = 37.54
    open_it(breaker)
    clock.now += 30
    assert clock.now - 37.54 < 30
    assert breaker.try_call() is not None


STEPS = st.lists(
    st.one_of(
        st.sampled_from(["begin", "succeed", "fail", "cancel"]),
        st.floats(0.1, 40),
    ),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_whatever_happens_a_call_is_possible_again_after_a_pause(steps: list[str | float]) -> None:
    clock = Clock(100.0)
    breaker = CircuitBreaker(failures=2, reset_seconds=30, clock=clock)
    running: list[GuardedCall] = []
    endings: dict[str, Callable[[GuardedCall], None]] = {
        "succeed": GuardedCall.succeeded,
        "fail": GuardedCall.failed,
        "cancel": lambda call: None,
    }

    def end(how: str) -> None:
        with running.pop(0) as call:
            endings[how](call)

    for step in steps:
        if isinstance(step, float):
            clock.now += step
        elif step == "begin":
            trial = breaker.state is BreakerState.HALF_OPEN
            call = breaker.try_call()
            if call is not None:
                running.append(call)
            if trial and call is not None:
                assert breaker.try_call() is None
        elif running:
            end(step)
    while running:
        end("cancel")
    clock.now += 30
    assert breaker.try_call() is not None
