"""Answers in the memory of a process: given without Redis, and never once they were dropped."""

from __future__ import annotations

import asyncio
import math
from typing import Any

from cascade import WAIT_SECONDS
from clusters import (
    OpenedAnswers,
    SettingsOf,
    caught_up,
    one_behind_a_proxy,
    opened_answers,
    skills_of,
    two_processes,
    until,
)
from servers.redis_server import RedisServer

from router.cluster.follower import Follower, Record
from router.cluster.keys import Keys
from router.stages.conformance import kept_answer
from router.stages.validation import DecidedBy

REQUEST = "squash the last four commits on this branch"


async def remembers(answers: OpenedAnswers) -> None:
    """Wait until a process gives the answer from its memory, and no change is on the way to it."""
    await caught_up(answers.follower)

    async def held() -> bool:
        await skills_of(answers, REQUEST)
        return answers._near.get(REQUEST, "c") is not None

    await until(held)


async def reads(answers: OpenedAnswers) -> int:
    """How often the server has been asked for a value."""
    found: dict[str, Any] = await answers.link.run(lambda redis: redis.info("commandstats"))
    return int(found["cmdstat_get"]["calls"])


async def test_who_has_not_read_for_long_looks_at_once_and_does_not_wait_for_a_change(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = settings_of(redis_server.url).cluster

    async def ignore(*_: object) -> None:
        """Nobody writes anything."""

    follower = Follower(settings, "quiet", take=ignore, missed=ignore, block_seconds=3_600.0)
    follower.start()
    async with asyncio.timeout(WAIT_SECONDS):
        await caught_up(follower)
    await follower.aclose()


async def test_a_record_that_cannot_be_taken_in_counts_as_missing_and_later_ones_are_read(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = settings_of(redis_server.url)
    taken: list[str] = []
    missed: list[bool] = []

    async def take(records: list[Record]) -> None:
        taken.extend(record["text"] for record in records)
        if taken == ["poison"]:
            raise OverflowError

    async def miss() -> None:
        missed.append(bool(taken))

    async with opened_answers(settings) as one:
        stream = Keys(settings.cluster.namespace).notices  # nobody else writes one of this name

        async def append(text: str) -> None:
            await one.link.run(lambda redis: redis.xadd(stream, {"before": last, "text": text}))

        follower = Follower(settings.cluster, stream, take=take, missed=miss)
        follower.start()
        last = ""
        await append("poison")
        await until(lambda: missed == [True])
        await until(lambda: follower.position != "")
        last = follower.position
        await append("sound")
        await until(lambda: taken == ["poison", "sound"])
        await follower.aclose()
    assert missed == [True]


async def test_an_answer_that_was_read_once_is_given_again_without_asking(
    own_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with opened_answers(settings_of(own_server.url)) as one:
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        await remembers(one)
        one.follower.read_at = math.inf  # this machine may be slow; in touch it stays
        before = await reads(one)
        for _ in range(100):
            assert await skills_of(one, REQUEST) == ("git",)
        assert await reads(one) == before


async def test_a_process_that_is_cut_off_gives_no_answer_once_its_drop_is_acknowledged(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    processes = one_behind_a_proxy(redis_server, settings_of, deadline_seconds=0.1)
    async with processes as (proxy, one, other):
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        for fault in ("swallows", "cut"):
            await remembers(other)
            if fault == "cut":
                proxy.cut()
            else:
                proxy.swallows = True
            await one.forget(REQUEST, "c")
            assert await skills_of(other, REQUEST) == ()
            proxy.mend()
            await until(lambda: other.link.is_up)
            await one.keep(REQUEST, "c", kept_answer("git"), similar=True)


async def test_a_correction_that_is_acknowledged_is_what_every_process_gives(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with two_processes(settings_of, redis_server.url) as (one, other):
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        for process in (one, other):
            await remembers(process)
        corrected = kept_answer("debugging", decided_by=DecidedBy.PERSON)
        await one.keep(REQUEST, "c", corrected, similar=False)
        for process in (one, other):
            assert await skills_of(process, REQUEST) == ("debugging",)


async def test_what_was_dropped_while_it_was_read_is_not_remembered(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with opened_answers(settings_of(redis_server.url)) as one:
        near = one._near
        began = near.changes
        near.drop("another request", "c")
        near.put(REQUEST, "c", kept_answer("git"), changes=began)
        near.put("another request", "c", kept_answer("git"), changes=near.changes)
        await until(lambda: near.get("another request", "c") is not None)
        assert near.get(REQUEST, "c") is None
