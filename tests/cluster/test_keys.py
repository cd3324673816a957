"""Names in Redis: each format and each namespace has its own."""

from __future__ import annotations

import json
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from cascade import SQUASH
from certificates import self_signed
from clusters import (
    SettingsOf,
    corrected,
    few_skills_router,
    known,
    link_of,
    opened_answers,
    skills_of,
    until,
)
from servers.redis_server import FaultyProxy, RedisServer

from router.cluster.keys import Keys, entry_of
from router.cluster.link import connect
from router.stages.conformance import kept_answer

SIMILAR = f"Please {SQUASH}!"


async def test_versions_with_other_formats_leave_each_other_alone(
    redis_server: RedisServer, settings_of: SettingsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [settings_of(redis_server.url) for _ in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr("router.cluster.keys.FORMAT", "later")
        later = Keys(settings[1].cluster.namespace)
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
        *(
            {"record": text}
            for text in ("{", "[" * 50_000, "[]", '["later","x",1]', '["label","x",{}]')
        ),
        *({"record": json.dumps([kind, "x", None])} for kind in ("label", "outcome", "model")),
    ]
    async with few_skills_router(settings) as one:
        context = one._runtime.current.base_context
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
