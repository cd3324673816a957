"""The memory service over both of its protocols, well and unwell."""

from __future__ import annotations

import asyncio
import builtins
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr
from servers.forgetful_server import ForgetfulServer
from servers.loopback import QueuedServer

from router.errors import ConfigurationError, MemoryServiceError
from router.memory.services.forgetful.client import connect_service, new_memories
from router.memory.services.forgetful.wire import (
    ForgetfulService,
    NewMemory,
    Origin,
    RequestRefused,
    ServiceLate,
    check_endpoint,
    within,
)


@pytest.fixture(params=["http", "mcp"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def service(server: ForgetfulServer, protocol: str) -> AsyncIterator[ForgetfulService]:
    made = connect_service(server.url, protocol=protocol)
    yield made
    await made.aclose()


def memory(content: str = "Tokens are refreshed hourly.") -> NewMemory:
    (made,) = new_memories("auth/login", store="ab12", digest="cd34", content=content, tags=["t"])
    return made


async def test_no_proxy_has_a_part_in_what_stays_on_this_machine(
    proxy: QueuedServer, server: ForgetfulServer, protocol: str
) -> None:
    made = connect_service(server.url, protocol=protocol)
    assert await made.create(memory())
    await made.aclose()
    assert proxy.requests == []


async def test_a_memory_is_created_found_and_read_back(
    service: ForgetfulService, server: ForgetfulServer
) -> None:
    number = await service.create(memory())
    (found,) = await service.search("refreshed tokens", k=5)
    assert found.memory == await service.get(number)
    assert (found.memory.id, found.memory.content, found.memory.tags) == (
        number,
        "Tokens are refreshed hourly.",
        ["t"],
    )
    assert found.memory.origin == Origin("auth/login", "ab12", "cd34", 1, 1)
    assert found.memory.created.tzinfo is not None
    (call,) = [arguments for name, arguments in server.calls if name == "query_memory"]
    assert call["query_context"]


async def test_what_is_obsolete_is_not_found_again(service: ForgetfulService) -> None:
    first, second = await service.create(memory()), await service.create(memory())
    await service.obsolete(first, reason="changed", superseded_by=second)
    assert [found.memory.id for found in await service.search("tokens", k=5)] == [second]
    assert (await service.get(first)).is_obsolete


async def test_obsolete_memories_are_dropped_even_if_the_service_gives_them(
    service: ForgetfulService, server: ForgetfulServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = {"primary_memories": [server.memories[server.add("tokens")] | {"is_obsolete": True}]}
    monkeypatch.setattr(server, "do", lambda operation, arguments: reply)
    assert await service.search("tokens", k=5) == []


async def test_the_services_similarities_are_taken(
    service: ForgetfulService, server: ForgetfulServer
) -> None:
    server.says_scores = True
    server.add("refresh tokens hourly")
    server.add("refresh", importance=9)
    found = await service.search("refresh tokens", k=5)
    assert [(each.memory.id, each.similarity) for each in found] == [(2, 0.5), (1, 1.0)]


async def test_what_the_service_refuses_is_told_apart(service: ForgetfulService) -> None:
    with pytest.raises(RequestRefused):
        await service.get(99)


@pytest.mark.parametrize(
    "fault",
    ["starting", "broken", "cut", "malformed", "oversized", "compressed", "redirect"],
)
async def test_a_service_that_is_unwell_gives_one_kind_of_error(
    service: ForgetfulService, server: ForgetfulServer, fault: str
) -> None:
    server.fault = fault
    with pytest.raises(MemoryServiceError) as caught:
        await service.search("tokens", k=5)
    assert not isinstance(caught.value, RequestRefused)
    server.fault = None
    await service.probe()


@pytest.mark.parametrize("during", ["query_memory", None])
async def test_a_service_that_hangs_is_not_waited_for(
    server: ForgetfulServer, protocol: str, during: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.memory.services.forgetful.wire.CALL_SECONDS", 0.3)
    service = connect_service(server.url, protocol=protocol)
    server.fault, server.fault_on = "hang", during
    before = threading.active_count()
    with pytest.raises(ServiceLate):
        await service.search("tokens", k=5)
    await service.aclose()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []
    assert threading.active_count() <= before


async def test_a_client_that_answers_its_cancelling_with_an_error_is_late_all_the_same() -> None:
    async def ending() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise MemoryServiceError("connection closed") from None

    with pytest.raises(ServiceLate):
        await within(ending(), 0.01)


async def test_a_service_that_is_not_there_is_an_error(protocol: str) -> None:
    service = connect_service("http://127.0.0.1:9", protocol=protocol)
    with pytest.raises(MemoryServiceError):
        await service.search("tokens", k=5)
    await service.aclose()


async def test_calls_at_the_same_time_do_not_disturb_each_other(
    service: ForgetfulService, server: ForgetfulServer
) -> None:
    for number in range(8):
        server.add(f"word{number}")
    answers = await asyncio.gather(*(service.search(f"word{n}", k=1) for n in range(8)))
    assert [found.memory.content for (found,) in answers] == [f"word{n}" for n in range(8)]


async def test_the_token_is_shown_to_the_server_and_to_nobody_else(
    server: ForgetfulServer, protocol: str
) -> None:
    server.token = "right-token"  # noqa: S105 - of this test
    wrong = connect_service(server.url, protocol=protocol, token=SecretStr("wrong-token"))
    with pytest.raises(MemoryServiceError) as caught:
        await wrong.search("x", k=1)
    assert "wrong-token" not in f"{caught.value!r} {caught.value.__cause__!r} {wrong!r}"
    await wrong.aclose()
    right = connect_service(server.url, protocol=protocol, token=SecretStr("right-token"))
    assert await right.search("x", k=1) == []
    await right.aclose()


REPLIES: list[Any] = [
    [],
    {},
    {"primary_memories": None},
    {"primary_memories": [{}]},
    {"primary_memories": [], "scores": [{"similarity": "high"}]},
    {"primary_memories": [], "scores": [{"similarity": 7}]},
    "text",
    None,
]


@pytest.mark.parametrize("reply", REPLIES)
async def test_malformed_replies_are_no_answer(
    service: ForgetfulService,
    server: ForgetfulServer,
    monkeypatch: pytest.MonkeyPatch,
    reply: Any,
) -> None:
    monkeypatch.setattr(server, "do", lambda operation, arguments: reply)
    with pytest.raises(MemoryServiceError, match="malformed"):
        await service.search("tokens", k=5)


@pytest.mark.parametrize(
    ("values", "found"),
    [({"content": " \n"}, 0), ({"content": "\x1b[1m"}, 1), ({"created_at": "2026-03-01T12:00"}, 1)],
)
async def test_odd_memories_do_no_harm(
    service: ForgetfulService, server: ForgetfulServer, values: dict[str, str], found: int
) -> None:
    server.add(**{"content": "tokens"} | values)
    assert len(await service.search("tokens", k=5)) == found


async def test_a_time_beyond_the_calendar_is_malformed(
    service: ForgetfulService, server: ForgetfulServer
) -> None:
    server.add("tokens", created_at="0001-01-01T00:00:00+14:00")
    with pytest.raises(MemoryServiceError, match="malformed"):
        await service.search("tokens", k=5)


async def test_more_memories_than_can_be_are_malformed(
    service: ForgetfulService, server: ForgetfulServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = server.memories[server.add("tokens")]
    monkeypatch.setattr(server, "do", lambda operation, arguments: {"primary_memories": [one] * 21})
    with pytest.raises(MemoryServiceError, match="malformed"):
        await service.search("tokens", k=5)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1",
        "127.0.0.1:8020",
        "http://",
        "http://user:secret@127.0.0.1",
        "http://127.0.0.1:99999",
        "http://127.0.0.1/?a=b",
        "http://memory.example",
        "https://memory.example",
        "http://10.0.0.1:8020",
        "http://127.0.0.1.example",
        "http://0.0.0.0:8020",
    ],
)
def test_urls_that_are_not_safe_are_refused(protocol: str, url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        connect_service(url, protocol=protocol)
    assert "secret" not in str(caught.value)


def test_another_machine_needs_a_token_and_https(protocol: str) -> None:
    with pytest.raises(ConfigurationError):
        connect_service("http://memory.example", protocol=protocol, token=SecretStr("t"))
    connect_service("https://memory.example", protocol=protocol, token=SecretStr("t"))


@pytest.mark.parametrize("url", ["http://localhost:1", "http://[::1]:1", "http://127.0.0.2:1"])
def test_this_machine_needs_neither(url: str) -> None:
    check_endpoint(url, None)


def test_without_the_extra_mcp_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name == "mcp":
            raise ModuleNotFoundError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ConfigurationError, match=r"pip install '\.\[mcp\]'"):
        connect_service("http://127.0.0.1:8020", protocol="mcp")


@pytest.mark.parametrize("name", ["auth/login", "mit leer/é?&#part=9/9", "a%2Fb", "認証"])
def test_an_origin_survives_the_wire(name: str) -> None:
    origin = Origin(name, "ab", "cd", 2, 3)
    assert Origin.from_url(origin.to_url()) == origin


@pytest.mark.parametrize(
    "url", [None, "", "https://x", "mem:a?part=3/2&store=a&digest=b", "mem:a?part=0/1&store=a"]
)
def test_what_is_no_origin_is_none(url: str | None) -> None:
    assert Origin.from_url(url) is None
