"""The eleven layers, each with what it says of itself."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from memory.remembered import ask, ids, item

from router.memory.layers import built_in_layers
from router.memory.model import BlockingLayer, Scope
from router.memory.stores.memory_store import MemoryStore
from router.result import MEMORY_LAYERS

ADA = Scope(user="ada", project="engine")


def test_there_are_eleven_and_each_says_what_it_is(store: MemoryStore) -> None:
    layers = built_in_layers(store)
    assert tuple(layer.spec.name for layer in layers) == MEMORY_LAYERS
    assert len(MEMORY_LAYERS) == 11
    assert all(layer.spec.description for layer in layers)
    assert {layer.spec.name: layer.spec.quality for layer in layers}["episodic"] == 0.85
    assert {layer.spec.name: layer.spec.quality for layer in layers}["semantic"] == 0.80


@pytest.mark.parametrize("name", ["user", "project"])
def test_who_asks_as_nobody_is_told_nothing_of_a_user_or_project(
    store: MemoryStore, layers: Mapping[str, BlockingLayer], name: str
) -> None:
    store.save([item("a", "tabs, never spaces", layer=name, scope=ADA)])
    asking = {"user": Scope(project="engine"), "project": Scope(user="ada")}[name]
    query = ask("tabs or spaces?")
    assert ids(layers[name].search(query, scope=asking, k=5)) == []
    assert ids(layers[name].search(query, scope=ADA, k=5)) == ["a"]
