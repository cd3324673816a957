"""The layer graph: relations are walked from what a query names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from cpu_time import cpu_time_at_most
from memory.remembered import ask, ids, item

from router.memory.model import BlockingLayer, MemoryItem, Scope
from router.memory.stores.graph import (
    Way,
    asked_way,
    leads_to_named,
    states_relation,
    with_relations,
)
from router.memory.stores.memory_store import MemoryStore

EVERYBODY = Scope()
ADA = Scope(user="ada", project="engine")


def reached(found: Sequence[MemoryItem]) -> list[str]:
    """The ids of what was found by relations: words and meaning alone give less."""
    return ids(one for one in found if one.score is not None and one.score > 0.1)


# Graph: Web App -> Auth Service -> Redis -> Disk, and Kafka by itself.
GRAPH = [
    ("app", "The web app is what customers see", "Web App", ("calls -> Auth Service",)),
    ("auth", "The auth service signs tokens", "Auth Service", ("stores sessions in -> Redis",)),
    ("redis", "Redis keeps data in memory", "Redis", ("writes snapshots to -> Disk",)),
    ("disk", "The disk is an SSD", "Disk", ()),
    ("kafka", "Kafka carries events", "Kafka", ()),
]


@pytest.fixture
def graph(store: MemoryStore) -> MemoryStore:
    store.save(
        [
            item(
                name,
                text,
                layer="graph",
                attributes={"entity": entity, "relations": relations},
            )
            for name, text, entity, relations in GRAPH
        ]
    )
    return store


def test_the_graph_is_walked_two_relations_far_nearer_first(
    graph: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    found = layers["graph"].search(
        ask("What hangs together with the web-app?"), scope=EVERYBODY, k=5
    )
    assert reached(found) == ["app", "auth", "redis"]


def test_relations_are_followed_in_both_directions(
    graph: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    found = layers["graph"].search(ask("What hangs together with Redis?"), scope=EVERYBODY, k=4)
    assert ids(found)[0] == "redis"
    assert set(ids(found)[1:3]) == {"auth", "disk"}


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("What depends on Redis?", ["redis", "auth", "app"]),
        ("What does Redis depend on?", ["redis", "disk"]),
        ("What is used by Redis?", ["redis", "disk"]),
        ("What is Redis used by?", ["redis", "auth", "app"]),
    ],
)
def test_relations_are_followed_the_way_that_a_question_asks_for(
    graph: MemoryStore, layers: Mapping[str, BlockingLayer], question: str, found: list[str]
) -> None:
    assert reached(layers["graph"].search(ask(question), scope=EVERYBODY, k=5)) == found


def test_what_uses_the_same_thing_is_not_reached_over_it(
    graph: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    attributes = {"entity": "Cart", "relations": ("uses -> Redis",)}
    graph.save([item("cart", "The cart", layer="graph", attributes=attributes)])
    found = layers["graph"].search(ask("Tell me of the cart"), scope=EVERYBODY, k=5)
    assert set(reached(found)) == {"cart", "redis", "disk"}


@pytest.mark.parametrize(
    ("question", "way"),
    [
        ("What does the redis service need?", Way.NEEDED),
        ("Which of our services call Redis?", Way.NEEDING),
        ("What do we need for Redis?", None),
        ("What is Redis used for?", None),
        ("What are the users of Redis?", None),
        ("Who owns Redis?", None),
        ("Why do we use Redis?", None),
        ("Redis", None),
        ("What depends on Kafka?", None),
    ],
)
def test_a_question_says_which_way_relations_are_followed(question: str, way: Way | None) -> None:
    assert asked_way("Redis", question) is way


def test_an_edge_that_is_gone_is_not_followed(
    graph: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    graph.delete("graph", ["auth"], EVERYBODY)
    found = layers["graph"].search(ask("web app"), scope=EVERYBODY, k=5)
    assert reached(found) == ["app"]


def test_the_walk_does_not_pass_through_what_others_know(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    def about(name: str, target: str, scope: Scope) -> None:
        attributes = {"entity": name, "relations": (f"uses -> {target}",)}
        store.save([item(name, name, layer="graph", scope=scope, attributes=attributes)])

    about("alpha", "beta", EVERYBODY)
    about("beta", "gamma", Scope(user="bob"))
    about("gamma", "delta", EVERYBODY)
    found = layers["graph"].search(ask("alpha"), scope=ADA, k=5)
    assert reached(found) == ["alpha"]


def test_a_relation_may_name_its_own_source(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    attributes = {"relations": ("Anna -> leads -> Payments",)}
    store.save([item("org", "from the chart", layer="graph", attributes=attributes)])
    store.save([item("other", "Anna likes tea", layer="graph")])
    found = layers["graph"].search(ask("Who leads Payments?"), scope=EVERYBODY, k=1)
    assert ids(found) == ["org"]


def stating(*relations: str, content: str = "a note", entity: str = "cart") -> MemoryItem:
    attributes = {"entity": entity, "relations": relations}
    return item("one", content, layer="graph", attributes=attributes)


def test_an_item_tells_the_relations_that_its_content_does_not_tell() -> None:
    content = "Cart uses Redis"
    assert with_relations(stating("uses -> redis", content=content)) == content
    assert with_relations(stating("uses -> redis", "Ada -> owns -> Cart", content=content)) == (
        "Cart uses Redis (Ada owns Cart)"
    )
    assert with_relations(item("none", content)) == content


@pytest.mark.parametrize(
    ("question", "relation", "leads"),
    [
        ("What depends on Redis?", "uses -> Redis", True),
        ("What breaks without the auth service?", "calls -> Auth Service", True),
        ("Who is responsible for Redis?", "Ada -> owns -> Redis", True),
        ("Who is responsible for Redis?", "uses -> Redis", False),
        ("What does Redis depend on?", "uses -> Redis", False),
        ("What is used by Redis?", "uses -> Redis", False),
        ("What are the dependencies of Redis?", "uses -> Redis", False),
        ("What depends on Kafka?", "uses -> Redis", False),
        ("What is made by Zahnrad AG?", "made by -> Zahnrad AG", True),
        ("Who made Zahnrad AG?", "made by -> Zahnrad AG", False),
        ("By when must we stop using Redis?", "uses -> Redis", False),
        ("Why do we need Redis?", "uses -> Redis", False),
        ("What breaks when Redis is down?", "uses -> Redis", True),
    ],
)
def test_a_relation_leads_to_what_a_question_names_as_acted_on(
    question: str, relation: str, leads: bool
) -> None:
    assert leads_to_named(stating(relation), question) is leads


def test_an_item_of_thousands_of_relations_takes_little_time_to_judge() -> None:
    hub = stating(*(f"uses -> Service{number}" for number in range(5000)))
    question = "What depends on Service4999 and on whatever else we use today, and who owns that?"
    with cpu_time_at_most(0.1):
        assert leads_to_named(hub, question)
        assert not states_relation(hub, "What is the address of Service4999?")
