"""Session and episodic memory: by time and words."""

from __future__ import annotations

import pytest
from memory.remembered import ask, ids, item

from router.memory.layers import built_in_layers
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
