"""The port of the embedding cache: vectors by encoder and text.

A vector is found by the identity of the encoder that made it and a key, the digest of the text that
it was made from. So several machines, catalogs and encoders can share one cache. Nothing is deleted
because somebody does not know it: a vector goes when nobody has used it for long, or when the cache
grows too large.

``router.retrieval.conformance`` tests an implementation.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = Mapping[str, NDArray[np.float32]]
"""Vectors by key."""

UNUSED_DAYS: Final = 180
"""A vector that nobody has used for so long may be deleted."""
REFRESH_DAYS: Final = 30
"""How old the note of a vector's last use may be before it is written again."""
DAY_SECONDS: Final = 86_400


@runtime_checkable
class EmbeddingCache(Protocol):
    """Keeps vectors. Threads may share it.

    Attributes:
        name: says which cache it is, such as its address; the same for everyone who shares it.
    """

    @property
    def name(self) -> str: ...

    def get(self, encoder: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors that are held of the wanted ones, each as it was put.

        Raises:
            StoreError: the cache cannot be read.
        """
        ...

    def put(self, encoder: str, vectors: Vectors) -> None:
        """Keep vectors, in place of earlier ones of the same keys. They count as used today.

        Args:
            encoder: identity of the encoder.
            vectors: all of one dimension.

        Raises:
            StoreError: the cache cannot be written.
        """
        ...

    def close(self) -> None:
        """Close it. Closing twice is fine."""
        ...


def today() -> int:
    """Days since the epoch."""
    return int(time.time() // DAY_SECONDS)
