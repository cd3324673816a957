"""Reads that come at the same time go to the server together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from clusters import SettingsOf
from servers.redis_server import RedisServer

from router.cluster.link import Link, NoRedis, connect
from router.cluster.reads import Reads
from router.events import Events


async def test_a_fault_in_a_read_of_many_leaves_nobody_waiting(
    redis_server: RedisServer, settings_of: SettingsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = settings_of(redis_server.url).cluster
    link = Link(cluster, Events())
    reads = Reads(link)
    redis = connect(cluster, socket_timeout=5.0)
    await redis.set("here", b"value")
    await redis.aclose()

    async def broken(*_names: Any) -> Any:
        raise RuntimeError("a connection that two read from")  # the client raises it

    with monkeypatch.context() as patched:
        patched.setattr("redis.asyncio.Redis.mget", broken)
        found = await asyncio.gather(*map(reads.get, ["here"] * 3), return_exceptions=True)
    assert found[0] == b"value"
    assert [type(one) for one in found[1:]] == [NoRedis, NoRedis]
    async with asyncio.timeout(5):
        assert await reads.get("here") == b"value"
    await reads.aclose()
    await link.aclose()
