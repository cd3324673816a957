"""The eleven layers, each with what it says of itself."""

from __future__ import annotations

from router.memory.layers import built_in_layers
from router.memory.model import Scope
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
