"""The vectors of texts, of which none is made twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from clock import Clock
from memory.remembered import item
from numpy.typing import NDArray

from router.errors import EncoderError
from router.memory.model import Scope
from router.memory.stores.memory_store import MemoryStore
from router.memory.texts.text_vectors import TextVectors
from router.retrieval.bundled_encoder import BundledEncoder


class Counting(BundledEncoder):
    """Notes what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return super().encode(texts)


def test_each_text_is_encoded_once_and_the_order_is_that_of_the_texts() -> None:
    encoder = Counting()
    vectors = TextVectors(encoder)
    there = vectors.of(["one", "two", "one"])
    back = vectors.of(["two", "one"])
    assert encoder.asked == ["one", "two"]
    assert np.array_equal(there[[1, 2]], back)


def test_what_a_store_has_found_is_not_encoded_again_to_be_judged(tmp_path: Path) -> None:
    encoder = Counting()
    first = MemoryStore.open(tmp_path, encoder=encoder)
    first.save([item("a", "the timeout is 250 ms")])
    first.close()
    store = MemoryStore.open(tmp_path, encoder=encoder)
    (found,) = store.search("semantic", "which timeout?", scope=Scope(), k=5)
    encoder.asked.clear()
    vector = store.text_vectors.of([found.content])
    store.close()
    assert encoder.asked == []
    assert np.allclose(vector, BundledEncoder().encode([found.content]), atol=1e-6)


def test_the_vector_of_a_long_text_is_not_kept_because_its_parts_are_judged(tmp_path: Path) -> None:
    store = MemoryStore.open(tmp_path, encoder=BundledEncoder())
    store.save([item("a", "the timeout is 250 ms. " * 100)])
    (found,) = store.search("semantic", "which timeout?", scope=Scope(), k=5)
    assert found.content not in store.text_vectors
    store.close()


def test_an_encoder_that_hangs_is_waited_for_once() -> None:
    clock = Clock()

    class Hanging(Counting):
        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            self.asked += texts
            clock.now += 30
            raise EncoderError("timed out")

    encoder = Hanging()
    with pytest.raises(EncoderError, match="timed out"):
        TextVectors(encoder, monotonic=clock).of(["one", "two"])
    assert encoder.asked == ["one", "two"]


def test_a_text_that_an_encoder_fails_on_once_has_its_vector() -> None:
    class Dropping(Counting):
        """Drops its first connection."""

        def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
            self.asked += texts
            if len(self.asked) == 1:
                raise EncoderError("connection reset")
            return super().encode(texts)

    assert TextVectors(Dropping()).of(["redis timeout"])[0].any()
