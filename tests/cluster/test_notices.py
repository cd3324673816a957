"""Notices for MCP clients reach those of every process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cascade import WAIT_SECONDS
from clusters import few_skills_router
from mcp.server.subscriptions import ResourceUpdated, ServerEvent, ToolsListChanged
from servers.redis_server import RedisServer

from router import Settings
from router.cluster.notices import SharedBus


async def test_a_notice_reaches_the_clients_of_every_process_once(
    redis_server: RedisServer, settings_of: Callable[..., Settings]
) -> None:
    settings = [settings_of(redis_server.url) for _ in range(2)]
    async with few_skills_router(settings[0]) as one, few_skills_router(settings[1]) as other:
        assert one.cluster is not None
        assert other.cluster is not None
        here, there = (SharedBus(r.cluster, r.settings.cluster) for r in (one, other) if r.cluster)
        heard: dict[str, list[ServerEvent]] = {"here": [], "there": []}
        last = asyncio.Event()
        here.subscribe(heard["here"].append)
        there.subscribe(heard["there"].append)
        updated = ResourceUpdated("skill://git/SKILL.md")
        there.subscribe(lambda event: last.set() if event == updated else None)
        for bus in (here, there):
            bus.start()
            await bus.listening.wait()
        await here.publish(ToolsListChanged())
        await one.cluster.link.run(lambda redis: redis.publish(here._channel, b"\xff nonsense"))
        await here.publish(updated)
        async with asyncio.timeout(WAIT_SECONDS):
            await last.wait()
        assert heard["here"] == heard["there"] == [ToolsListChanged(), updated]
        for bus in (here, there):
            await bus.aclose()
