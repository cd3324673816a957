"""When a request goes on at once, and when it waits in line."""

from __future__ import annotations

import asyncio

import pytest

from router.concurrency.admission import SLICE_SECONDS, Admission


async def test_work_that_has_used_up_a_round_of_the_loop_waits_in_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr("router.concurrency.admission.perf_counter", lambda: now)
    admission = Admission(most=10)
    rounds: list[str] = []

    async def work(name: str) -> None:
        nonlocal now
        await admission.turn()
        rounds.append(name)
        now += SLICE_SECONDS  # what the work takes

    async def heartbeat() -> None:
        for _ in range(4):
            rounds.append("-")
            await asyncio.sleep(0)

    await asyncio.gather(work("a"), work("b"), work("c"), work("d"), heartbeat())
    # Two have begun before the first round was used up; then there is one in each round.
    assert "".join(rounds) == "ab--c-d-"


async def test_those_who_came_in_together_go_on_one_in_each_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many come in during one round, because a look into the caches is quick. Were all of them to
    decide in the next round, nothing else would run for long."""
    now = 0.0
    monkeypatch.setattr("router.concurrency.admission.perf_counter", lambda: now)
    admission = Admission(most=10)
    rounds: list[str] = []

    async def request(name: str) -> None:
        nonlocal now
        await admission.turn()
        with admission:
            now += SLICE_SECONDS / 2  # the caches
            await asyncio.sleep(0)
            await admission.turn(is_inside=True)
            rounds.append(name)
            now += 2 * SLICE_SECONDS  # the decision

    async def heartbeat() -> None:
        for _ in range(8):
            rounds.append("-")
            await asyncio.sleep(0)

    await asyncio.gather(*(request(name) for name in "abcd"), heartbeat())
    decided = "".join(rounds)
    assert sorted(decided.replace("-", "")) == ["a", "b", "c", "d"]
    assert all(len(one) <= 1 for one in decided.split("-"))


async def test_a_line_ends_when_its_requests_fit_into_one_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four callers who ask again and again need half of a round together. One long round makes them
    wait in line; let on one by one, they would do so for ever."""
    now, rounds = 0.0, 0
    monkeypatch.setattr("router.concurrency.admission.perf_counter", lambda: now)
    admission = Admission(most=10)
    waited: list[bool] = []

    async def caller(first: float) -> None:
        nonlocal now
        for number in range(10):
            came_in = rounds
            await admission.turn()
            waited.append(rounds > came_in)
            now += first if number == 0 else SLICE_SECONDS / 8
            await asyncio.sleep(0)

    async def heartbeat() -> None:
        nonlocal rounds
        while rounds < 100:
            rounds += 1
            await asyncio.sleep(0)

    long, short = (
        2 * SLICE_SECONDS,
        SLICE_SECONDS / 8,
    )
    await asyncio.gather(*map(caller, (long, short, short, short)), heartbeat())
    assert any(waited)
    assert not any(waited[-20:])


async def test_who_is_cancelled_in_line_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.concurrency.admission.SLICE_SECONDS", -1)
    admission = Admission(most=10)
    requests = [asyncio.create_task(admission.turn()) for _ in range(4)]
    await asyncio.sleep(0)  # the first begins the round, the others wait
    requests[1].cancel()
    requests[2].cancel()
    await asyncio.wait(requests)
    assert [task.cancelled() for task in requests] == [False, True, True, False]
    assert admission.empty


async def test_a_quiet_loop_makes_nobody_wait() -> None:
    admission = Admission(most=10)
    for _ in range(3):
        with pytest.raises(StopIteration):  # it ends without waiting
            admission.turn().send(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
