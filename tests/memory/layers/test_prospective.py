"""The layer prospective: tasks by status and due date."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from memory.remembered import NOW, ask, ids, item

from router.memory.model import BlockingLayer, Scope
from router.memory.query.rewrite import rewrite
from router.memory.stores.memory_store import MemoryStore

EVERYBODY = Scope()


@pytest.fixture
def tasks(store: MemoryStore) -> MemoryStore:
    def task(name: str, text: str, **attributes: str) -> None:
        store.save([item(name, text, layer="prospective", attributes=attributes)])

    task("someday", "Learn to juggle")
    task("friday", "Send the invoice to Tom", due="2024-05-17")
    task("late", "Renew the certificate", due="2024-05-10T12:00:00+02:00", status="open")
    task("june", "Prepare the invoice template", due="2024-06-20")
    task("paid", "Pay the invoice of May", due="2024-05-01", status="done")
    task("party", "Book the room for the party", due="2024-05-20", status="cancelled")
    return store


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("What are my pending tasks?", ["late", "friday", "june", "someday"]),
        ("Anything overdue?", ["late"]),
        ("Which overdue tasks should I work on?", ["late"]),
        ("What is due this week?", ["friday"]),
        ("Which tasks are done?", ["paid"]),
        ("What did I finish?", ["paid"]),
        ("What did I not finish?", ["late", "friday", "june", "someday"]),
        ("What did we cancel?", ["party"]),
        ("What still needs to be done?", ["late", "friday", "june", "someday"]),
        ("What must be done this week?", ["friday"]),
        ("What should be finished this week?", ["friday"]),
        ("What isn't done yet?", ["late", "friday", "june", "someday"]),
        ("What has not been done?", ["late", "friday", "june", "someday"]),
        ("What was cancelled?", ["party"]),
        ("What is due in 2019?", []),
        ("What happens this week?", ["friday"]),
        ("What happens next year?", []),
    ],
)
def test_tasks_are_told_by_status_and_due_date_soonest_first(
    tasks: MemoryStore, layers: Mapping[str, BlockingLayer], text: str, wanted: list[str]
) -> None:
    assert ids(layers["prospective"].search(ask(text), scope=EVERYBODY, k=5)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Which tasks are blocked?", ["budget"]),
        ("What is on hold?", ["budget"]),
        ("What are we still waiting for?", ["budget"]),
        ("Which tasks aren\u2019t blocked?", ["budget", "report", "stamps"]),
        ("What am I working on?", ["report"]),
        ("What are we working on this week?", ["report"]),
        ("Which tasks are in progress?", ["report"]),
        ("What are my todos?", ["budget", "report", "stamps"]),
        ("What should I work on today?", ["budget", "report", "stamps"]),
        ("What should I do next week?", []),
    ],
)
def test_tasks_of_one_of_the_open_statuses_are_told_alone(
    store: MemoryStore, layers: Mapping[str, BlockingLayer], text: str, wanted: list[str]
) -> None:
    for name, status in (("budget", "blocked"), ("report", "in_progress"), ("stamps", "open")):
        task = item(name, name, layer="prospective", attributes={"status": status})
        store.save([task])
    found = layers["prospective"].search(rewrite(text, now=NOW), scope=EVERYBODY, k=5)
    assert sorted(ids(found)) == wanted


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "Europe/Berlin", "America/Los_Angeles"])
def test_a_date_without_a_time_is_a_day_of_who_asks(
    store: MemoryStore, layers: Mapping[str, BlockingLayer], zone: str
) -> None:
    for day in ("13", "14", "15", "16", "17"):
        due = {"due": f"2024-05-{day}"}
        store.save([item(day, "Water the plants", layer="prospective", attributes=due)])

    def found(text: str, hour: int) -> list[str]:
        now = datetime(2024, 5, 15, hour, 30, tzinfo=ZoneInfo(zone))
        return ids(layers["prospective"].search(ask(text, now=now), scope=EVERYBODY, k=5))

    for hour in (0, 10, 23):
        assert found("What is due today?", hour) == ["15"]
        assert found("What is due tomorrow?", hour) == ["16"]
        assert found("What was due yesterday?", hour) == ["14"]
        assert found("Anything overdue?", hour) == ["13", "14"]
