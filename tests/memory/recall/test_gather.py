"""Gathering: layers in parallel under deadlines, and what becomes of those that misbehave."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_layers import (
    HungLayer,
    LoopLayer,
    RaisingLayer,
    StubbornLayer,
    ThreadLayer,
    WaitingLayer,
    WrongLayer,
    query,
    remembered,
)

from router.concurrency.breaker import BreakerState
from router.errors import ConfigurationError
from router.memory.model import (
    NOBODY,
    AnyLayer,
    LayerReport,
    LayerStatus,
    MemoryItem,
    Scope,
    ScoreKind,
)
from router.memory.recall.gather import (
    CALLS_AT_A_TIME,
    LAYERS_AT_A_TIME,
    THREADS_AT_A_TIME,
    Gatherer,
)
from router.result import LayerChoice

SOON = 0.02
"""A deadline for layers that miss it in any case."""
AMPLE = 30.0
"""A deadline that no layer of a test misses unless something is broken."""


@asynccontextmanager
async def gathering(*layers: AnyLayer, **options: Any) -> AsyncIterator[Gatherer]:
    gatherer = Gatherer(layers, **({"layer_seconds": AMPLE} | options))
    try:
        yield gatherer
    finally:
        await gatherer.aclose()


async def gather(
    gatherer: Gatherer, *, scope: Scope = NOBODY, k: int = 5
) -> dict[str, LayerReport]:
    choices = [LayerChoice(name, 1.0) for name in gatherer.specs]
    reports = await gatherer.gather(query(), choices, scope=scope, k=k)
    return {report.layer: report for report in reports}


def contents(report: LayerReport) -> list[str]:
    return [item.content for item in report.items]


async def turns_until(condition: Callable[[], bool]) -> None:
    """Let the event loop turn until something holds; the suite's time-out is the bound."""
    while not condition():  # noqa: ASYNC110 - threads end when they end; there is no event for it
        await asyncio.sleep(0)


async def test_layers_of_both_kinds_report_what_they_found() -> None:
    loop_layer = LoopLayer("semantic", "a JWT is a signed token")
    thread_layer = ThreadLayer("session", lambda: [remembered("session", "we spoke of JWT")])
    async with gathering(loop_layer, thread_layer) as gatherer:
        reports = await gather(gatherer)
    assert {name: report.status for name, report in reports.items()} == {
        "semantic": LayerStatus.OK,
        "session": LayerStatus.OK,
    }
    assert contents(reports["session"]) == ["we spoke of JWT"]


async def test_reports_come_in_the_order_asked_with_their_weights() -> None:
    async with gathering(LoopLayer("a"), LoopLayer("b"), LoopLayer("c")) as gatherer:
        choices = [LayerChoice("c", 0.9), LayerChoice("a", 0.4)]
        reports = await gatherer.gather(query(), choices, scope=NOBODY, k=5)
    assert [(report.layer, report.weight) for report in reports] == [("c", 0.9), ("a", 0.4)]


async def test_six_layers_on_the_loop_are_under_way_at_the_same_time() -> None:
    together = asyncio.Barrier(6)

    class Meeting(LoopLayer):
        async def search(self, *args: Any, **options: Any) -> Sequence[MemoryItem]:
            await together.wait()  # none passes before all six are here
            return await super().search(*args, **options)

    async with gathering(*(Meeting(f"layer{i}", "met") for i in range(6))) as gatherer:
        reports = await gather(gatherer)
    assert [report.status for report in reports.values()] == [LayerStatus.OK] * 6


async def test_further_layers_are_asked_when_earlier_ones_have_ended() -> None:
    under_way: set[str] = set()
    crowds: list[int] = []

    class Crowding(LoopLayer):
        async def search(self, *args: Any, **options: Any) -> Sequence[MemoryItem]:
            under_way.add(self.spec.name)
            await asyncio.sleep(0)
            crowds.append(len(under_way))
            under_way.remove(self.spec.name)
            return await super().search(*args, **options)

    async with gathering(*(Crowding(f"layer{i}", "found") for i in range(11))) as gatherer:
        reports = await gather(gatherer)
    assert [report.status for report in reports.values()] == [LayerStatus.OK] * 11
    assert max(crowds) == LAYERS_AT_A_TIME


async def test_as_many_blocking_layers_as_is_said_are_under_way_at_the_same_time() -> None:
    together = threading.Barrier(6)

    def meeting(name: str) -> ThreadLayer:
        def work() -> list[MemoryItem]:
            together.wait(AMPLE)
            return [remembered(name, "met")]

        return ThreadLayer(name, work)

    layers = [meeting(f"layer{i}") for i in range(6)]
    async with gathering(*layers, threads_at_a_time=6) as gatherer:
        reports = await gather(gatherer)
    assert [report.status for report in reports.values()] == [LayerStatus.OK] * 6


async def test_blocking_layers_that_hang_hold_up_neither_loop_layers_nor_later_ones() -> None:
    hanging = [HungLayer(f"hung{i}") for i in range(THREADS_AT_A_TIME)]
    later = ThreadLayer("later", lambda: [remembered("later", "here")])
    async with gathering(*hanging, LoopLayer("loop", "here"), later, layer_seconds=0.3) as gatherer:
        reports = await gather(gatherer)
        for hung in hanging:
            hung.go.set()
    assert reports["loop"].milliseconds < reports["hung0"].milliseconds
    assert contents(reports["loop"]) == contents(reports["later"]) == ["here"]


async def test_a_late_task_is_cancelled_and_has_ended_when_the_answer_comes() -> None:
    slow = WaitingLayer("slow")
    async with gathering(slow, layer_seconds=SOON) as gatherer:
        await gather(gatherer)
        assert slow.cancelled == 1
        assert gatherer.states()[0].running == 0


async def test_the_overall_deadline_ends_a_layer_before_its_own() -> None:
    slow, clock = WaitingLayer("slow"), Clock()
    async with gathering(slow, clock=clock) as gatherer:
        choices = [LayerChoice("slow", 1.0)]
        until = clock.now + SOON
        (report,) = await gatherer.gather(query(), choices, scope=NOBODY, k=5, until=until)
    assert (report.status, slow.cancelled) == (LayerStatus.TIMEOUT, 1)


async def test_a_layer_that_no_time_is_left_for_is_skipped() -> None:
    layer, clock = LoopLayer("semantic", "here"), Clock()
    async with gathering(layer, clock=clock) as gatherer:
        choices = [LayerChoice("semantic", 1.0)]
        (report,) = await gatherer.gather(query(), choices, scope=NOBODY, k=5, until=clock.now)
    assert (report.status, report.reason) == (LayerStatus.SKIPPED, "no time was left to ask it")
    assert layer.calls == 0


async def test_layers_that_hang_leave_time_to_ask_the_others() -> None:
    hanging = [WaitingLayer(f"hanging{i}") for i in range(LAYERS_AT_A_TIME)]
    healthy = [LoopLayer(f"healthy{i}", "here") for i in range(LAYERS_AT_A_TIME - 1)]
    async with gathering(*hanging, *healthy) as gatherer:
        choices = [LayerChoice(name, 1.0) for name in gatherer.specs]
        until = time.monotonic() + 1
        reports = await gatherer.gather(query(), choices, scope=NOBODY, k=5, until=until)
    assert [report.status for report in reports] == [
        *[LayerStatus.TIMEOUT] * len(hanging),
        *[LayerStatus.OK] * len(healthy),
    ]


async def test_a_slow_layer_has_half_of_the_time_left_however_many_wait() -> None:
    hung = HungLayer("hung")
    quick = [ThreadLayer(f"quick{i}", lambda: []) for i in range(8)]
    async with gathering(hung, *quick) as gatherer:
        choices = [LayerChoice(name, 1.0) for name in gatherer.specs]
        until = time.monotonic() + 0.4
        slow, *_ = await gatherer.gather(query(), choices, scope=NOBODY, k=5, until=until)
        hung.go.set()
    assert slow.status is LayerStatus.TIMEOUT
    assert slow.milliseconds > 150


async def test_a_layer_that_ignores_cancellation_neither_holds_the_answer_nor_is_forgotten() -> (
    None
):
    stubborn = StubbornLayer("stubborn")
    async with gathering(stubborn, layer_seconds=SOON) as gatherer:
        reports = await gather(gatherer)
        assert reports["stubborn"].status is LayerStatus.TIMEOUT
        assert gatherer.states()[0].running == 1
        stubborn.go.set()
        await turns_until(lambda: gatherer.states()[0].running == 0)


async def test_no_failure_of_a_forgotten_call_is_ever_printed() -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about))
    stubborn = StubbornLayer("stubborn")
    async with gathering(stubborn, layer_seconds=SOON) as gatherer:
        await gather(gatherer)
        stubborn.go.set()  # now it raises, and nobody waits any more
        await turns_until(lambda: gatherer.states()[0].running == 0)
    gc.collect()
    assert complaints == []


async def test_a_layer_whose_calls_all_hang_is_skipped_at_no_cost() -> None:
    stubborn, clock = StubbornLayer("stubborn"), Clock()
    async with gathering(stubborn, layer_seconds=SOON, clock=clock) as gatherer:
        for _ in range(CALLS_AT_A_TIME):
            await gather(gatherer)
        clock.now += 1  # past their deadlines
        reports = await gather(gatherer)
        assert reports["stubborn"].status is LayerStatus.SKIPPED
        assert reports["stubborn"].reason == "busy: earlier calls of it still hang"
        assert stubborn.calls == CALLS_AT_A_TIME
        stubborn.go.set()


async def test_a_blocking_layer_has_a_bounded_number_of_threads() -> None:
    hung, clock = HungLayer("hung"), Clock()
    async with gathering(hung, layer_seconds=SOON, clock=clock) as gatherer:
        for _ in range(CALLS_AT_A_TIME):
            await gather(gatherer)
        clock.now += 1
        reports = await gather(gatherer)
        assert reports["hung"].status is LayerStatus.SKIPPED
        assert hung.calls == CALLS_AT_A_TIME
        hung.go.set()
        await turns_until(lambda: gatherer.states()[0].running == 0)
        reports = await gather(gatherer)
    assert contents(reports["hung"]) == ["at last"]


async def test_more_calls_than_threads_wait_in_line_and_are_answered() -> None:
    layer = ThreadLayer("session", lambda: [remembered("session", "here")])
    async with gathering(layer) as gatherer:
        answers = await asyncio.gather(*(gather(gatherer) for _ in range(20)))
    assert [contents(answer["session"]) for answer in answers] == [["here"]] * 20


async def test_waiting_in_line_is_not_held_against_a_layer() -> None:
    hung, clock = HungLayer("hung"), Clock()
    async with gathering(hung, layer_seconds=SOON, clock=clock, breaker_failures=3) as gatherer:
        answers = await asyncio.gather(*(gather(gatherer) for _ in range(6)))
        assert [answer["hung"].status for answer in answers] == [LayerStatus.TIMEOUT] * 6
        assert gatherer.states()[0].breaker is BreakerState.CLOSED  # two calls failed, not six
        assert answers[-1]["hung"].reason.endswith("spent in line for a thread")
        hung.go.set()


async def test_a_layer_that_keeps_failing_is_left_alone_until_a_trial_succeeds() -> None:
    raising, clock = RaisingLayer("raising", OSError("gone")), Clock()
    options = {"breaker_failures": 3, "breaker_reset_seconds": 10.0, "clock": clock}
    async with gathering(raising, **options) as gatherer:
        for _ in range(3):
            await gather(gatherer)
        assert (await gather(gatherer))["raising"].status is LayerStatus.SKIPPED
        assert raising.calls == 3
        raising.error = None
        clock.now += 10
        assert (await gather(gatherer))["raising"].status is LayerStatus.EMPTY
        assert gatherer.states()[0].breaker is BreakerState.CLOSED


async def test_a_cancelled_caller_takes_all_calls_along_and_blames_nobody() -> None:
    slow = WaitingLayer("slow")
    async with gathering(slow, breaker_failures=1) as gatherer:
        asking = asyncio.ensure_future(gather(gatherer))
        await slow.begun.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert slow.cancelled == 1
        state = gatherer.states()[0]
        assert (state.running, state.breaker) == (0, BreakerState.CLOSED)


ALICE = Scope(user="alice")
RIGHT = remembered("layer", "right")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "it returned no list of items but NoneType"),
        ("text", "it returned no list of items but str"),
        ([RIGHT, "text"], "it returned no item but str"),
        ([remembered("other", "x")], "it returned an item of another layer, 'other'"),
        (
            [RIGHT, remembered("layer", "x", scope=ALICE)],
            "it returned an item that the scope must not see",
        ),
        (
            [replace(RIGHT, score=None, score_kind=None)],
            "it returned an item without a score, or scores of several kinds",
        ),
        (
            [RIGHT, RIGHT.scored(0.5, ScoreKind.COSINE)],
            "it returned an item without a score, or scores of several kinds",
        ),
        ([RIGHT] * 6, "it returned more than the 5 items asked for"),
    ],
)
async def test_a_layer_that_breaks_a_promise_is_in_error_and_its_items_are_dropped(
    answer: Any, reason: str
) -> None:
    async with gathering(WrongLayer("layer", answer)) as gatherer:
        report = (await gather(gatherer))["layer"]
    assert (report.status, report.reason, report.items) == (LayerStatus.ERROR, reason, ())


async def test_a_blocking_layer_that_breaks_a_promise_is_in_error_too() -> None:
    layer = ThreadLayer("layer", lambda: [remembered("layer", "x", scope=ALICE)])
    async with gathering(layer) as gatherer:
        report = (await gather(gatherer))["layer"]
    assert report.reason == "it returned an item that the scope must not see"


@pytest.mark.parametrize("error", [StopIteration("odd"), SystemExit(1), KeyboardInterrupt()])
async def test_nothing_that_a_blocking_layer_raises_ends_its_thread(error: BaseException) -> None:
    def work() -> list[MemoryItem]:
        raise error

    async with gathering(ThreadLayer("layer", work)) as gatherer:
        first = (await gather(gatherer))["layer"]
        second = (await gather(gatherer))["layer"]
    assert [first.status, second.status] == [LayerStatus.ERROR] * 2


async def test_a_layer_that_cancels_itself_is_in_error() -> None:
    async with gathering(RaisingLayer("layer", asyncio.CancelledError())) as gatherer:
        report = (await gather(gatherer))["layer"]
    assert (report.status, report.reason) == (LayerStatus.ERROR, "the call was cancelled")


async def test_what_a_layer_raised_is_cut_to_one_line() -> None:
    async with gathering(RaisingLayer("layer", ValueError("a\n\x1b[31mb" * 500))) as gatherer:
        report = (await gather(gatherer))["layer"]
    assert report.reason.startswith("ValueError: a [31mba [31mb")
    assert len(report.reason) == 200


def test_two_layers_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="two memory layers are named 'a'"):
        Gatherer([LoopLayer("a"), LoopLayer("a")])


def test_a_layer_of_impossible_quality_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"quality 1.5 not in \[0, 1\]"):
        Gatherer([LoopLayer("a", quality=1.5)])


async def test_nothing_is_asked_after_closing() -> None:
    gatherer = Gatherer([LoopLayer("a")])
    await gatherer.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await gather(gatherer)


async def test_closing_names_what_hangs_and_does_not_wait_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hung = HungLayer("hung")
    gatherer = Gatherer([hung, LoopLayer("healthy")], layer_seconds=SOON)
    await gather(gatherer)
    await gatherer.aclose()
    assert "closed while memory layers hang: hung" in caplog.text
    hung.go.set()


FILES = Path("/proc/self/fd")


def open_files() -> int:
    return len(list(FILES.iterdir()))


@pytest.mark.skipif(not FILES.is_dir(), reason="counts files as Linux shows them")
async def test_a_thousand_bad_queries_leave_no_thread_task_or_file() -> None:
    threads, files = set(threading.enumerate()), open_files()
    tasks = asyncio.all_tasks()
    hung = HungLayer("hung")
    layers = (
        hung,
        StubbornLayer("stubborn"),
        RaisingLayer("raising", ValueError()),
        ThreadLayer("thread", lambda: []),
        LoopLayer("loop", "here"),
    )
    async with gathering(*layers, layer_seconds=SOON) as gatherer:
        for _ in range(1000):
            assert contents((await gather(gatherer))["loop"]) == ["here"]
        hung.go.set()
        layers[1].go.set()
        await turns_until(lambda: not any(state.running for state in gatherer.states()))
    assert set(threading.enumerate()) - threads == set()
    assert asyncio.all_tasks() - tasks == set()
    assert open_files() == files


BEHAVIOURS: dict[LayerStatus, Callable[[str], AnyLayer]] = {
    LayerStatus.OK: lambda name: LoopLayer(name, "here"),
    LayerStatus.EMPTY: LoopLayer,
    LayerStatus.ERROR: lambda name: RaisingLayer(name, ValueError("no")),
    LayerStatus.TIMEOUT: WaitingLayer,
}


@settings(max_examples=25)
@given(st.lists(st.sampled_from(list(BEHAVIOURS)), max_size=8))
def test_every_layer_is_reported_once_by_how_it_behaves_whatever_the_others_do(
    expected: list[LayerStatus],
) -> None:
    async def run() -> list[LayerReport]:
        layers = [BEHAVIOURS[status](f"layer{i}") for i, status in enumerate(expected)]
        async with gathering(*layers, layer_seconds=0.01) as gatherer:
            return list((await gather(gatherer)).values())

    reports = asyncio.run(run())
    assert [report.status for report in reports] == expected
    assert [bool(report.items) for report in reports] == [
        status is LayerStatus.OK for status in expected
    ]
