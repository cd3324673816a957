"""What faults cost, beyond those of the connection (``test_link.py``): servers and processes that
are cut off, evict, jump in time, are of another version, or are killed."""

from __future__ import annotations

import json
import ssl
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cascade import SQUASH
from certificates import self_signed
from clusters import SettingsOf, few_skills_router, opened_answers, skills_of, until
from servers.redis_server import FaultyProxy, RedisServer

from router import SemanticRouter
from router.cluster.answers import holding
from router.cluster.keys import Keys, entry_of
from router.cluster.link import Link, connect
from router.result import Decision
from router.stages.conformance import kept_answer

SIMILAR = f"Please {SQUASH}!"
HOUR_MICROSECONDS = 3600 * 10**6


def link_of(router: SemanticRouter) -> Link:
    assert router.cluster is not None
    return router.cluster.link


async def corrected(router: SemanticRouter, text: str, skill: str) -> None:
    """A person says which skill is right for a request."""
    await router.feedback((await router.route(text)).id, [skill])


async def known(router: SemanticRouter) -> set[str]:
    """The requests whose labels a process has in its evidence."""
    return {label[2] for label in await router.learner.labels()}


async def test_a_clock_that_has_stepped_back_lets_no_late_answer_in(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = [settings_of(redis_server.url) for _ in range(2)]
    keys = Keys(settings[0].cluster.namespace)
    async with opened_answers(settings[0]) as one, opened_answers(settings[1]) as other:
        # What the server was told while its clock was an hour ahead.
        now = time.time_ns() // 1000
        ahead = now + HOUR_MICROSECONDS
        await one.link.run(lambda redis: redis.set(keys.token, str(ahead)))
        record = {"before": "", "kind": "drop", "text": "another request", "context": "c"}
        await one.link.run(lambda redis: redis.xadd(keys.answers, record, id=f"{ahead // 1000}-0"))
        await one.keep(SQUASH, "c", kept_answer("git"), similar=True)
        await other.follower.caught_up()
        await until(lambda: other.follower.position > f"{ahead // 1000}-0")
        assert await skills_of(other, SIMILAR) == ("git",)
        await other.forget(SQUASH, "c")
        assert await skills_of(one, SQUASH) == ()
        marker = holding.set(str(now))  # decided since before the drop
        await one.keep(SQUASH, "c", kept_answer("git"), similar=True)
        holding.reset(marker)
        assert await skills_of(one, SQUASH) == ()
        # The server begins anew, and its records are older than those that were read.
        await one.link.run(lambda redis: redis.delete(keys.answers, keys.token))
        await until(lambda: other.follower.position == "")
        await one.keep(SQUASH, "c", kept_answer("debugging"), similar=True)
        assert await skills_of(other, SQUASH) == ()  # older than the drop, as its token says
        await one.keep("rotate the log files", "c", kept_answer("writer"), similar=True)
        await until(lambda: len(other._index) == 1)
        assert await skills_of(other, "please rotate the log files") == ("writer",)


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


@dataclass(frozen=True, slots=True)
class LaterKeys(Keys):
    """The names of a version that keeps things in another format."""

    def _named(self, *parts: str) -> str:
        return ":".join((self.namespace, "later", *parts))


async def test_versions_with_other_formats_leave_each_other_alone(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = [settings_of(redis_server.url) for _ in range(2)]
    later = LaterKeys(settings[1].cluster.namespace)
    async with (
        opened_answers(settings[0]) as one,
        opened_answers(settings[1], "v2", keys=later) as other,
    ):
        await one.keep(SQUASH, "c", kept_answer("git"), similar=True)
        await other.keep(SQUASH, "c", kept_answer("later", catalog="v2"), similar=True)
        assert await skills_of(one, SQUASH) == ("git",)
        assert await skills_of(other, SQUASH) == ("later",)
        await one.forget(SQUASH, "c")
        assert await skills_of(one, SQUASH) == ()
        assert await skills_of(other, SIMILAR) == ("later",)


async def test_what_another_version_has_written_is_passed_over(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = settings_of(redis_server.url)
    keys = Keys(settings.cluster.namespace)
    odd = [
        {"odd": "record"},
        *({"record": text} for text in ("{", "[]", '["later","x",1]', '["label","x",{}]')),
        *({"record": json.dumps([kind, "x", None])} for kind in ("label", "outcome", "model")),
    ]
    async with few_skills_router(settings) as one:
        context = one._runtime.current.base
        answer = keys.answer(entry_of(SQUASH, context))
        run = link_of(one).run
        for value in (b"", b"12", b"0" * 20 + b'{"later": 1}', b"0" * 20 + b"[[" * 50_000):
            await run(lambda redis, value=value: redis.set(answer, value))  # type: ignore[misc]
            assert (await one.look_up(SQUASH))[0] is None
        for stream in (keys.answers, keys.evidence):
            for record in odd:
                await run(lambda redis, s=stream, r=record: redis.xadd(s, r))  # type: ignore[misc]
        await corrected(one, SQUASH, "debugging")
        async with few_skills_router(settings_of(redis_server.url)) as other:

            async def knows() -> bool:
                return SQUASH in await known(other)

            await until(knows)
            assert (await other.route(SQUASH)).selected_skills == ("debugging",)


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


async def test_tls_and_an_acl_user_who_may_use_the_namespace_only(
    own_server: RedisServer, settings_of: SettingsOf, tmp_path: Path
) -> None:
    certificate, key = self_signed(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    namespace = settings_of(own_server.url).cluster.namespace
    admin: Any = connect(settings_of(own_server.url).cluster, socket_timeout=5)
    rules = f"on >secret ~{namespace}:* &{namespace}:* +@all -@dangerous"  # as the page says
    await admin.execute_command("ACL", "SETUSER", "router", *rules.split())
    async with FaultyProxy(own_server.port, tls=context) as proxy, AsyncExitStack() as stack:
        url = f"rediss://router@127.0.0.1:{proxy.port}/0?ssl_ca_certs={certificate}"
        one, other = [
            await stack.enter_async_context(
                few_skills_router(settings_of(url, password="secret"))  # noqa: S106 - of this test
            )
            for _ in range(2)
        ]
        await corrected(one, SQUASH, "debugging")
        assert (await other.route(SQUASH)).from_cache

        async def knows() -> bool:
            return SQUASH in await known(other)

        await until(knows)
        assert [link_of(router).trouble for router in (one, other)] == ["", ""]
    denied = await admin.execute_command("ACL", "LOG")
    await admin.aclose()
    assert denied == []
