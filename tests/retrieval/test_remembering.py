"""The encoder that remembers: the same vectors, and each text is encoded once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cascade import SHIPPED, CountingEncoder, router_over
from numpy.typing import NDArray

from router.retrieval.remembering import LONGEST, RememberingEncoder


def test_a_text_that_comes_again_is_not_encoded_again() -> None:
    counting = CountingEncoder()
    encoder = RememberingEncoder(counting)
    first = encoder.encode(["squash the last four commits"])
    again = encoder.encode(["squash the last four commits"])
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, CountingEncoder().encode(["squash the last four commits"]))
    assert counting.batches == [1]


def test_batches_and_long_texts_are_passed_on() -> None:
    counting = CountingEncoder()
    encoder = RememberingEncoder(counting)
    for texts in (["one", "two"], ["x" * (LONGEST + 1)]):
        for _ in range(2):
            assert len(encoder.encode(texts)) == len(texts)
    assert counting.batches == [2, 2, 1, 1]
    assert (encoder.identity, encoder.static) == (counting.identity, counting.static)


class Lengths:
    """An encoder that takes next to no time, so that threads meet in what remembers."""

    identity = "lengths"
    static = True

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return self.encode([head for head, _ in documents])


def test_threads_may_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The skills are indexed, and what was learnt is fitted, while requests are routed."""
    monkeypatch.setattr("router.retrieval.remembering.REMEMBERED", 2)
    encoder = RememberingEncoder(Lengths())

    def ask(first: int) -> bool:
        lengths = [1 + (first + number * number) % 5 for number in range(20_000)]
        return all(encoder.encode(["x" * length])[0, 0] == length for length in lengths)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(ask, range(4)))
    finally:
        sys.setswitchinterval(interval)


async def test_a_request_is_encoded_once_for_skills_and_memory(tmp_path: Path) -> None:
    class Bundled(CountingEncoder):
        identity = "bundled/1"  # memory's classifier works with no other

    encoder = Bundled()
    async with router_over(SHIPPED, tmp_path, encoder=encoder) as router:
        await router.route("warm up the kettle")
        encoder.batches.clear()
        result = await router.route("what did we decide about the database")
        assert result.memory_layers
    assert encoder.batches == [1]
