"""The stream of what happened: every sink hears every event, and no sink can do harm."""

from __future__ import annotations

import logging

import pytest

from router.events import Degraded, Event, Events, OptionalPart, Recovered

FIRST = Degraded("llm", "no provider answers")
SECOND = Degraded("fuzzy cache", "works in memory only")


def test_every_sink_is_told_of_every_event_in_order() -> None:
    events = Events()
    told: list[tuple[str, Event]] = []
    events.subscribe(lambda event: told.append(("a", event)))
    events.subscribe(lambda event: told.append(("b", event)))
    events.emit(FIRST)
    events.emit(SECOND)
    assert told == [("a", FIRST), ("b", FIRST), ("a", SECOND), ("b", SECOND)]


def test_a_sink_that_raises_harms_nobody_and_is_told_of_the_next_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = Events()
    told: list[Event] = []
    failed: list[Event] = []

    def broken(event: Event) -> None:
        failed.append(event)
        raise ValueError("out of order")

    events.subscribe(broken)
    events.subscribe(told.append)
    with caplog.at_level(logging.ERROR):
        events.emit(FIRST)
        events.emit(SECOND)
    assert told == failed == [FIRST, SECOND]
    assert [record.getMessage() for record in caplog.records] == ["a sink failed on Degraded"] * 2


def test_a_sink_that_has_unsubscribed_is_told_nothing_more() -> None:
    events = Events()
    told: list[Event] = []
    unsubscribe = events.subscribe(told.append)
    events.emit(FIRST)
    unsubscribe()
    unsubscribe()  # a second time changes nothing
    events.emit(SECOND)
    assert told == [FIRST]
    assert not events.listening


def test_a_sink_may_unsubscribe_while_it_is_told() -> None:
    events = Events()
    told: list[Event] = []

    def once(event: Event) -> None:
        told.append(event)
        unsubscribe()

    unsubscribe = events.subscribe(once)
    events.emit(FIRST)
    events.emit(SECOND)
    assert told == [FIRST]


def test_a_part_tells_each_failure_and_its_return_once() -> None:
    events = Events()
    part = OptionalPart("llm", events)
    part.failed("before anybody listened")
    told: list[Event] = []
    events.subscribe(told.append)
    for _ in range(2):
        part.failed("no provider answers")
    for _ in range(2):
        part.worked()
    assert told == [FIRST, FIRST, Recovered("llm")]
