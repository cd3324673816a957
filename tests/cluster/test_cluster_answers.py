"""Answers in Redis: what every cache must do, and what only shared ones must."""

from __future__ import annotations

import math
import secrets
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from clusters import OpenedAnswers, SettingsOf, caught_up, opened_answers, skills_of, two_processes
from servers.redis_server import RedisServer, server_binaries

from router.cluster import scripts
from router.cluster.answers import fencing_token
from router.cluster.keys import Keys, entry_of
from router.settings.settings import Settings
from router.stages.answers import AnswerCache
from router.stages.conformance import AnswerCacheConformance, kept_answer
from router.stages.validation import DecidedBy

REQUEST = "squash the last four commits on this branch"
SIMILAR = "Please squash the last four commits on this branch!"


async def _life(name: bytes, redis: Any) -> int:
    left: int = await redis.pttl(name)
    return left


@pytest.mark.parametrize("binary", server_binaries(), ids=lambda path: path.name)
class TestConformance(AnswerCacheConformance):
    @pytest.fixture(autouse=True)
    def _server(self, tmp_path: Path, binary: Path) -> object:
        self._folder = tmp_path
        self._redis = RedisServer(tmp_path, binary=binary)
        yield
        self._redis.close()

    async def make_cache(self) -> AnswerCache:
        cluster = {"url": self._redis.url, "namespace": f"test-{secrets.token_hex(4)}"}
        settings = Settings(state_dir=self._folder / "state", cluster=cluster)
        cache = OpenedAnswers(settings)
        # The suite keeps answers over two catalogs; a cluster keeps those that most have.
        keep = cache.keep

        async def keep_as_its_catalog(text: str, context: str, kept, *, similar: bool) -> None:  # type: ignore[no-untyped-def]
            await cache.members.changed(kept.basis.catalog)
            await keep(text, context, kept, similar=similar)

        cache.keep = keep_as_its_catalog  # type: ignore[method-assign]
        return cache


async def test_what_one_process_learns_another_finds(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with two_processes(settings_of, redis_server.url) as (one, other):
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        assert await skills_of(other, REQUEST) == ("git",)
        await caught_up(other.follower)
        assert await skills_of(other, SIMILAR) == ("git",)


async def test_answers_may_be_kept_for_ever(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = settings_of(redis_server.url)
    for_ever = settings.exact.model_copy(update={"ttl_seconds": math.inf})
    settings = settings.model_copy(update={"exact": for_ever})
    async with opened_answers(settings) as one, opened_answers(settings) as other:
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        assert await skills_of(other, REQUEST) == ("git",)


async def test_no_process_gives_an_answer_after_its_drop_was_acknowledged(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with two_processes(settings_of, redis_server.url) as (one, other):
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        await caught_up(other.follower)
        assert await skills_of(other, SIMILAR) == ("git",)
        await one.forget(REQUEST, "c")
        assert (
            await skills_of(other, SIMILAR) == ()
        )  # whether its index has heard of the drop or not
        assert await skills_of(other, REQUEST) == ()


async def test_a_new_process_knows_the_similar_requests_of_the_others(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with opened_answers(settings_of(redis_server.url)) as one:
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        async with opened_answers(settings_of(redis_server.url)) as late:
            await caught_up(late.follower)
            assert await skills_of(late, SIMILAR) == ("git",)


async def test_an_answer_over_a_catalog_that_does_not_count_is_not_kept(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with (
        opened_answers(settings_of(redis_server.url), "v1") as one,
        opened_answers(settings_of(redis_server.url), "v1") as other,
    ):
        await one.members.changed("v2")  # ahead: it writes nothing until others follow
        await one.keep(REQUEST, "c", kept_answer("git", catalog="v2"), similar=True)
        assert await skills_of(one, REQUEST) == ()
        await other.members.changed("v2")
        await other.keep(REQUEST, "c", kept_answer("old", catalog="v1"), similar=True)
        assert await skills_of(other, REQUEST) == ()  # a late write, decided over the older catalog
        await one.keep(REQUEST, "c", kept_answer("git", catalog="v2"), similar=True)
        assert await skills_of(other, REQUEST) == ("git",)


async def test_a_decision_that_began_before_a_drop_is_not_kept(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with opened_answers(settings_of(redis_server.url)) as one:
        marker = fencing_token.set("1000000")  # a token of long ago
        await one.keep(REQUEST, "c", kept_answer("old"), similar=True)
        assert await skills_of(one, REQUEST) == ()
        fencing_token.reset(marker)
        await one.keep(REQUEST, "c", kept_answer("git", decided_by=DecidedBy.PERSON), similar=True)
        assert await skills_of(one, REQUEST) == ("git",)


async def test_a_decision_under_way_does_not_replace_what_a_person_says_meanwhile(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with two_processes(settings_of, redis_server.url) as (one, other):
        keys, entry = one._keys, entry_of(REQUEST, "c")
        fence = (keys.lease(entry), keys.outcome(entry), keys.token)
        _, token = await one.link.script(scripts.JOIN, fence, 60_000, "")  # one begins to decide
        by_person = kept_answer("debugging", decided_by=DecidedBy.PERSON)
        await other.keep(REQUEST, "c", by_person, similar=True)
        marker = fencing_token.set(token.decode())
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        fencing_token.reset(marker)
        assert await skills_of(one, REQUEST) == ("debugging",)
        # Without an LLM nobody takes a lease, and so there is no token.
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        assert await skills_of(other, REQUEST) == ("debugging",)
        again = kept_answer("refactoring", decided_by=DecidedBy.PERSON)
        await one.keep(REQUEST, "c", again, similar=True)
        assert await skills_of(other, REQUEST) == ("refactoring",)


async def test_a_flushed_server_costs_misses_only(
    own_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with opened_answers(settings_of(own_server.url)) as one:
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        await one.link.run(lambda redis: redis.flushall())
        assert await skills_of(one, SIMILAR) == ()
        await one.members.changed("v1")
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        await caught_up(one.follower)
        assert await skills_of(one, SIMILAR) == ("git",)


async def test_a_replica_that_fell_behind_a_trimmed_stream_starts_anew(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with two_processes(settings_of, redis_server.url) as (one, other):
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        await caught_up(other.follower)
        await other.follower.aclose()
        await one.keep("deploy the service", "c", kept_answer("docker"), similar=True)
        await one.keep("rotate the log files", "c", kept_answer("terminal"), similar=True)
        stream = Keys(one._settings.cluster.namespace).answers
        await one.link.run(lambda redis: redis.xtrim(stream, maxlen=1, approximate=False))
        other.follower.start()
        await caught_up(other.follower)
        await caught_up(other.follower)
        assert await skills_of(other, "please rotate the log files") == ("terminal",)
        assert len(other._index) == 1
        assert await skills_of(other, REQUEST) == ("git",)  # the very request is found in any case


async def test_names_in_redis_hold_no_word_of_a_request(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = settings_of(redis_server.url)
    async with opened_answers(settings) as one:
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        await one.forget("rotate the log files", "c")
        names = await one.link.run(lambda redis: redis.keys("*"))
    mine = [name.decode() for name in names if settings.cluster.namespace in name.decode()]
    assert len(mine) >= 5
    assert all(name.startswith(f"{settings.cluster.namespace}:") for name in mine)
    assert not any(word in name for word in ("squash", "commits", "rotate") for name in mine)


async def test_every_answer_and_note_has_an_end(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = settings_of(redis_server.url)
    async with opened_answers(settings) as one:
        await one.keep(REQUEST, "c", kept_answer("git"), similar=True)
        await one.keep_marks("v1", b"12345678")
        await one.forget("rotate the log files", "c")
        endless = set()
        names = await one.link.run(lambda redis: redis.keys(f"{settings.cluster.namespace}:*"))
        for name in names:
            if await one.link.run(partial(_life, name)) == -1:
                endless.add(name.decode().rsplit(":", 1)[-1])
    assert endless == {"token", "answers", "catalog", "members", "versions"}  # one of each
