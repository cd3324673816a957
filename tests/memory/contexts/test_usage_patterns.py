"""Consolidation candidates: counted, bounded, scoped, kept."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from router.errors import InvalidRequest
from router.memory.contexts.usage_patterns import MAX_TRACKED, QueryPatternTracker
from router.memory.model import NOBODY, MemoryItem, Scope

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOW.timestamp()

    def __call__(self) -> float:
        self.now += 1
        return self.now


def item(number: int, scope: Scope = NOBODY) -> MemoryItem:
    return MemoryItem(f"m{number}", "episodic", "something", NOW, scope=scope)


def tracker(folder: Path) -> QueryPatternTracker:
    return QueryPatternTracker(folder / "patterns.sqlite3", clock=Clock())


def ids(tracker: QueryPatternTracker, least: int, scope: Scope = NOBODY) -> list[tuple[str, int]]:
    found = tracker.get_consolidation_candidates(least, scope=scope)
    return [(candidate.id, candidate.retrievals) for candidate in found]


def test_candidates_are_those_retrieved_often_enough_most_often_first(tmp_path: Path) -> None:
    counts = tracker(tmp_path)
    counts.record([item(1), item(2), item(3)])
    counts.record([item(2), item(3)])
    counts.record([item(3)])
    assert ids(counts, 2) == [("m3", 3), ("m2", 2)]
    counts.close()


def test_counts_outlive_the_process(tmp_path: Path) -> None:
    first = tracker(tmp_path)
    first.record([item(1)])
    first.close()
    second = tracker(tmp_path)
    second.record([item(1)])
    assert ids(second, 2) == [("m1", 2)]
    second.close()


def test_beyond_the_bound_the_longest_unasked_is_forgotten(tmp_path: Path) -> None:
    counts = tracker(tmp_path)
    counts.record([item(-1)])
    counts.record([item(number) for number in range(MAX_TRACKED)])
    counts.record([item(0)])
    kept = ids(counts, 1)
    assert (kept[0], len(kept)) == (("m0", 2), MAX_TRACKED)
    assert ("m-1", 1) not in kept
    counts.close()


def test_candidates_of_another_scope_are_not_shown(tmp_path: Path) -> None:
    counts = tracker(tmp_path)
    counts.record([item(1, Scope(user="ann")), item(2)])
    assert ids(counts, 1, Scope(user="bob")) == [("m2", 1)]
    assert sorted(ids(counts, 1, Scope(user="ann"))) == [("m1", 1), ("m2", 1)]
    counts.close()


def test_nothing_below_one_retrieval_can_be_asked_for(tmp_path: Path) -> None:
    counts = tracker(tmp_path)
    with pytest.raises(InvalidRequest, match="min_retrievals"):
        counts.get_consolidation_candidates(0)
    counts.close()


def test_forgotten_counts_are_gone(tmp_path: Path) -> None:
    counts = tracker(tmp_path)
    counts.record([item(1)])
    assert counts.forget(Scope()) == 1
    assert ids(counts, 1) == []
    counts.close()


def test_the_counts_of_memory_files_are_those_of_the_project_that_the_files_belong_to(
    tmp_path: Path,
) -> None:
    shop = Scope(project="shop")
    path = tmp_path / "patterns.sqlite3"
    counts = QueryPatternTracker(path, clock=Clock(), files_owner=shop)
    counts.record([MemoryItem("ops/mule", "project", "The mule is called Platero.", NOW)])
    counts.record([MemoryItem("global/mule", "project", "Mules are patient.", NOW)])
    assert ids(counts, 1, Scope(project="bank")) == [("global/mule", 1)]
    assert (counts.forget(Scope(user="ada")), counts.forget(shop)) == (0, 1)
    assert ids(counts, 1, shop) == [("global/mule", 1)]
    counts.close()


def test_equal_ids_of_two_scopes_are_counted_apart(tmp_path: Path) -> None:
    counts = tracker(tmp_path)
    ada, bob = Scope(user="ada"), Scope(user="bob")
    counts.record([item(1, ada), item(1, bob)])
    counts.record([item(1, bob)])
    assert (ids(counts, 1, ada), ids(counts, 1, bob)) == ([("m1", 1)], [("m1", 2)])
    counts.close()
