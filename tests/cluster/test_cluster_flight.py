"""Identical requests at the same time make one call of the LLM, in however many processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from cascade import SQUASH, SQUASH_PARAPHRASED, WAIT_SECONDS, HeldModel, answer, happened
from clusters import SettingsOf, few_skills_router
from servers.redis_server import RedisServer

from router import Decision, SemanticRouter, Stage
from router.cluster.keys import entry_of


@asynccontextmanager
async def processes(
    settings_of: SettingsOf, server: RedisServer, model: HeldModel, count: int = 4
) -> AsyncIterator[list[SemanticRouter]]:
    """Routers of one cluster that ask one model."""
    async with AsyncExitStack() as stack:
        routers = []
        for _ in range(count):
            settings = settings_of(server.url)
            router = few_skills_router(settings, models=[model])
            routers.append(await stack.enter_async_context(router))
        yield routers


@pytest.mark.parametrize(
    ("confidence", "each"), [(0.9, 50), (0.4, 1)], ids=["kept", "weak, so no cache keeps it"]
)
async def test_identical_requests_in_four_processes_make_one_call(
    confidence: float, each: int, redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    model = HeldModel(answer("git", confidence=confidence))
    async with processes(settings_of, redis_server, model) as routers:
        tasks = [asyncio.create_task(r.route(SQUASH)) for r in routers for _ in range(each)]
        await happened(model.asked)
        async with asyncio.timeout(WAIT_SECONDS):
            while sum(r.cluster.flight.waiting for r in routers if r.cluster) < 3:  # noqa: ASYNC110
                await asyncio.sleep(0)  # nothing tells a test
        model.release()
        results = await asyncio.gather(*tasks)
    assert model.calls == 1
    assert {result.selected_skills for result in results} == {("git",)}
    assert len({result.id for result in results}) == 4 * each


async def test_that_no_skill_fits_is_kept_for_all_processes_and_dropped_for_all(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    model = HeldModel(answer("none"))
    model.release()
    async with processes(settings_of, redis_server, model, count=2) as (one, other):
        assert (await one.route(SQUASH)).stage is Stage.LLM
        kept = await other.route(SQUASH)
        assert (kept.stage, kept.decision) == (Stage.EXACT, Decision.ABSTAIN)
        assert (await other.route(SQUASH_PARAPHRASED)).stage is Stage.LLM
        assert model.calls == 2
        await other.feedback(kept.id, ["git"])
        assert (await one.route(SQUASH)).selected_skills == ("git",)
        await one.forget(SQUASH_PARAPHRASED)
        assert (await other.look_up(SQUASH_PARAPHRASED, use_semantic_cache=False))[0] is None


async def test_a_leader_that_was_stopped_too_long_writes_nothing(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    model = HeldModel(answer("git"))
    async with processes(settings_of, redis_server, model, count=2) as (router, other):
        cluster = router.cluster
        assert cluster is not None
        entry = entry_of(SQUASH, router._runtime.current.base_context)
        slow = asyncio.create_task(router.route(SQUASH))
        await happened(model.asked)
        # While the leader is stopped its lease runs out, and another takes it.
        await cluster.link.run(lambda redis: redis.delete(cluster.flight._keys.lease(entry)))
        assert other.cluster is not None
        said, _ = await other.cluster.flight._join(entry, "")
        assert said == "lead"
        model.release()
        assert (await slow).selected_skills == ("git",)  # its caller has its answer
        assert (await other.look_up(SQUASH))[0] is None  # and nobody else
