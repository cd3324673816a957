"""What people ask assistants for in general, so that a request can be told from that.

A cosine of .5 to a skill says much of a rare request, and little of a common one. So each request
is compared with some 1,800 requests of all kinds too: of home, travel, money, health, offices,
developers, small talk. They are in ``background.txt`` and were written for this. None was taken
from a data set, but what everybody says, such as "why is the sky blue", stands in some of them too.
Two signals come of it: how near the nearest of them is, because a request that is nearer to it than
to all that the best skill is known by rather wants something else; and how common the request is,
which says how high the cosines of such requests are by nature.

A skill may well serve some of these requests. Whoever asks for that is as near to the skill's own
examples, and loses little: leaving out what a catalog serves itself gained next to nothing, and it
would have to be computed for each catalog.

The vectors are made once for an encoder and kept in its store. Only static encoders have them: a
transformer would need seconds for them at its first start.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from router.retrieval.encoders import Encoder
from router.retrieval.vectors import VectorStore

_FILE: Final = Path(__file__).with_name("background.txt")
LEAST_SPREAD: Final = 1e-3
"""Of an encoder that gives all requests one vector none is more common than another."""


class Background:
    """The vectors of the background of one encoder. Immutable."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        """From the vectors of its requests, of unit length, one row each."""
        self._vectors = vectors
        self._middle = vectors.mean(axis=0)
        means = vectors @ self._middle
        self._mean = means.mean()
        self._spread = max(means.std(), np.float32(LEAST_SPREAD))

    @classmethod
    def of(cls, encoder: Encoder, store: VectorStore) -> Background | None:
        """The background of an encoder, which every index over one store shares; None where the
        encoder is not static.

        Raises:
            EncoderError: it cannot be encoded.
        """
        if not encoder.static:
            return None
        if store not in _OF_STORES:
            _OF_STORES[store] = cls(_encoded(encoder, store))
        return _OF_STORES[store]

    def compared(self, vector: NDArray[np.float32]) -> tuple[float, float]:
        """A text, by its vector, beside the background: the largest cosine to one of its requests,
        and the mean cosine to them, in standard deviations of what they have themselves."""
        # One thread: those of BLAS wait for each other when other work wants the cores.
        nearest = np.vecdot(self._vectors, vector).max()
        return float(nearest), float((self._middle @ vector - self._mean) / self._spread)


_OF_STORES: Final[WeakKeyDictionary[VectorStore, Background]] = WeakKeyDictionary()


def requests() -> list[str]:
    """The requests of the background."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _encoded(encoder: Encoder, store: VectorStore) -> NDArray[np.float32]:
    texts = requests()
    # A model that has taken the name of another one may give longer vectors, or shorter ones.
    width = np.shape(encoder.encode(texts[:1]))[-1]
    digest = hashlib.sha256(_FILE.read_bytes()).hexdigest()
    return store.table(f"background/{width}/{digest}", len(texts), lambda: encoder.encode(texts))
