"""The layer meta: what is known about a subject, and what is not."""

from __future__ import annotations

from collections.abc import Mapping

from memory.remembered import NOW, ask, item

from router.memory.model import BlockingLayer, Scope
from router.memory.stores.memory_store import MemoryStore

EVERYBODY = Scope()
ADA = Scope(user="ada", project="engine")


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
