"""What people write for the status of a task, and what is made of it."""

from __future__ import annotations

import pytest
from memory.remembered import ask, item

from router.errors import InvalidRequest
from router.memory.layers import built_in_layers
from router.memory.model import NOBODY, TaskStatus
from router.memory.stores.memory_store import MemoryStore


@pytest.mark.parametrize(
    ("written", "status"),
    [
        ("pending", TaskStatus.OPEN),
        ("To-Do", TaskStatus.OPEN),
        ("not started", TaskStatus.OPEN),
        ("Open", TaskStatus.OPEN),
        ("in progress", TaskStatus.IN_PROGRESS),
        ("blocked", TaskStatus.BLOCKED),
        ("complete", TaskStatus.DONE),
        ("canceled", TaskStatus.CANCELLED),
    ],
)
def test_synonyms_are_folded(written: str, status: TaskStatus) -> None:
    assert TaskStatus.parse(written) is status


def test_an_attribute_that_is_read_is_known_in_capital_letters_too(store: MemoryStore) -> None:
    written = {"Status": "Done", "DUE": "2026-12-01", "Ticket": "X-1"}
    [task] = store.save([item("a", "Pay rent", layer="prospective", attributes=written)])
    assert task.attributes == {"status": "done", "due": "2026-12-01", "Ticket": "X-1"}
    with pytest.raises(InvalidRequest, match=r"attributes\.status: 'someday' is none of open"):
        store.save([item("a", "x", layer="prospective", attributes={"Status": "someday"})])


def test_what_is_in_progress_or_blocked_is_still_to_be_done(store: MemoryStore) -> None:
    written = {"a": "todo", "b": "in_progress", "c": "blocked", "d": "complete"}
    store.save(
        [
            item(name, f"task {name}", layer="prospective", attributes={"status": status})
            for name, status in written.items()
        ]
    )
    tasks = next(one for one in built_in_layers(store) if one.spec.name == "prospective")
    still_open = tasks.search(ask("Which tasks are open?"), scope=NOBODY, k=9)
    done = tasks.search(ask("Which tasks are done?"), scope=NOBODY, k=9)
    assert {one.id for one in still_open} == {"a", "b", "c"}
    assert [one.id for one in done] == ["d"]
    assert {one.attributes["status"] for one in still_open} == {"open", "in_progress", "blocked"}
