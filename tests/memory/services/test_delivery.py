"""From the files to the service: changes, tombstones, lost replies and kill -9."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from clock import Clock
from servers.forgetful_server import ForgetfulServer

from router.memory.files.store import FileStore
from router.memory.services.delivery import FileDelivery, SyncReport
from router.memory.services.forgetful.client import FRESH_SECONDS, Forgetful, connect_service
from router.memory.services.outbox import HOLD_SECONDS, ServiceOutbox
from router.memory.services.unified import ServiceFate, UnifiedMemory


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "project", serena_home=tmp_path / "home")


@pytest.fixture
async def memory(
    server: ForgetfulServer, files: FileStore, tmp_path: Path, clock: Clock
) -> AsyncIterator[UnifiedMemory]:
    outbox = ServiceOutbox(tmp_path / "outbox.sqlite3", clock=clock)
    service = Forgetful(connect_service(server.url), clock=clock, probe_seconds=120)
    made = UnifiedMemory(files, FileDelivery(files, service, outbox))
    yield made
    await made.aclose()


@pytest.fixture
def later(clock: Clock) -> Callable[[], None]:
    """Lets the service rest and the outbox's holds and delays pass."""

    def wait() -> None:
        clock.now += 2 * max(FRESH_SECONDS, HOLD_SECONDS)

    return wait


async def test_new_changed_and_deleted_files_are_told(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    for name in ("a", "b", "c"):
        files.save(name, f"old {name}")
    assert await memory.sync() == SyncReport(sent=3)
    files.save("b", "new b")
    files.delete("c")
    files.save("d", "new d")
    assert await memory.sync(dry_run=True) == SyncReport(sent=2, deleted=1, unchanged=1)
    assert server.held() == ["old a", "old b", "old c"]
    assert await memory.sync() == SyncReport(sent=2, deleted=1, unchanged=1)
    assert server.held() == ["old a", "new b", "new d"]
    assert server.memories[2]["superseded_by"] == 4
    assert await memory.sync() == SyncReport(unchanged=3)


async def test_new_tags_are_a_change_and_white_space_is_none(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    files.save("a", "text here")
    await memory.sync()
    files.save("a", "text  here\n")
    assert (await memory.sync()).unchanged == 1
    files.save("a", "text here", tags=["t"])
    assert (await memory.sync()).sent == 1
    assert [m["tags"] for m in server.memories.values() if not m["is_obsolete"]] == [["t"]]


async def test_what_others_have_stored_over_there_is_left_alone(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    server.add("theirs")
    files.save("a", "ours")
    await memory.sync()
    files.delete("a")
    await memory.sync()
    assert server.held() == ["theirs"]


async def test_a_folder_that_is_away_deletes_nothing(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore, tmp_path: Path
) -> None:
    files.save("a", "text")
    await memory.sync()
    (tmp_path / "project").rename(tmp_path / "elsewhere")
    assert await memory.sync() == SyncReport(kept=1)
    assert server.held() == ["text"]


async def test_a_file_that_cannot_be_read_any_more_is_not_deleted(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore, tmp_path: Path
) -> None:
    files.save("a", "text")
    await memory.sync()
    (tmp_path / "project" / ".serena" / "memories" / "a.md").write_bytes(b"\xff")
    assert (await memory.sync()).unchanged == 1
    assert server.held() == ["text"]


@pytest.mark.parametrize("how", ["unreadable", "away"])
async def test_what_waits_is_not_deleted_because_its_file_cannot_be_seen(
    memory: UnifiedMemory,
    server: ForgetfulServer,
    files: FileStore,
    tmp_path: Path,
    later: Callable[[], None],
    how: str,
) -> None:
    await memory.save("old", name="a")
    server.fault = "broken"
    await memory.save("new", name="a")
    server.fault = None
    later()
    if how == "away":
        (tmp_path / "project").rename(tmp_path / "elsewhere")
    else:
        (tmp_path / "project" / ".serena" / "memories" / "a.md").write_bytes(b"\xff")
    report = await memory.sync()
    assert (report.deleted, report.failed, report.waiting) == (0, 1, 1)
    assert server.held() == ["old"]


async def test_a_service_that_is_down_is_told_when_it_is_up(
    memory: UnifiedMemory, server: ForgetfulServer, later: Callable[[], None]
) -> None:
    server.fault = "starting"
    await memory.save("One.", name="a")
    await memory.save("Two.", name="b")
    await memory.delete("a")
    assert (await memory.status()).waiting == 2
    server.fault = None
    later()
    report = await memory.sync()
    assert (report.failed, report.waiting) == (0, 0)
    assert server.held() == ["Two."]


async def test_what_the_service_fails_at_waits_and_nothing_is_lost(
    memory: UnifiedMemory,
    server: ForgetfulServer,
    files: FileStore,
    later: Callable[[], None],
) -> None:
    for number in range(5):
        files.save(f"n{number}", f"text {number}")
    server.fault, server.fault_on = "broken", "create_memory"
    report = await memory.sync()
    assert (report.sent, report.failed, report.waiting) == (0, 5, 5)  # it answers searches
    assert "500" in report.fault
    server.fault = None
    later()
    assert (await memory.sync()).sent == 5
    assert server.held() == [f"text {number}" for number in (0, 1, 2, 3, 4)]


async def test_a_dead_service_ends_a_delivery_at_its_first_failure(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    for number in range(5):
        files.save(f"n{number}", f"text {number}")
    server.fault = "broken"
    report = await memory.sync()
    assert (report.sent, report.waiting) == (0, 5)
    assert len(server.calls) <= 2


async def test_what_was_queued_is_delivered_in_the_background(
    server: ForgetfulServer, files: FileStore, tmp_path: Path, clock: Clock
) -> None:
    outbox = ServiceOutbox(tmp_path / "queue.sqlite3", clock=clock)
    service = Forgetful(connect_service(server.url), clock=clock, probe_seconds=120)
    memory = UnifiedMemory(files, FileDelivery(files, service, outbox), retry_seconds=0.001)
    server.fault = "starting"
    assert (await memory.save("One.", name="a")).service is ServiceFate.QUEUED
    server.fault = None
    clock.now += 2 * max(FRESH_SECONDS, HOLD_SECONDS)
    async with asyncio.timeout(60):
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})
    assert server.held() == ["One."]
    await memory.aclose()


async def test_a_service_that_was_wiped_is_sent_everything_again_once(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    for name in ("a", "b", "c"):
        files.save(name, f"text {name}")
    await memory.sync()
    server.memories.clear()
    for number in range(4):
        server.add(f"somebody else's {number}")
    assert await memory.sync(dry_run=True) == SyncReport(sent=3)
    assert await memory.sync() == SyncReport(sent=3)
    assert sorted(server.held())[-3:] == ["text a", "text b", "text c"]
    assert await memory.sync() == SyncReport(unchanged=3)
    assert len(server.held()) == 7


async def test_foreign_memories_are_left_alone_when_the_service_was_wiped(
    memory: UnifiedMemory, server: ForgetfulServer
) -> None:
    await memory.save("Ours.", name="a")
    server.memories.clear()
    foreign = server.add("Somebody else's.")
    assert foreign == 1  # the numbers begin anew
    await memory.delete("a")
    assert server.held() == ["Somebody else's."]


async def test_a_file_that_the_service_refuses_does_not_hold_up_the_others(
    memory: UnifiedMemory,
    server: ForgetfulServer,
    files: FileStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files.save("bad", "unwanted")
    files.save("good", "wanted")
    take = server.do

    def refusing(operation: str, arguments: dict[str, object]) -> object:
        if arguments.get("content") == "unwanted":
            return take("get_memory", {"memory_id": 999})
        return take(operation, arguments)

    monkeypatch.setattr(server, "do", refusing)
    report = await memory.sync()
    assert (report.sent, report.failed, report.waiting) == (1, 1, 1)
    assert server.held() == ["wanted"]


async def test_a_reply_that_was_lost_makes_no_second_copy(
    memory: UnifiedMemory,
    server: ForgetfulServer,
    files: FileStore,
    later: Callable[[], None],
) -> None:
    server.fault, server.fault_on = "deaf", "create_memory"
    text = " ".join(f"Paragraph {number} of some length." for number in range(200))
    files.save("long", text)
    for _ in range(2):
        assert (await memory.sync()).sent == 0
        later()
        await memory.save(text, name="long")  # nor does a save in between
        later()
    server.fault = None
    assert (await memory.sync()).waiting == 0
    contents = server.held()
    assert len(contents) == len(set(contents))
    assert "".join("".join(contents).split()) == "".join(text.split())


async def test_a_change_after_half_a_delivery_leaves_no_stale_parts(
    memory: UnifiedMemory,
    server: ForgetfulServer,
    files: FileStore,
    later: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files.save("long", "Old paragraph. " * 400)
    create = server._create

    def third_fails(given: dict[str, object]) -> dict[str, object]:
        if len(server.memories) == 2:
            server.fault = "broken"
        return create(given)

    monkeypatch.setattr(server, "_create", third_fails)
    assert (await memory.sync()).failed == 1
    monkeypatch.undo()
    server.fault = None
    later()
    files.save("long", "New.")
    assert (await memory.sync()).sent == 1
    assert server.held() == ["New."]


async def test_a_delivery_that_is_cancelled_is_taken_up_again(
    memory: UnifiedMemory,
    server: ForgetfulServer,
    files: FileStore,
    later: Callable[[], None],
) -> None:
    server.fault, server.fault_on = "hang", "create_memory"
    files.save("a", "text")
    syncing = asyncio.create_task(memory.sync())
    await asyncio.to_thread(server.hanging.wait, 120)
    syncing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await syncing
    server.fault = None
    later()
    assert (await memory.sync()).sent == 1
    assert server.held() == ["text"]


async def test_a_save_does_not_wait_for_a_long_delivery(
    memory: UnifiedMemory, server: ForgetfulServer, files: FileStore
) -> None:
    server.fault, server.fault_on = "hang", "create_memory"
    files.save("a", "text")
    syncing = asyncio.create_task(memory.sync())
    await asyncio.to_thread(server.hanging.wait, 120)
    report = await memory.save("more", name="b")
    assert (report.service, report.reason) == (ServiceFate.QUEUED, "a delivery is under way")
    assert not syncing.done()
    syncing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await syncing


async def test_global_memories_of_two_projects_are_told_once(
    server: ForgetfulServer, tmp_path: Path, clock: Clock
) -> None:
    for project in ("one", "two"):
        files = FileStore(tmp_path / project, serena_home=tmp_path / "home")
        files.save("global/style", "tabs")
        files.save("here", f"only {project}")
        outbox = ServiceOutbox(tmp_path / "outbox.sqlite3", clock=clock)
        memory = UnifiedMemory(
            files,
            FileDelivery(files, Forgetful(connect_service(server.url), probe_seconds=120), outbox),
        )
        await memory.sync()
        await memory.aclose()
    assert sorted(server.held()) == ["only one", "only two", "tabs"]


_SYNC = """
    import asyncio, sys, time
    from pathlib import Path
    from router.memory.files.store import FileStore
    from router.memory.services.forgetful.client import Forgetful, connect_service
    from router.memory.services.delivery import FileDelivery
    from router.memory.services.outbox import ServiceOutbox
    from router.memory.services.unified import UnifiedMemory
    top = Path(sys.argv[1])
    files = FileStore(top / "project", serena_home=top / "home")
    outbox = ServiceOutbox(top / "outbox.sqlite3", clock=lambda: 1_000.0)
    side = FileDelivery(files, Forgetful(connect_service(sys.argv[2]), probe_seconds=120), outbox)
    asyncio.run(UnifiedMemory(files, side).sync())
"""


async def test_a_delivery_that_is_killed_is_finished_by_the_next_without_copies(
    memory: UnifiedMemory,
    server: ForgetfulServer,
    files: FileStore,
    tmp_path: Path,
    later: Callable[[], None],
) -> None:
    for number in range(30):
        files.save(f"n{number}", f"text {number}")
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(_SYNC), str(tmp_path), server.url
    )
    assert await asyncio.to_thread(server.holds_five.wait, 300)
    killed.kill()
    await killed.wait()
    later()
    await memory.sync()
    assert sorted(server.held()) == sorted(f"text {number}" for number in range(30))
    assert (await memory.status()).waiting == 0
