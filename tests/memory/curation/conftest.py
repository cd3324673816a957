"""A memory with a model, and one without."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kept_memory import settings_in
from scripted_model import NOW, Scripted

from router.memory.memory import Memory
from router.retrieval.bundled_encoder import BundledEncoder


@pytest.fixture
def model() -> Scripted:
    return Scripted([])


@pytest.fixture
async def memory(tmp_path: Path, encoder: BundledEncoder) -> AsyncIterator[Memory]:
    made = Memory(settings_in(tmp_path), encoder=encoder, clock=NOW.timestamp)
    async with made:
        yield made


@pytest.fixture
async def asking(tmp_path: Path, encoder: BundledEncoder, model: Scripted) -> AsyncIterator[Memory]:
    """A memory that may ask the model."""
    made = Memory(settings_in(tmp_path), encoder=encoder, clock=NOW.timestamp, models=[model])
    async with made:
        yield made
