"""What a fault of the server costs, against a real one behind a proxy that makes trouble."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from cascade import SQUASH, WAIT_SECONDS
from clusters import SettingsOf, few_skills_router, until
from servers.redis_server import FaultyProxy, RedisServer

from router import ConfigurationError, SemanticRouter, Settings
from router.cluster.keys import Keys
from router.cluster.link import Link, NoRedis
from router.errors import StoreError
from router.events import Degraded, Event, Events, Recovered
from router.result import Stage

CUT_OFF_MILLISECONDS = 2.0


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[tuple[SemanticRouter, list[Event]]]:
    """A router of the cluster, and what it tells of the connection."""
    told: list[Event] = []
    async with few_skills_router(settings) as router:
        router.events.subscribe(
            lambda event: told.append(event) if isinstance(event, Degraded | Recovered) else None
        )
        yield router, told


def is_up(router: SemanticRouter) -> bool:
    assert router.cluster is not None
    return router.cluster.link.is_up


async def lost(router: SemanticRouter) -> None:
    """Ask until the breaker is open."""
    async with asyncio.timeout(WAIT_SECONDS):
        while is_up(router):
            await router.look_up(SQUASH)


async def cost_of_a_look(router: SemanticRouter) -> float:
    """Milliseconds of CPU time that a look into the caches takes; the least of many."""
    costs = []
    for _ in range(20):
        began = time.process_time()
        await router.look_up(SQUASH)
        costs.append((time.process_time() - began) * 1e3)
    return min(costs)


@pytest.mark.parametrize("fault", ["cut", "swallows", "delay"])
async def test_a_lost_server_costs_each_request_nothing_once_that_is_known(
    fault: str, redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with FaultyProxy(redis_server.port) as proxy:
        settings = settings_of(proxy.url, deadline_seconds=0.5)
        async with opened(settings) as (router, told):
            first = await router.route(SQUASH)
            if fault == "cut":
                proxy.cut()
            elif fault == "swallows":
                proxy.swallows = True
            else:
                proxy.delay = 60.0
            await lost(router)
            assert [type(event) for event in told] == [Degraded]
            alone = await router.route(SQUASH)
            assert alone.selected_skills == first.selected_skills
            assert "Redis cannot be used" in alone.trace[1].reason
            assert (await router.route(SQUASH)).from_cache  # in this process's own memory
            assert await cost_of_a_look(router) <= CUT_OFF_MILLISECONDS
            proxy.mend()
            await until(lambda: is_up(router))
            assert [type(event) for event in told] == [Degraded, Recovered]
            again = await router.route(SQUASH)
            assert again.stage is Stage.EXACT


async def test_a_server_without_memory_is_left_alone_until_it_has_some(
    own_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with opened(settings_of(own_server.url)) as (router, told):
        assert router.cluster is not None
        run = router.cluster.link.run
        await run(lambda redis: redis.config_set("maxmemory-policy", "noeviction"))
        await run(lambda redis: redis.config_set("maxmemory", "1mb"))
        await router.route(SQUASH)
        assert "maxmemory" in router.cluster.link.trouble
        assert isinstance(told[0], Degraded)
        await router.route(SQUASH)  # decided alone from here on, and kept in memory
        assert (await router.route(SQUASH)).from_cache
        from router.cluster.link import connect

        client = connect(settings_of(own_server.url).cluster, socket_timeout=5)
        await client.config_set("maxmemory", "0")
        await client.aclose()
        await until(lambda: is_up(router))


async def test_a_router_opens_without_its_server_and_joins_when_it_is_there(
    own_server: RedisServer, settings_of: SettingsOf
) -> None:
    own_server.kill()
    async with opened(settings_of(own_server.url)) as (router, _):
        assert (await router.route(SQUASH)).decision.value == "route"
        own_server.restart()
        await until(lambda: is_up(router))
        assert router.cluster is not None
        members = Keys(router.settings.cluster.namespace).members
        link = router.cluster.link
        await until(lambda: link.run(lambda redis: redis.exists(members)))
        await router.route(SQUASH)
        assert (await router.route(SQUASH)).stage is Stage.EXACT


async def test_a_drop_that_is_not_delivered_holds_here_and_is_sent_until_it_is(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with FaultyProxy(redis_server.port) as proxy:
        cut_off = settings_of(proxy.url)
        async with (
            opened(cut_off) as (router, _),
            opened(settings_of(redis_server.url)) as (other, _told),
        ):
            await router.route(SQUASH)
            assert (await other.route(SQUASH)).from_cache
            proxy.cut()
            await lost(router)
            await router.forget(SQUASH)
            assert (await router.look_up(SQUASH))[0] is None
            proxy.mend()
            await until(lambda: is_up(router))
            async with asyncio.timeout(WAIT_SECONDS):
                while (await other.look_up(SQUASH))[0] is not None:  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(0.01)


async def test_a_part_that_fails_when_the_server_is_back_keeps_no_other_from_its_work(
    redis_server: RedisServer, settings_of: SettingsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = asyncio.Event()

    async def fail() -> None:
        raise StoreError("cluster.sqlite3", "the disk is full")

    async def work() -> None:
        back.set()

    async with FaultyProxy(redis_server.port) as proxy:
        monkeypatch.setattr("router.cluster.link.RETRY_SECONDS", 0.01)
        link = Link(settings_of(proxy.url).cluster, Events())
        link.when_back(fail)
        link.when_back(work)
        proxy.cut()
        while link.is_up:
            with suppress(NoRedis):
                await link.run(lambda redis: redis.ping())
        proxy.mend()
        async with asyncio.timeout(WAIT_SECONDS):
            await back.wait()
        await link.aclose()


async def test_a_drop_survives_the_process_that_could_not_deliver_it(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with FaultyProxy(redis_server.port) as proxy:
        settings = settings_of(proxy.url)
        async with opened(settings) as (router, _):
            await router.route(SQUASH)
            proxy.cut()
            await lost(router)
            await router.forget(SQUASH)
        proxy.mend()
        async with opened(settings) as (router, _):
            assert (await router.look_up(SQUASH))[0] is None  # sent or not


async def test_a_cancellation_that_the_client_takes_for_a_lost_connection_is_one_still(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    began = asyncio.Event()

    async def taking_it_so(_redis: object) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ConnectionError("lost") from None

    link = Link(settings_of(redis_server.url).cluster, Events())
    task = asyncio.create_task(link.run(taking_it_so))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert link.is_up
    await link.aclose()


def test_an_address_that_is_none_is_named(settings_of: SettingsOf) -> None:
    with pytest.raises(ConfigurationError, match=r"cluster\.url"):
        SemanticRouter(settings_of("http://127.0.0.1"))


def test_without_an_address_there_is_no_cluster(tmp_path: Path) -> None:
    router = SemanticRouter(Settings(state_dir=tmp_path, llm={"enabled": False}))
    assert router.cluster is None
