"""Files and service as one: search, get, save, status."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NoReturn

import pytest
from pydantic import SecretStr
from servers.forgetful_server import ForgetfulServer

from router.errors import (
    ConfigurationError,
    InvalidRequest,
    MemoryServiceError,
    ReadOnlyMemory,
    UnknownMemory,
)
from router.memory.files.store import FileStore
from router.memory.model import LayerStatus
from router.memory.services.delivery import FileDelivery, store_id
from router.memory.services.forgetful.client import Forgetful, connect_service
from router.memory.services.forgetful.wire import Origin
from router.memory.services.outbox import ServiceOutbox
from router.memory.services.unified import NO_SERVICE, ServiceFate, UnifiedAnswer, UnifiedMemory
from router.settings.settings import MemorySettings


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "project", serena_home=tmp_path / "home", read_only=["adr/.*"])


AMPLE = 60.0
"""Seconds that no answer of a test's server takes, however busy the machine is."""
SHORT = 0.1
"""Seconds to wait for a server that never answers."""

OpenMemory = Callable[[float], UnifiedMemory]


@pytest.fixture
async def open_memory(
    server: ForgetfulServer, files: FileStore, tmp_path: Path
) -> AsyncIterator[OpenMemory]:
    """Opens a memory that waits so many seconds for the service; closed at the end. Which way it
    is spoken to makes no difference here; ``test_forgetful_client`` tests both."""
    opened: list[UnifiedMemory] = []

    def opening(patience: float) -> UnifiedMemory:
        outbox = ServiceOutbox(tmp_path / "outbox.sqlite3", clock=time.time)
        service = Forgetful(connect_service(server.url), probe_seconds=patience)
        opened.append(UnifiedMemory(files, FileDelivery(files, service, outbox)))
        return opened[-1]

    yield opening
    for made in opened:
        await made.aclose()


@pytest.fixture
def memory(open_memory: OpenMemory) -> UnifiedMemory:
    return open_memory(AMPLE)


def shown(answer: UnifiedAnswer) -> list[str]:
    return [item.id for item in answer.items]


async def test_both_sources_are_searched_and_files_stand_first(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    files.save("auth", "Tokens are refreshed hourly.")
    server.add("The gateway refreshes tokens.")
    answer = await memory.search("refreshed tokens")
    assert [item.layer for item in answer.items] == ["files", "forgetful"]
    assert (answer.files.status, answer.files.found) == (LayerStatus.OK, 1)
    assert (answer.service.status, answer.service.found) == (LayerStatus.OK, 1)


async def test_each_source_can_be_asked_alone(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    files.save("auth", "tokens here")
    server.add("tokens there")
    lexical = await memory.search("tokens", lexical_only=True)
    assert shown(lexical) == ["auth"]
    assert lexical.service.status is LayerStatus.SKIPPED
    assert server.calls == []
    semantic = await memory.search("tokens", semantic_only=True)
    assert shown(semantic) == ["1"]
    assert semantic.files.status is LayerStatus.SKIPPED


async def test_a_dead_service_is_said_and_the_files_answer(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    files.save("auth", "tokens here")
    server.fault = "starting"
    answer = await memory.search("tokens")
    assert shown(answer) == ["auth"]
    assert answer.service.status is LayerStatus.ERROR
    again = await memory.search("tokens")
    assert again.service.status is LayerStatus.SKIPPED


async def test_a_hanging_service_is_waited_for_once(
    open_memory: OpenMemory, server: ForgetfulServer, files: FileStore
) -> None:
    memory = open_memory(SHORT)
    files.save("auth", "tokens here")
    server.fault = "hang"
    first = await memory.search("tokens")
    assert shown(first) == ["auth"]
    assert first.service.status is LayerStatus.TIMEOUT
    assert f"{SHORT:g} s" in first.service.reason
    server.hanging.clear()
    second = await memory.search("tokens")
    assert second.service.status is LayerStatus.SKIPPED
    assert not server.hanging.is_set()  # it was not asked


async def test_nobody_is_asked_any_longer_when_one_source_raises(
    memory: UnifiedMemory, server: ForgetfulServer
) -> None:
    async def fails() -> NoReturn:
        assert await asyncio.to_thread(server.hanging.wait, AMPLE)
        raise InvalidRequest("the layers cannot answer this")

    server.fault = "hang"
    with pytest.raises(InvalidRequest, match="cannot answer this"):
        await memory.search("tokens", search_layers=fails)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_without_a_service_the_files_are_everything(files: FileStore) -> None:
    memory = UnifiedMemory(files)
    report = await memory.save("Tokens are refreshed.", name="auth")
    assert report.service is ServiceFate.OFF
    answer = await memory.search("tokens", semantic_only=True)
    assert (answer.items, answer.service.reason) == ((), NO_SERVICE)
    assert (await memory.status()).service == "off"
    await memory.aclose()


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": ""},
        {"query": "x" * 501},
        {"query": "a\0b"},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": 101},
        {"query": "x", "strategy": "best"},
        {"query": "x", "lexical_only": True, "semantic_only": True},
    ],
)
async def test_what_cannot_be_asked_is_refused(
    files: FileStore, arguments: dict[str, object]
) -> None:
    with pytest.raises(InvalidRequest):
        await UnifiedMemory(files).search(**arguments)  # type: ignore[arg-type]


async def test_a_save_writes_the_file_and_tells_the_service(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    report = await memory.save("# Login flow\n\nTokens.", tags=["auth"])
    assert (report.name, report.service) == ("login-flow", ServiceFate.DELIVERED)
    assert files.get("login-flow").tags == ("auth",)
    assert server.held() == ["# Login flow\n\nTokens."]
    assert server.memories[1]["tags"] == ["auth"]


async def test_a_made_name_never_replaces_another_memory(memory: UnifiedMemory) -> None:
    first = await memory.save("# Login flow\n\nTokens.")
    same = await memory.save("# Login flow\n\nTokens.")
    other = await memory.save("# Login flow\n\nCookies.")
    assert same.name == first.name
    assert other.name != first.name
    assert (await memory.get(first.name)).content == "# Login flow\n\nTokens."


async def test_a_memory_that_must_not_be_written_is_told_to_nobody(
    memory: UnifiedMemory, server: ForgetfulServer
) -> None:
    with pytest.raises(ReadOnlyMemory):
        await memory.save("No.", name="adr/1")
    assert server.calls == []


async def test_what_the_service_found_of_a_file_is_shown_as_the_file_says_it_now(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    await memory.save("Tokens are refreshed hourly.", name="auth")
    files.save("auth", "Sessions end daily.")  # by somebody who tells nobody
    answer = await memory.search("refreshed tokens", semantic_only=True)
    assert [(item.id, item.layer, item.content) for item in answer.items] == [
        ("auth", "files", "Sessions end daily.")
    ]
    assert answer.items[0].provenance == ("file:auth", "forgetful:1")


async def test_of_a_file_that_is_gone_the_service_shows_nothing(
    memory: UnifiedMemory, files: FileStore
) -> None:
    await memory.save("Tokens are refreshed hourly.", name="auth")
    files.delete("auth")
    assert (await memory.search("refreshed tokens")).items == ()


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "/etc/passwd", "a//b", "x" * 500])
async def test_a_forged_origin_leads_nowhere(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore, name: str
) -> None:
    forged = Origin(name, store_id(files.roots[0]), "d", 1, 1)
    server.add("refreshed tokens", source_url=forged.to_url())
    answer = await memory.search("refreshed tokens")
    assert [(item.layer, item.content) for item in answer.items] == [
        ("forgetful", "refreshed tokens")
    ]


async def test_a_long_file_is_one_item_though_the_service_holds_parts(
    memory: UnifiedMemory, server: ForgetfulServer
) -> None:
    await memory.save("Tokens are refreshed. " * 400, name="long")
    assert len(server.memories) > 3
    answer = await memory.search("refreshed tokens")
    assert shown(answer) == ["long"]
    assert len(answer.items[0].provenance) == 1 + len(server.memories)


async def test_memories_are_got_by_name_from_either_side(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    files.save("auth", "tokens here")
    server.add("tokens there")
    assert (await memory.get("mem:auth")).content == "tokens here"
    assert (await memory.get("forgetful:1")).content == "tokens there"
    with pytest.raises(UnknownMemory):
        await memory.get("nowhere")
    with pytest.raises(MemoryServiceError):
        await memory.get("forgetful:99")


async def test_a_deletion_reaches_the_service(
    memory: UnifiedMemory, server: ForgetfulServer
) -> None:
    await memory.save("Tokens.", name="auth")
    report = await memory.delete("auth")
    assert report.service is ServiceFate.DELIVERED
    assert server.held() == []


async def test_the_status_tells_of_both_sides(
    memory: UnifiedMemory, server: ForgetfulServer, tmp_path: Path
) -> None:
    await memory.save("Tokens.", name="auth")
    (tmp_path / "project" / ".serena" / "memories" / "bad.md").write_bytes(b"\xff")
    status = await memory.status()
    assert (status.files, len(status.problems), status.service, status.waiting) == (1, 1, "up", 0)


async def test_the_settings_open_it(tmp_path: Path, server: ForgetfulServer) -> None:
    given: Callable[..., MemorySettings] = MemorySettings
    memory = UnifiedMemory.open(
        given(
            directory=tmp_path / "state",
            project_directory=tmp_path,
            ignored_patterns=("draft/.*",),
            service={"url": server.url, "protocol": "http", "token": SecretStr("t")},
        )
    )
    assert (await memory.save("Tokens.", name="auth")).service is ServiceFate.DELIVERED
    with pytest.raises(ReadOnlyMemory):
        await memory.save("Tokens.", name="draft/a")
    await memory.aclose()
    with pytest.raises(ConfigurationError):
        UnifiedMemory.open(given(directory=tmp_path, ignored_patterns=("(",)))
