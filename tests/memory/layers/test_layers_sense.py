"""Graph, prospective, procedural, governance, meta, user and project: each by its own sense."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory.remembered import NOW, ask, ids, item

from router.memory.layers import built_in_layers, specs
from router.memory.layers.graph import GraphLayer
from router.memory.layers.procedural import wilson
from router.memory.model import BlockingLayer, Scope
from router.memory.stores.memory_store import MemoryStore
from router.result import MEMORY_LAYERS

EVERYBODY = Scope()
ADA = Scope(user="ada", project="engine")


@pytest.fixture
def layers(store: MemoryStore) -> Mapping[str, BlockingLayer]:
    return {layer.spec.name: layer for layer in built_in_layers(store)}


def test_there_are_eleven_and_each_says_what_it_is(store: MemoryStore) -> None:
    layers = built_in_layers(store)
    assert tuple(layer.spec.name for layer in layers) == MEMORY_LAYERS
    assert len(MEMORY_LAYERS) == 11
    assert all(3 <= len(layer.spec.examples) <= 8 for layer in layers)
    assert {layer.spec.name: layer.spec.quality for layer in layers}["episodic"] == 0.85
    assert {layer.spec.name: layer.spec.quality for layer in layers}["semantic"] == 0.80


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


@pytest.mark.parametrize(
    ("depth", "wanted"),
    [
        (0, ["app"]),
        (1, ["app", "auth"]),
        (2, ["app", "auth", "redis"]),
        (3, ["app", "auth", "redis", "disk"]),
    ],
)
def test_the_graph_is_walked_to_the_given_depth_nearer_first(
    graph: MemoryStore, depth: int, wanted: list[str]
) -> None:
    layer = GraphLayer(graph, specs.GRAPH, depth=depth)
    found = layer.search(ask("What hangs together with the web-app?"), scope=EVERYBODY, k=5)
    reached = [one for one in found if one.score is not None and one.score > 0.1]
    assert ids(reached) == wanted


def test_relations_are_followed_in_both_directions(
    graph: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    found = layers["graph"].search(ask("What depends on Redis?"), scope=EVERYBODY, k=3)
    assert ids(found)[0] == "redis"
    assert set(ids(found)[1:]) == {"auth", "disk"}


def test_an_entity_may_be_named_by_whoever_rewrote_the_query(
    graph: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    found = layers["graph"].search(ask("what about it?", "Kafka"), scope=EVERYBODY, k=1)
    assert ids(found) == ["kafka"]


def test_an_edge_that_is_gone_is_not_followed(
    graph: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    graph.delete("graph", ["auth"], EVERYBODY)
    found = layers["graph"].search(ask("web app"), scope=EVERYBODY, k=5)
    reached = [one for one in found if one.score is not None and one.score > 0.1]
    assert ids(reached) == ["app"]


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
    reached = [one for one in found if one.score is not None and one.score > 0.1]
    assert ids(reached) == ["alpha"]


def test_a_relation_may_name_its_own_source(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    attributes = {"relations": ("Anna -> leads -> Payments",)}
    store.save([item("org", "from the chart", layer="graph", attributes=attributes)])
    store.save([item("other", "Anna likes tea", layer="graph")])
    found = layers["graph"].search(ask("Who leads Payments?"), scope=EVERYBODY, k=1)
    assert ids(found) == ["org"]


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
        ("What is due this week?", ["friday"]),
        ("Which tasks are done?", ["paid"]),
        ("What still needs to be done?", ["late", "friday", "june", "someday"]),
        ("What must be done this week?", ["friday"]),
        ("What should be finished this week?", ["friday"]),
        ("What isn't done yet?", ["late", "friday", "june", "someday"]),
        ("What has not been done?", ["late", "friday", "june", "someday"]),
        ("What was cancelled?", ["party"]),
        ("What is due in 2019?", []),
    ],
)
def test_tasks_are_told_by_status_and_due_date_soonest_first(
    tasks: MemoryStore, layers: Mapping[str, BlockingLayer], text: str, wanted: list[str]
) -> None:
    assert ids(layers["prospective"].search(ask(text), scope=EVERYBODY, k=5)) == wanted


def test_tasks_about_something_are_those_about_it_soonest_first(
    tasks: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    found = layers["prospective"].search(ask("pending invoice tasks"), scope=EVERYBODY, k=2)
    assert ids(found) == ["friday", "june"]


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
    bound = wilson(won, lost)
    assert 0 <= bound <= (won / (won + lost) if won + lost else 0)
    assert wilson(won + 1, lost) > bound
    assert wilson(won, lost + 1) <= bound


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


def test_coverage_counts_what_each_layer_holds_about_a_subject(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    store.save([item(f"k{n}", f"Kubernetes fact {n}", age=n) for n in range(1, 4)])
    store.save([item("pod", "A Kubernetes pod crashed", layer="episodic", age=9)])
    store.save([item("mine", "Kubernetes secret", scope=Scope(user="bob"))])
    store.save([item("tea", "Tea is at four", age=30)])
    found = layers["meta"].search(ask("What do we know about Kubernetes?"), scope=ADA, k=5)
    assert [(one.type, one.attributes["layer"], one.attributes["items"]) for one in found] == [
        ("coverage", "semantic", 3),
        ("coverage", "episodic", 1),
    ]
    assert found[0].content == "semantic: 3 items about kubernetes, 2024-05-12 to 2024-05-14"


def test_coverage_of_everything_tells_the_commonest_tags(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    store.save([item(f"a{n}", f"fact {n}", tags=("auth",)) for n in range(3)])
    store.save([item("b", "another", tags=("auth", "Web")), item("c", "last", tags=("web",))])
    store.delete("semantic", ["a0"], EVERYBODY)
    (one,) = layers["meta"].search(ask("What do you know?"), scope=EVERYBODY, k=5)
    assert one.content.endswith("tags: auth (3), web (2)")
    assert one.attributes["items"] == 4


def test_a_subject_that_nothing_is_known_about_is_a_gap(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    store.save([item("tea", "Tea is at four")])
    (one,) = layers["meta"].search(ask("What do we know about Kubernetes?"), scope=ADA, k=5)
    assert (one.type, one.attributes["gap"]) == ("coverage", True)
    assert one.content == "Nothing is remembered about kubernetes."
    assert one.created == NOW


@pytest.mark.parametrize("name", ["user", "project"])
def test_who_asks_as_nobody_is_told_nothing_of_a_user_or_project(
    store: MemoryStore, layers: Mapping[str, BlockingLayer], name: str
) -> None:
    store.save([item("a", "tabs, never spaces", layer=name, scope=ADA)])
    asking = {"user": Scope(project="engine"), "project": Scope(user="ada")}[name]
    query = ask("tabs or spaces?")
    assert ids(layers[name].search(query, scope=asking, k=5)) == []
    assert ids(layers[name].search(query, scope=ADA, k=5)) == ["a"]
