"""Layers that ask the store by words, meaning and time."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory.remembered import ask, ids, item

from router.memory.layers import built_in_layers
from router.memory.layers.stored import success_bound
from router.memory.model import BlockingLayer, Scope
from router.memory.stores.memory_store import MemoryStore

EVERYBODY = Scope()
NAMES = ("session", "episodic")


@pytest.fixture(params=NAMES)
def layer(store: MemoryStore, request: pytest.FixtureRequest) -> BlockingLayer:
    name = request.param
    store.save(
        [
            item("standup", "Stand-up: the importer is late", layer=name, age=1),
            item("outage", "The database went down for an hour", layer=name, age=8),
            item("launch", "We launched the importer", layer=name, age=61),
            item("hire", "Ben joined the payments team", layer=name, age=400),
        ]
    )
    return next(one for one in built_in_layers(store) if one.spec.name == name)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("What did we do yesterday?", ["standup"]),
        ("What did we do last week?", ["outage"]),
        ("What did we do in March?", ["launch"]),
        ("What have we done since March?", ["standup", "outage", "launch"]),
        ("What was there before June 2023?", ["hire"]),
        ("What did we do in 2019?", []),
        ("Was there anything yesterday?", ["standup"]),
        ("anything from last week?", ["outage"]),
        ("What did I miss in 2019?", []),
        ("Anything new since March?", ["standup", "outage", "launch"]),
    ],
)
def test_a_question_about_a_time_is_answered_from_that_time_newest_first(
    layer: BlockingLayer, text: str, wanted: list[str]
) -> None:
    assert ids(layer.search(ask(text), scope=EVERYBODY, k=5)) == wanted


def test_a_time_beside_a_subject_is_preferred(layer: BlockingLayer) -> None:
    found = layer.search(ask("What about the importer in March?"), scope=EVERYBODY, k=5)
    assert ids(found)[0] == "launch"


def test_without_a_time_the_words_decide(layer: BlockingLayer) -> None:
    assert ids(layer.search(ask("Who joined payments?"), scope=EVERYBODY, k=1)) == ["hire"]


def test_without_a_time_a_word_that_also_asks_for_tasks_is_searched_for(
    layer: BlockingLayer, store: MemoryStore
) -> None:
    store.save([item("rent", "The rent was overdue", layer=layer.spec.name, age=90)])
    assert ids(layer.search(ask("overdue"), scope=EVERYBODY, k=1)) == ["rent"]


def test_without_words_the_newest_come_first(layer: BlockingLayer) -> None:
    found = layer.search(ask("what did we do?"), scope=EVERYBODY, k=2)
    assert ids(found) == ["standup", "outage"]


def test_of_two_that_fit_alike_the_newer_comes_first(
    layer: BlockingLayer, store: MemoryStore
) -> None:
    name = layer.spec.name
    for age in (30, 3):
        store.save([item(f"age-{age}", "the xylophone was tuned", layer=name, age=age)])
    store.save([item("age-15", "the xylophone was tuned", layer=name, age=15)])
    found = layer.search(ask("xylophone tuned"), scope=EVERYBODY, k=3)
    assert ids(found) == ["age-3", "age-15", "age-30"]


def test_items_of_two_scopes_that_share_an_id_have_an_age_each(
    layer: BlockingLayer, store: MemoryStore
) -> None:
    name, text, ada = layer.spec.name, "the xylophone was tuned", Scope(user="ada")
    for shared, age, scope in (("same", 0.6, EVERYBODY), ("other", 1.2, ada), ("same", 30, ada)):
        store.save([item(shared, text, layer=name, age=age, scope=scope)])
    found = layer.search(ask("xylophone tuned yesterday"), scope=ada, k=5)
    told = [(one.id, one.scope) for one in found if one.content == text]
    assert told == [("same", EVERYBODY), ("other", ada), ("same", ada)]


def test_in_a_conversation_the_latest_counts_for_more_than_elsewhere(store: MemoryStore) -> None:
    for name in NAMES:
        store.save(
            [
                item("better", "the parser error of the importer", layer=name, age=9),
                *(item(f"lunch-{n}", f"lunch number {n}", layer=name, age=n) for n in range(1, 9)),
                item("latest", "the importer has a parser fault", layer=name, age=0),
            ]
        )
    layers = {one.spec.name: one for one in built_in_layers(store)}
    query = ask("parser error importer")
    best = {name: ids(layers[name].search(query, scope=EVERYBODY, k=3))[0] for name in NAMES}
    assert best == {"session": "latest", "episodic": "better"}


def test_who_did_what_is_found_by_actor_action_and_subject(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    def record(name: str, actor: str, action: str, subject: str, age: float) -> None:
        attributes = {"actor": actor, "action": action, "subject": subject}
        text = f"Record {name} in the audit log"
        store.save([item(name, text, layer="governance", age=age, attributes=attributes)])

    record("r1", "Anna", "approved", "deletion of backups", 40)
    record("r2", "Ben", "approved", "production access", 8)
    record("r3", "Anna", "rejected", "production access", 2)
    layer = layers["governance"]
    assert ids(layer.search(ask("Who approved production access?"), scope=EVERYBODY, k=1)) == ["r2"]
    assert ids(layer.search(ask("What has Anna rejected?"), scope=EVERYBODY, k=1)) == ["r3"]
    assert ids(layer.search(ask("What was done last week?"), scope=EVERYBODY, k=5)) == ["r2"]
    assert ids(layer.search(ask("Anna in April"), scope=EVERYBODY, k=5))[0] == "r1"


def test_of_two_procedures_alike_the_one_that_worked_comes_first(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    outcomes = {"first": {}, "second": {"successes": 20}, "third": {"failures": 20}}
    for name, counts in outcomes.items():
        text = f"Deploy to staging: push a tag ({name} way)"
        store.save([item(name, text, layer="procedural", attributes=counts)])
    found = layers["procedural"].search(ask("how do I deploy to staging?"), scope=EVERYBODY, k=3)
    assert found[0].id == "second"
    rates = {one.id: one.attributes.get("success_rate") for one in found}
    assert rates == {"first": None, "second": 1.0, "third": 0.0}


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_proven_rate_grows_with_success_and_never_exceeds_the_rate(won: int, lost: int) -> None:
    def bound(won: int, lost: int) -> float:
        return success_bound(item("a", "x", attributes={"successes": won, "failures": lost}))

    assert 0 <= bound(won, lost) <= (won / (won + lost) if won + lost else 0)
    assert bound(won + 1, lost) > bound(won, lost)
    assert bound(won, lost + 1) <= bound(won, lost)


def test_counts_that_no_float_can_hold_are_counts_too() -> None:
    often = item("a", "x", attributes={"successes": 10**400, "failures": 10**400})
    assert success_bound(often) == pytest.approx(0.5, abs=1e-3)
