"""Single flight through the router: who asks the same at the same time shares one LLM call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cascade import (
    SHIPPED,
    SQUASH,
    HeldModel,
    answer,
    happened,
    router_over,
    shipped_router,
)
from servers.openai_server import HeldServer, completion

from router import Overloaded, RoutingResult, SemanticRouter
from router.concurrency import admission


async def test_identical_requests_at_the_same_time_make_one_call(
    tmp_path: Path, held_server: HeldServer
) -> None:
    held_server.queue(completion(answer("git", confidence=0.4)))  # weak, so that no cache helps
    async with shipped_router(tmp_path, held_server) as router:
        callers = [asyncio.create_task(router.route(SQUASH)) for _ in range(4)]
        await happened(held_server.arrived)
        held_server.release.set()
        results = await asyncio.gather(*callers)
    assert len(held_server.requests) == 1
    assert {result.selected_skills for result in results} == {("git",)}
    assert len({result.id for result in results}) == 4


async def test_different_requests_and_contexts_do_not_share_a_call(
    tmp_path: Path, held_server: HeldServer
) -> None:
    held_server.always = completion(answer("git"))
    async with shipped_router(tmp_path, held_server) as router:
        contexts: list[dict[str, Any]] = [
            {},
            {"scope": "me"},
            {"available_skills": ["git"]},
            {"history": ["before"]},
            {"use_semantic_cache": False},
        ]
        callers = [asyncio.create_task(router.route(SQUASH, **context)) for context in contexts]
        await happened(held_server.arrived)
        held_server.release.set()
        await asyncio.gather(*callers)
        assert len(router.fuzzy) == 4
    assert len(held_server.requests) == 5


async def test_one_cancelled_caller_does_not_fail_the_others(
    tmp_path: Path, held_server: HeldServer
) -> None:
    held_server.queue(completion(answer("git")))
    async with shipped_router(tmp_path, held_server) as router:
        first = asyncio.create_task(router.route(SQUASH))
        second = asyncio.create_task(router.route(SQUASH))
        await happened(held_server.arrived)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        held_server.release.set()
        assert (await second).selected_skills == ("git",)
    assert len(held_server.requests) == 1


async def test_work_that_every_caller_has_given_up_stops_and_can_be_asked_for_again(
    tmp_path: Path,
) -> None:
    model = HeldModel(answer("git"))
    quiet = {"enabled": False}  # training is a task of its own
    async with router_over(SHIPPED, tmp_path, models=[model], learning=quiet) as router:
        callers = [asyncio.create_task(router.route(SQUASH)) for _ in range(2)]
        await happened(model.asked)
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
        await happened(model.stopped)
        assert model.running == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}
        model.release()
        assert (await router.route(SQUASH)).selected_skills == ("git",)
    assert model.calls == 2


@asynccontextmanager
async def forgotten_while_decided(
    state: Path,
) -> AsyncIterator[tuple[SemanticRouter, HeldModel, asyncio.Task[RoutingResult]]]:
    """A router whose model is still deciding a request that was forgotten meanwhile."""
    model = HeldModel(answer("git"))
    async with router_over(SHIPPED, state, models=[model]) as router:
        early = asyncio.create_task(router.route(SQUASH))
        await happened(model.asked)
        await router.forget(SQUASH)
        yield router, model, early


async def test_an_answer_under_way_is_not_kept_when_it_is_forgotten_meanwhile(
    tmp_path: Path,
) -> None:
    async with forgotten_while_decided(tmp_path) as (router, model, early):
        model.release()
        await early
        assert not (await router.route(SQUASH)).from_cache
        assert (await router.route(SQUASH)).from_cache
    assert model.calls == 2


async def test_a_request_after_a_drop_does_not_wait_for_an_answer_from_before(
    tmp_path: Path,
) -> None:
    async with forgotten_while_decided(tmp_path) as (router, model, early):
        late = asyncio.create_task(router.route(SQUASH))
        model.release()
        await asyncio.gather(early, late)
    assert model.calls == 2


async def test_more_requests_than_may_wait_are_refused_and_the_others_answered(
    tmp_path: Path,
) -> None:
    model = HeldModel(answer("git"))
    async with router_over(SHIPPED, tmp_path, models=[model], max_pending=2) as router:
        waiting = [asyncio.create_task(router.route(f"{SQUASH} {n}")) for n in range(2)]
        await happened(model.asked)
        with pytest.raises(Overloaded, match=r"2 requests are under way .*max_pending"):
            await router.route(f"{SQUASH} again")
        model.release()
        assert [result.selected_skills for result in await asyncio.gather(*waiting)] == [
            ("git",)
        ] * 2
        assert (await router.route(f"{SQUASH} again")).selected_skills == ("git",)


async def test_a_crowd_of_requests_leaves_the_loop_to_others(tmp_path: Path) -> None:
    async with shipped_router(tmp_path) as router:
        await router.route("warm up")
        crowd = asyncio.gather(*(router.route(f"{SQUASH} number {n}") for n in range(300)))
        beats = 0
        while not crowd.done():
            await asyncio.sleep(0)
            beats += 1
        assert len({result.id for result in await crowd}) == 300
    # In one round of the loop there is one request, or as many as take 10 ms together.
    assert beats > 30


@pytest.mark.parametrize("what", ["rank", "discover"])
async def test_rankings_in_masses_take_turns_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    async with shipped_router(tmp_path) as router:
        ask = getattr(router, what)
        await ask("warm up")
        monkeypatch.setattr(admission, "SLICE_SECONDS", 0.0)
        asked = [asyncio.create_task(ask(f"commit change {number}")) for number in range(8)]
        most, done = 0, 0
        while done < len(asked):
            await asyncio.sleep(0)
            before, done = done, sum(task.done() for task in asked)
            most = max(most, done - before)
        assert most == 1
        assert all(task.result() for task in asked)
