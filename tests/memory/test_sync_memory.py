"""Memory without ``await``: the same answers, from any thread."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kept_memory import settings_in

from router.errors import StoreError, UnknownMemory
from router.memory.memory import Memory
from router.memory.sync_memory import SyncMemory
from router.retrieval.bundled_encoder import BundledEncoder
from router.settings.settings import Settings

ADA = {"user": "ada", "project": "shop"}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SERENA_HOME", str(tmp_path / "serena"))
    return settings_in(tmp_path)


@pytest.fixture
def memory(settings: Settings, encoder: BundledEncoder) -> Iterator[SyncMemory]:
    with SyncMemory(settings, encoder=encoder) as made:
        yield made


def names(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"}


def test_it_has_every_call_of_memory() -> None:
    assert names(Memory) - {"aclose"} == names(SyncMemory) - {"close"}


@pytest.mark.parametrize("name", sorted(names(SyncMemory) - {"close"}))
def test_each_call_is_documented_as_the_one_it_waits_for(name: str) -> None:
    ours, theirs = getattr(SyncMemory, name), getattr(Memory, name)
    assert ours.__doc__ == theirs.__doc__
    assert inspect.signature(ours) == inspect.signature(theirs)


def test_a_session_from_saving_to_recalling(memory: SyncMemory, tmp_path: Path) -> None:
    memory.save("JWT is a signed token", layer="semantic", name="jwt", scope=ADA)
    memory.save("Deploy with make release.", name="ops/deploy")
    assert [choice.name for choice in memory.classify("What is JWT?").layers] == ["semantic"]
    answer = memory.recall("What is JWT?", ADA)
    assert [one.item.id for one in answer.items] == ["jwt"]
    memory.feedback("semantic", useful=True, route_id=answer.id)
    assert memory.get("ops/deploy").content == "Deploy with make release."
    assert [item.id for item in memory.search("release").items] == ["ops/deploy"]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("JWT expires after an hour.", encoding="utf-8")
    assert memory.ingest(tmp_path / "docs", scope=ADA).added == 1
    assert len(memory.assemble("JWT", "rag", scope=ADA).chunks) == 2
    assert len(memory.get_consolidation_candidates(1, scope=ADA)) == 1
    memory.delete("jwt", layer="semantic", scope=ADA)
    with pytest.raises(UnknownMemory):
        memory.get("jwt", layer="semantic", scope=ADA)


async def test_it_works_where_a_loop_is_running_already(memory: SyncMemory) -> None:
    assert memory.recall("What is JWT?").items == ()


def test_threads_share_it(memory: SyncMemory) -> None:
    def work(number: int) -> int:
        scope = {"user": f"user-{number}"}
        memory.save(f"JWT number {number} is a token", layer="semantic", scope=scope)
        found = memory.recall("What is JWT?", scope)
        return sum(f"number {number}" in one.item.content for one in found.items)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(16))) == [1] * 16


def test_a_store_that_cannot_be_opened_leaves_no_thread(
    settings: Settings, encoder: BundledEncoder, tmp_path: Path
) -> None:
    (tmp_path / "kept").write_text("a file where a folder should be", encoding="utf-8")
    with pytest.raises(StoreError), SyncMemory(settings, encoder=encoder):
        pass
    assert "memory" not in [thread.name for thread in threading.enumerate()]
