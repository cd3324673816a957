"""What faults cost, beyond those of the connection (``test_link.py``): servers and processes that
are cut off, evict, jump in time, are of another version, or are killed."""

from __future__ import annotations

from contextlib import AsyncExitStack

from cascade import SQUASH
from clusters import SettingsOf, corrected, few_skills_router, known, link_of, until
from servers.redis_server import FaultyProxy, RedisServer

from router.cluster.keys import Keys
from router.cluster.link import connect
from router.result import Decision


async def test_eviction_costs_misses_and_no_label(
    own_server: RedisServer, settings_of: SettingsOf
) -> None:
    client = connect(settings_of(own_server.url).cluster, socket_timeout=5)
    await client.config_set("maxmemory-policy", "allkeys-lru")
    async with (
        few_skills_router(settings_of(own_server.url)) as one,
        few_skills_router(settings_of(own_server.url)) as other,
    ):
        await corrected(one, SQUASH, "debugging")
        evidence = Keys(one.settings.cluster.namespace).evidence
        await client.config_set("maxmemory", "4mb")
        for start in range(0, 1_000, 100):
            values = {f"something else {start + number}": b"x" * 8_192 for number in range(100)}
            await client.mset(values)
        assert (await client.info("stats"))["evicted_keys"] > 0
        await client.delete(evidence)  # in case that just this one was spared
        await corrected(one, "undo the merge that I have just made", "git")
        labels = {SQUASH, "undo the merge that I have just made"}

        async def knows_all() -> bool:
            return labels <= await known(other)

        await until(knows_all)
        assert link_of(one).is_up
        assert (await one.route(SQUASH)).decision is Decision.ROUTE
    await client.aclose()


async def test_a_correction_that_is_not_delivered_is_sent_until_it_is(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with FaultyProxy(redis_server.port) as proxy, AsyncExitStack() as stack:
        one, other = [
            await stack.enter_async_context(few_skills_router(settings_of(url)))
            for url in (proxy.url, redis_server.url)
        ]
        await one.route(SQUASH)
        assert (await other.route(SQUASH)).selected_skills == ("git",)
        proxy.cut()
        await corrected(one, SQUASH, "debugging")
        assert (await one.route(SQUASH)).selected_skills == ("debugging",)
        proxy.mend()

        async def gives_it() -> bool:
            found, _ = await other.look_up(SQUASH)
            return found is not None and found.selected_skills == ("debugging",)

        await until(gives_it)
