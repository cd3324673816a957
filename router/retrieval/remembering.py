"""An encoder that remembers the latest texts: skills and memory layers are chosen for one request,
and its text is encoded once for both."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from router.retrieval.encoders import Encoder

REMEMBERED: Final = 256
LONGEST: Final = 2_000
"""Texts of more characters are not remembered."""


class RememberingEncoder:
    """Another encoder's vectors. As safe in threads as that encoder: skills are indexed, and what
    was learnt is fitted, while requests are routed."""

    def __init__(self, encoder: Encoder) -> None:
        """``encoder`` is asked for what is not remembered."""
        self._encoder = encoder
        self.identity = encoder.identity
        self.static = encoder.static
        self._vectors: LRUCache[str, NDArray[np.float32]] = LRUCache(REMEMBERED)
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(texts) != 1 or len(texts[0]) > LONGEST:
            return self._encoder.encode(texts)
        with self._lock:
            vector = self._vectors.get(texts[0])
        if vector is None:
            vector = self._encoder.encode(texts)[0]
            with self._lock:
                self._vectors[texts[0]] = vector
        return vector[None, :]

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return self._encoder.encode_documents(documents)
