"""The eleven layers that are there without being plugged in, all over one store."""

from __future__ import annotations

from typing import Final

from router.memory.layers import specs
from router.memory.layers.base import OwnedLayer, StoredLayer
from router.memory.layers.governance import GovernanceLayer
from router.memory.layers.graph import GraphLayer
from router.memory.layers.meta import MetaLayer
from router.memory.layers.procedural import ProceduralLayer
from router.memory.layers.prospective import ProspectiveLayer
from router.memory.layers.timed import TimedLayer
from router.memory.model import BlockingLayer
from router.memory.stores.memory_store import MemoryStore
from router.result import MEMORY_LAYERS

WRITABLE: Final = tuple(name for name in MEMORY_LAYERS if name != specs.META.name)
"""Layers that items can be saved to; ``meta`` only counts what the others hold."""


def built_in_layers(store: MemoryStore) -> tuple[BlockingLayer, ...]:
    """The built-in layers. They keep nothing of their own; closing the store ends them."""
    return (
        TimedLayer(store, specs.SESSION, recency=0.5),
        OwnedLayer(store, specs.PROJECT),
        OwnedLayer(store, specs.USER),
        StoredLayer(store, specs.SEMANTIC),
        GraphLayer(store, specs.GRAPH),
        GovernanceLayer(store, specs.GOVERNANCE),
        TimedLayer(store, specs.EPISODIC, recency=0.01),
        ProceduralLayer(store, specs.PROCEDURAL),
        ProspectiveLayer(store, specs.PROSPECTIVE),
        StoredLayer(store, specs.PLANNING),
        MetaLayer(store, specs.META),
    )
