"""A background of common requests, which shows whether a cosine to a skill is high or only usual.

A cosine of .5 to a skill means much for a rare request, and little for a common one. So each
request is also compared with some 1,800 requests that people make to assistants: about home,
travel, money, health, offices, software, small talk. They are in ``background.txt`` and were
written for this purpose; none is in a data set of the benchmarks. A request that is nearer to one
of them than to any text of the best skill probably wants something else.

A skill may serve some of these requests itself. Such a request is then as near to the skill's own
examples, so little is lost. To leave out the requests that a catalog serves gained next to nothing,
and would have to be computed for each catalog.

Cosines differ between encoders, and the decision was fitted with two encoders only. So only these
two have a background. Its vectors are computed once, which takes MiniLM some four seconds, and kept
in the encoder's store.
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
MAX_SHARE_OF_FOREIGN: Final = 0.25
"""A text counts as not English where at most this share of its words is in the background. A German
or Spanish request has one or two such words, as "an" or "me". Of 6,320 English requests for real
skills, tools and intents, 40 have as few."""
MIN_WORDS: Final = 3
"""The language of fewer words is unknown, unless they have letters outside ASCII."""


class BackgroundComparison(NamedTuple):
    """How much nearer a request is to the best skill than to other texts, in cosine. A skill's
    nearest text is its own text or an example.

    Attributes:
        special: the cosine of the best skill's nearest text, minus that of the nearest request of
            the background.
        clear: the same, minus the largest cosine of any request of the background and any text of
            another skill that is scored in full (``FULLY_SCORED``).
    """

    special: float
    clear: float


class Background:
    """The vectors of the background of one encoder. Immutable."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        """``vectors`` are those of its requests, of unit length, one row each."""
        self._vectors = vectors

    @classmethod
    def of(
        cls,
        encoder: Encoder,
        store: VectorStore,
        progress: Callable[[int, int], None] | None = None,
    ) -> Background | None:
        """The background of an encoder; None where the encoder has none.

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
        """The largest cosine of a vector to a request of the background."""
        # ``vecdot`` uses one thread. The threads of BLAS would wait for each other on busy cores.
        return float(np.vecdot(self._vectors, vector).max())

    def compare(
        self, vector: NDArray[np.float32], closest: NDArray[np.float64], best: int
    ) -> BackgroundComparison:
        """Compare a request, given by its vector, with the background and the skills.

        Args:
            closest: the cosine of each skill's nearest text.
            best: the place of the best skill among them.
        """
        nearest = self.nearest(vector)
        others = max(closest[:best].max(initial=nearest), closest[best + 1 :].max(initial=nearest))
        own = closest[best]
        return BackgroundComparison(float(own) - nearest, float(own - others))


def requests() -> list[str]:
    """The requests of the background."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def is_foreign(words: Sequence[str]) -> bool:
    """Whether a text has hardly any word of the background, and so is probably not English. The
    language of one or two words, such as "thx" or a name, and of numbers alone is unknown; then the
    answer is False."""
    if all(word.isdigit() for word in words):
        return False
    if len(words) < MIN_WORDS and all(word.isascii() for word in words):
        return False
    return sum(word in _background_words() for word in words) <= MAX_SHARE_OF_FOREIGN * len(words)


@cache
def _background_words() -> frozenset[str]:
    return frozenset(tokens("\n".join(requests())))
