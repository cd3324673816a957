"""Tools that are put in one process and routed to in another."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from clusters import SettingsOf, caught_up, few_skills_router, until
from servers.redis_server import FaultyProxy, RedisServer

from router import SemanticRouter, SourceError, StoreError
from router.cluster.keys import Keys
from router.cluster.link import connect
from router.http.caller import LOCAL
from router.http.endpoints import PutToolArguments, ToolPlace, delete_tool, put_tool
from router.http.problems import Refused
from router.service.service import Service
from router.tools.folder import ToolFolder
from router.tools.source import ToolSource

ASKED = "pay the customer's money back"
REFUND = {"name": "refund", "description": "Pays a customer's money back.", "input_schema": {}}
LOAN = {"name": "loan", "description": "Lends a customer money.", "input_schema": {}}


def offers(router: SemanticRouter, name: str, definition: object = None) -> bool:
    skill = router.catalog.skills.get(name)
    return skill is not None and definition in (None, skill.payload)


def put(name: str, definition: dict[str, Any]) -> PutToolArguments:
    """What a client sends to put a tool into the namespace ``shop``."""
    return PutToolArguments(namespace="shop", name=name, definition=definition)


def api_of(router: SemanticRouter) -> Any:
    """As much of an API as keeps tools."""
    return SimpleNamespace(service=Service(router))


async def settled(*routers: SemanticRouter) -> None:
    """Wait until each process has read of every change that was sent."""
    for router in routers:
        assert router.cluster is not None
        await router.cluster.tools._outbox.deliver()
    for router in routers:
        assert router.cluster is not None
        await caught_up(router.cluster.tools.follower)
        await router.reload()


async def test_a_tool_put_over_http_is_routed_to_in_another_process(
    redis_server: RedisServer, settings_of: SettingsOf, tmp_path: Path
) -> None:
    url = redis_server.url
    folders = [ToolFolder(tmp_path / name) for name in ("one", "other")]
    there = settings_of(url)
    refund = ToolPlace(namespace="shop", name="refund")
    async with few_skills_router(settings_of(url), folders[0]) as one:
        async with few_skills_router(there, folders[1]) as other:
            await put_tool(api_of(one), LOCAL, put("refund", REFUND))
            await until(lambda: offers(other, "shop__refund", REFUND))
            assert (await other.route(ASKED)).selected_skills == ("shop__refund",)
            changed = {**REFUND, "description": "Gives money back to a customer."}
            assert not (await put_tool(api_of(other), LOCAL, put("refund", changed))).new
            await until(lambda: offers(one, "shop__refund", changed))
            assert not (await put_tool(api_of(one), LOCAL, put("refund", REFUND))).new
            await until(lambda: offers(other, "shop__refund", REFUND))
            await delete_tool(api_of(other), LOCAL, refund)
            await until(lambda: not offers(one, "shop__refund"))
            with pytest.raises(Refused, match=r"none in the namespace shop"):
                await delete_tool(api_of(one), LOCAL, refund)
            await put_tool(api_of(one), LOCAL, put("loan", LOAN))
            await until(lambda: offers(other, "shop__loan"))
        assert not (tmp_path / "other" / "shop" / "loan.json").exists()  # in memory only
        async with few_skills_router(there, ToolFolder(tmp_path / "other")) as other:
            await until(lambda: offers(other, "shop__loan", LOAN))  # after a restart, too


async def test_a_shared_source_is_the_same_in_every_process(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    url = redis_server.url
    first, second = ToolSource([LOAN], shared=True), ToolSource(shared=True)
    own = ToolSource(name="own")
    async with (
        few_skills_router(settings_of(url), first, own) as one,
        few_skills_router(settings_of(url), second) as other,
    ):
        first.add(REFUND)
        own.add({**LOAN, "name": "mortgage"})
        await until(lambda: offers(other, "refund", REFUND))
        assert (await other.route(ASKED)).selected_skills == ("refund",)
        changed = {**REFUND, "description": "Gives money back to a customer."}
        second.replace(changed)
        await until(lambda: offers(one, "refund", changed))
        second.remove("refund")
        await until(lambda: not offers(one, "refund"))
        assert offers(one, "loan")  # what a process began with is its own
        assert not offers(other, "mortgage")
        assert one.cluster is not None
        # What is flushed comes back from whoever knows it, when a third process asks.
        second.add(REFUND)
        await settled(other, one)
        await one.cluster.link.run(lambda redis: redis.flushdb())
        async with few_skills_router(settings_of(url), ToolSource([LOAN], shared=True)) as third:
            await until(lambda: offers(third, "refund", REFUND))


async def test_a_tool_in_any_script_may_be_as_large_as_one_in_ascii(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    tools, large = ToolSource(shared=True), {**REFUND, "description": "返金" * 30_000}
    async with (
        few_skills_router(settings_of(redis_server.url), ToolSource(shared=True)) as other,
        few_skills_router(settings_of(redis_server.url), tools),
    ):
        tools.add(large)
        await until(lambda: offers(other, "refund", large))


async def test_what_is_changed_while_the_server_is_away_arrives_later(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with FaultyProxy(redis_server.port) as proxy:
        cut_off, tools = settings_of(proxy.url), ToolSource(shared=True)
        async with few_skills_router(
            settings_of(redis_server.url), ToolSource(shared=True)
        ) as other:
            async with few_skills_router(cut_off, tools) as one:
                proxy.cut()
                tools.add(REFUND)
                await one.reload()
                assert (await one.route(ASKED)).selected_skills == ("refund",)
            proxy.mend()
            async with few_skills_router(cut_off, ToolSource(shared=True)):
                await until(lambda: offers(other, "refund", REFUND))


async def test_what_cannot_be_used_is_refused_and_named(
    redis_server: RedisServer, settings_of: SettingsOf, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_of(redis_server.url)
    keys = Keys(settings.cluster.namespace)
    definitions = {
        "another-tool": json.dumps(LOAN).encode(),
        "nested": b"[" * 100_000,
        "not-json": b"{not JSON",
        "not-utf-8": b"\xff\xfe",
        "too-large": json.dumps({**REFUND, "description": "y" * 300_000}).encode(),
        "another-digest": json.dumps({**REFUND, "name": "another-digest"}).encode(),
    }
    redis = connect(settings.cluster, socket_timeout=5.0)
    for name, data in definitions.items():
        digest = hashlib.sha256(name.encode() if name == "another-digest" else data).hexdigest()
        await redis.set(keys.tool(digest), data)
        await redis.hset(keys.tools("tools"), name, f"5 {digest}")
    await redis.hset(keys.tools("tools"), "odd", b"many words")
    await redis.aclose()
    with caplog.at_level(logging.WARNING):
        async with few_skills_router(settings, ToolSource([LOAN], shared=True)) as router:
            await until(lambda: caplog.text.count("in Redis is refused") >= len(definitions))
            assert offers(router, "loan", LOAN)
            assert [name for name in definitions if offers(router, name)] == []
    for name in definitions:
        assert f"the tool '{name}' of 'tools' in Redis is refused" in caplog.text


def test_what_is_no_json_cannot_be_shared() -> None:
    def greet(name: str) -> str:
        """Says hello."""
        return name

    with pytest.raises(SourceError, match=r"'greet'.*not JSON"):
        ToolSource([greet], shared=True)


async def test_opening_again_after_a_failure_leaves_nothing_out_and_begins_nothing_twice(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = settings_of(redis_server.url)
    learning = settings.learning.model_copy(update={"directory": settings.state_dir / "evidence"})
    settings = settings.model_copy(update={"learning": learning})
    in_the_way = settings.evidence_directory / "cluster.sqlite3"
    in_the_way.mkdir(parents=True)
    tools = [ToolSource([], name="crm", shared=True) for _ in range(2)]
    failing = few_skills_router(settings, tools[0])
    with pytest.raises(StoreError, match=re.escape(str(in_the_way))):
        await failing.open()
    in_the_way.rmdir()
    async with failing as one, few_skills_router(settings_of(redis_server.url), tools[1]) as other:
        cluster = one.cluster
        assert cluster is not None
        for part in (cluster.answers.follower, cluster.answers._outbox, cluster.members):
            assert len(part._background._tasks) == 1
        tools[1].add(REFUND)
        await settled(other)
        await until(lambda: offers(one, "refund", REFUND))
