"""The vectors of texts, so that none is encoded twice in a while."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from router.retrieval.encoders import Encoder, checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TEXTS: Final = 4_096
"""Vectors that are kept: 1 KB each with the bundled encoder, and their texts, which are queries
and texts of one chunk."""


class TextVectors:
    """The vectors that one encoder makes of texts; the latest are kept. As safe in threads as the
    encoder."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.encoder = encoder.identity
        self._kept: LRUCache[str, NDArray[np.float32]] = LRUCache(MAX_TEXTS)
        self._lock = threading.Lock()

    def __contains__(self, text: str) -> bool:
        """Whether the vector of a text is kept."""
        with self._lock:
            return text in self._kept

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, one a row.

        Raises:
            EncoderError: the encoder cannot be reached or gave unusable vectors.
        """
        import numpy as np

        with self._lock:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        new = list(dict.fromkeys(text for text in texts if text not in known))
        if new:
            rows = checked(self._encoder.encode(new), len(new), self._encoder.identity)
            known |= zip(new, rows, strict=True)
            self.keep((text, known[text]) for text in new)
        return np.stack([known[text] for text in texts])

    def keep(self, vectors: Iterable[tuple[str, NDArray[np.float32]]]) -> None:
        """Take over vectors that this encoder made of texts before, such as stored ones."""
        with self._lock:
            self._kept.update(vectors)
