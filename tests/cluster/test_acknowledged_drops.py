"""Once a drop is acknowledged, no process gives the dropped answer to a later request, however slow
its way to the server is."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from cascade import SQUASH, HeldModel, answer
from clusters import (
    SettingsOf,
    few_skills_router,
    one_behind_a_proxy,
    opened_answers,
    skills_of,
    until,
)
from servers.redis_server import FaultyProxy, RedisServer

from router.stages.conformance import kept_answer

LEARN, READ, STREAM = b"\r\nlearn\r\n", b"\r\nGET\r\n", b"\r\nXREAD\r\n"
"""Parts of the operations that keep an answer, read one, and read the stream of changes."""


@pytest.mark.parametrize("hears", [True, False], ids=["hears of it", "does not"])
async def test_a_request_after_a_drop_does_not_join_one_from_before(
    hears: bool, redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    model = HeldModel(answer("git"))
    model.release()
    async with FaultyProxy(redis_server.port) as proxy, AsyncExitStack() as stack:
        one, slow = [
            await stack.enter_async_context(
                few_skills_router(settings_of(url, deadline_seconds=10.0), models=[model])
            )
            for url in (redis_server.url, proxy.url)
        ]
        await one.route("rotate the log files")  # the server knows all scripts from here on
        if not hears:
            proxy.hold(STREAM)
            await proxy.held()
        proxy.hold(LEARN)
        before = asyncio.create_task(slow.route(SQUASH))
        await proxy.held()
        known = await one.route(SQUASH)
        assert known.from_cache, known.trace
        calls = model.calls
        await one.forget(SQUASH)
        after = asyncio.create_task(slow.route(SQUASH))
        flights = slow._flights._flights
        await until(lambda: sum(flight.waiting for flight in flights.values()) == 2)
        proxy.mend()
        await asyncio.gather(before, after)
    assert model.calls == calls + 1


async def test_an_answer_that_may_have_been_kept_is_not_given_from_memory(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with one_behind_a_proxy(redis_server, settings_of) as (proxy, one, other):
        await one.keep("rotate the log files", "c", kept_answer("git"), similar=True)
        proxy.hold(LEARN)
        keeping = asyncio.create_task(other.keep(SQUASH, "c", kept_answer("git"), similar=True))
        await proxy.held()
        proxy.cut_held()
        await keeping
        assert await skills_of(one, SQUASH) == ("git",)
        await one.forget(SQUASH, "c")
        proxy.hold(READ)
        looking = asyncio.create_task(skills_of(other, SQUASH))
        await proxy.held()
        proxy.cut_held()
        assert await looking == ()
        assert other.link.is_up  # a single operation went wrong


async def test_a_drop_is_acknowledged_or_the_server_is_known_to_be_lost(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with one_behind_a_proxy(redis_server, settings_of) as (proxy, one, other):
        await one.keep(SQUASH, "c", kept_answer("git"), similar=True)
        proxy.cut()
        await other.forget(SQUASH, "c")
        assert not other.link.is_up
        proxy.mend()

        async def is_dropped() -> bool:
            return await skills_of(one, SQUASH) == ()

        await until(is_dropped)


async def test_a_drop_that_is_cancelled_is_forgotten(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with (
        FaultyProxy(redis_server.port) as proxy,
        opened_answers(settings_of(proxy.url)) as one,
    ):
        await one.keep(SQUASH, "c", kept_answer("git"), similar=True)
        proxy.swallows = True
        dropping = asyncio.create_task(one.forget(SQUASH, "c"))
        await until(lambda: one._pending.total() == 1)
        dropping.cancel()
        await asyncio.wait([dropping])
        assert one._pending.total() == 0
        proxy.mend()


async def test_a_drop_that_another_process_of_the_folder_has_sent_does_not_wait_any_more(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    """Several processes of one folder find the same drops there when they begin."""
    async with FaultyProxy(redis_server.port) as proxy:
        proxy.cut()
        away = settings_of(proxy.url)
        async with opened_answers(away) as earlier:
            await earlier.forget(SQUASH, "c")
        async with opened_answers(away) as one:
            here = away.cluster.model_copy(update={"url": redis_server.url})
            async with opened_answers(away.model_copy(update={"cluster": here})) as other:
                await other._outbox.deliver()
                await other.keep(SQUASH, "c", kept_answer("git"), similar=True)
                assert await skills_of(one, SQUASH) == ()
                proxy.mend()

                async def is_found() -> bool:
                    return await skills_of(one, SQUASH) == ("git",)

                await until(is_found)
