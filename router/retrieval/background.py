"""Requests that people make to assistants in general, as a measure of what a cosine is worth.

A cosine of .5 to a skill says much of a rare request, and little of a common one. So each request
is compared with some 1,800 requests of all kinds too: of home, travel, money, health, offices,
developers, small talk. They are in ``background.txt`` and were written for this; none stands in a
data set of the benchmarks. A request that is nearer to one of them than to all texts of the best
skill rather wants something else.

A skill may well serve some of these requests. Whoever asks for that is as near to the skill's own
examples, and loses little: leaving out what a catalog serves itself gained next to nothing, and it
would have to be computed for each catalog.

What is near for one encoder is far for another, and the decision was fitted with two encoders only.
So only these have a background. The vectors are made once, which takes MiniLM some four seconds,
and kept in the encoder's store.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from router.retrieval import onnx_encoder
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.encoders import Encoder
from router.retrieval.vectors import ENCODING_BATCH, VectorStore
from router.text import tokens

_FILE: Final = Path(__file__).with_name("background.txt")
ENCODERS: Final = (BundledEncoder.identity, onnx_encoder.MINILM)
"""The identities of the encoders that have a background."""
FOREIGN: Final = 0.25
"""A text counts as being in a foreign language when no more than this share of its words stand in
the background. A German or Spanish request has one or two of them, such as "an" or "me". Of 6,320
English requests for real skills, tools and intents, 40 have as few."""
LEAST_WORDS: Final = 3
"""Fewer words, in ASCII letters, do not tell their language."""


class Compared(NamedTuple):
    """A request beside the background and the texts of the skills. A skill's
    nearest text is its own or an example, whichever has the larger cosine.

    Attributes:
        special: by how much the best skill's nearest text is nearer than the nearest request of
            the background.
        clear: by how much it is nearer than that, and than the nearest text of any other skill that
            is scored in full (``BY_SCORE``).
    """

    special: float
    clear: float


class Background:
    """The vectors of the background of one encoder. Immutable."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        """From the vectors of its requests, of unit length, one row each."""
        self._vectors = vectors

    @classmethod
    def of(
        cls,
        encoder: Encoder,
        store: VectorStore,
        progress: Callable[[int, int], None] | None = None,
    ) -> Background | None:
        """The background of an encoder; None where it has none.

        Args:
            progress: called with (done, total) requests to encode.

        Raises:
            EncoderError: it cannot be encoded.
        """
        if encoder.identity not in ENCODERS:
            return None
        texts = requests()

        def encoded() -> NDArray[np.float32]:
            rows = []
            for start in range(0, len(texts), ENCODING_BATCH):
                rows.append(encoder.encode(texts[start : start + ENCODING_BATCH]))
                if progress is not None:
                    progress(min(start + ENCODING_BATCH, len(texts)), len(texts))
            return np.concatenate(rows)

        digest = hashlib.sha256(_FILE.read_bytes()).hexdigest()
        return cls(store.table(f"background/{digest}", len(texts), encoded))

    def nearest(self, vector: NDArray[np.float32]) -> float:
        """The largest cosine of a text, by its vector, to one of the requests."""
        # One thread: those of BLAS wait for each other when other work wants the cores.
        return float(np.vecdot(self._vectors, vector).max())

    def compared(
        self, vector: NDArray[np.float32], closest: NDArray[np.float64], best: int
    ) -> Compared:
        """A request, by its vector, beside the background and the texts of skills.

        Args:
            closest: the cosine of the nearest text of each skill.
            best: the place of the best skill among them.
        """
        nearest = self.nearest(vector)
        others = max(closest[:best].max(initial=nearest), closest[best + 1 :].max(initial=nearest))
        own = closest[best]
        return Compared(float(own) - nearest, float(own - others))


def requests() -> list[str]:
    """The requests of the background."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def is_foreign(spoken: Sequence[str]) -> bool:
    """Whether the words of a text are hardly any that people use in English. One or two words, such
    as "thx" or a name, do not tell, and neither do signs and numbers alone."""
    if all(word.isdigit() for word in spoken):
        return False
    if len(spoken) < LEAST_WORDS and all(word.isascii() for word in spoken):
        return False
    return sum(word in _words() for word in spoken) <= FOREIGN * len(spoken)


@cache
def _words() -> frozenset[str]:
    return frozenset(tokens("\n".join(requests())))
