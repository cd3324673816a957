"""Single flight: one piece of work for all who ask for it at the same time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from router.concurrency.single_flight import SingleFlight
from router.concurrency.tasks import give_way, in_thread


class Work:
    """Counts its runs, and finishes when the test lets it."""

    def __init__(self) -> None:
        self.runs = 0
        self.started = asyncio.Event()
        self.release = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self) -> int:
        self.runs += 1
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return self.runs


async def test_callers_of_one_key_share_one_run() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    callers = [asyncio.create_task(flights.do("key", work)) for _ in range(5)]
    await work.started.wait()
    work.release.set()
    assert await asyncio.gather(*callers) == [1] * 5


async def test_different_keys_do_not_share() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    work.release.set()
    await asyncio.gather(flights.do("a", work), flights.do("b", work))
    assert work.runs == 2


async def test_a_later_caller_starts_afresh() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    work.release.set()
    assert await flights.do("key", work) == 1
    assert await flights.do("key", work) == 2


async def test_one_callers_cancellation_leaves_the_others_their_answer() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    first = asyncio.create_task(flights.do("key", work))
    second = asyncio.create_task(flights.do("key", work))
    await work.started.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    work.release.set()
    assert await second == 1


async def test_work_that_nobody_waits_for_any_more_is_cancelled() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    only = asyncio.create_task(flights.do("key", work))
    await work.started.wait()
    only.cancel()
    with pytest.raises(asyncio.CancelledError):
        await only
    async with asyncio.timeout(120):
        await work.cancelled.wait()


async def test_who_closes_waits_for_work_too_whose_last_caller_has_left() -> None:
    """It may be in a thread, which uses what is closed next."""
    flights: SingleFlight[None] = SingleFlight()
    started, release, ended = threading.Event(), threading.Event(), threading.Event()

    def in_a_thread() -> None:
        started.set()
        release.wait()
        ended.set()

    only = asyncio.create_task(flights.do("key", lambda: in_thread(in_a_thread)))
    await asyncio.to_thread(started.wait)
    only.cancel()
    with pytest.raises(asyncio.CancelledError):
        await only
    finishing = asyncio.create_task(flights.finish())
    await give_way()
    assert not finishing.done()
    release.set()
    await finishing
    assert ended.is_set()


async def test_a_caller_after_the_last_cancellation_does_not_join_the_dying_work() -> None:
    flights: SingleFlight[int] = SingleFlight()
    dying = Work()
    only = asyncio.create_task(flights.do("key", dying))
    await dying.started.wait()
    only.cancel()
    fresh = Work()
    fresh.release.set()
    with pytest.raises(asyncio.CancelledError):
        await only
    assert await flights.do("key", fresh) == 1
    assert fresh.runs == 1


async def test_an_error_reaches_every_caller_and_is_not_kept() -> None:
    flights: SingleFlight[int] = SingleFlight()
    release = asyncio.Event()

    async def fail() -> int:
        await release.wait()
        raise ValueError("broken")

    callers = [asyncio.create_task(flights.do("key", fail)) for _ in range(2)]
    release.set()
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert [str(error) for error in outcomes] == ["broken", "broken"]

    async def succeed() -> int:
        return 7

    assert await flights.do("key", succeed) == 7
