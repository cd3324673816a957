"""The built-in layers over the store of a test."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from router.memory.layers import built_in_layers
from router.memory.model import BlockingLayer
from router.memory.stores.memory_store import MemoryStore


@pytest.fixture
def layers(store: MemoryStore) -> Mapping[str, BlockingLayer]:
    """Each layer by its name."""
    return {layer.spec.name: layer for layer in built_in_layers(store)}
