"""Helpers for asynchronous work: giving way, and threads that are waited for."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path

import pytest
from cascade import WAIT_SECONDS
from threadpoolctl import threadpool_info, threadpool_limits

import router
from router.concurrency.tasks import (
    TURNS_OF_A_ROUTE,
    DaemonThreads,
    give_way,
    in_thread,
    one_matrix_thread,
)


async def test_who_gives_way_lets_others_take_as_many_turns_as_a_route_does() -> None:
    turns = []

    async def other() -> None:
        for turn in range(TURNS_OF_A_ROUTE):
            turns.append(turn)
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await give_way()
    assert turns == list(range(TURNS_OF_A_ROUTE))
    await task


async def test_work_in_a_thread_is_waited_for_however_often_it_is_cancelled() -> None:
    may_end, has_ended = threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(WAIT_SECONDS)
        has_ended.set()

    waiting = asyncio.create_task(in_thread(work))
    for _ in range(3):
        await give_way()
        waiting.cancel()
    await give_way()
    assert not waiting.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert has_ended.is_set()


async def test_a_fault_of_work_that_nobody_wants_any_more_is_not_complained_about() -> None:
    may_end = threading.Event()
    complaints: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))

    def work() -> None:
        may_end.wait(WAIT_SECONDS)
        raise ValueError

    waiting = asyncio.create_task(in_thread(work))
    await give_way()
    waiting.cancel()
    await give_way()
    may_end.set()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    del waiting
    gc.collect()
    assert complaints == []


async def test_who_is_cancelled_need_not_wait_for_work_that_may_be_left_behind() -> None:
    may_end, has_ended = threading.Event(), threading.Event()

    def work() -> None:
        may_end.wait(WAIT_SECONDS)
        has_ended.set()

    with ThreadPoolExecutor(1) as threads:
        waiting = asyncio.create_task(in_thread(work, executor=threads, leaves=True))
        await give_way()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not has_ended.is_set()
        may_end.set()


async def test_work_in_a_thread_sees_the_context_of_its_caller() -> None:
    seen: ContextVar[str] = ContextVar("seen", default="nobody's")
    seen.set("the caller's")
    assert await in_thread(seen.get) == "the caller's"


def test_threads_are_used_by_one_helper_only() -> None:
    package = Path(router.__file__).parent
    texts = {file.name: file.read_text(encoding="utf-8") for file in package.rglob("*.py")}
    assert [name for name, text in texts.items() if "asyncio.to_thread(" in text] == []


def _matrix_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_matrix_products_use_one_thread_meanwhile_and_as_many_as_before_afterwards() -> None:
    with one_matrix_thread():
        pass  # numpy's library is there from now on
    with threadpool_limits(2, user_api="blas"):
        with one_matrix_thread():
            assert _matrix_threads() == {1}
        assert _matrix_threads() == {2}
        with pytest.raises(ZeroDivisionError), one_matrix_thread():
            raise ZeroDivisionError
        assert _matrix_threads() == {2}


def test_of_two_that_overlap_none_leaves_the_limit_behind() -> None:
    first, second = one_matrix_thread(), one_matrix_thread()
    with threadpool_limits(2, user_api="blas"):
        with first:
            second.__enter__()
            assert _matrix_threads() == {1}
        second.__exit__(None, None, None)
        assert _matrix_threads() == {2}


def test_daemon_threads_do_all_work_and_no_more_at_a_time_than_allowed() -> None:
    threads, both = DaemonThreads(2, "test"), threading.Barrier(2)

    def work(number: int) -> tuple[int, bool]:
        both.wait(WAIT_SECONDS)
        return number, threading.current_thread().daemon

    begun = [threads.submit(work, number) for number in range(6)]
    assert [each.result(WAIT_SECONDS) for each in begun] == [(number, True) for number in range(6)]


def test_what_fails_or_is_cancelled_leaves_a_daemon_thread_to_the_next_work() -> None:
    threads, may_go_on = DaemonThreads(1, "test"), threading.Event()
    held = threads.submit(may_go_on.wait, WAIT_SECONDS)
    cancelled, failed, last = (threads.submit(int, text) for text in ("1", "one", "3"))
    assert cancelled.cancel()
    may_go_on.set()
    assert (held.result(WAIT_SECONDS), last.result(WAIT_SECONDS)) == (True, 3)
    assert isinstance(failed.exception(), ValueError)
