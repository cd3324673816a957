"""A cache of the vectors of texts, so that the same text is not encoded again soon.

An encoder may fail on one text, for example because it is too long for the model, and then gives no
vectors for the rest of the batch either. Such a batch is halved until the text is found. That is
given up if it takes long, because an encoder that hangs would be waited for several times.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from router.errors import EncoderError
from router.retrieval.encoders import Encoder, checked

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log: Final = logging.getLogger(__name__)

PROBE: Final = "memory"
"""A text that every encoder can encode. An encoder that fails on it is down."""
PATIENCE_SECONDS: Final = 20.0
"""How long to look for the text that the encoder fails on; an encoder that hangs takes longer."""
MAX_TEXTS: Final = 4_096
"""Vectors in the cache: 1 KB each with the bundled encoder, and their texts, which are queries and
texts of at most one chunk."""


class TextVectors:
    """The vectors of texts by one encoder; the latest are cached. Threads may share it if they may
    share the encoder. ``width`` is the number of dimensions; 0 before the first vector. It changes
    if another model gets the name of the encoder's model."""

    def __init__(
        self, encoder: Encoder, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._encoder = encoder
        self.identity = encoder.identity
        self.width = 0
        self._monotonic = monotonic
        self._kept: LRUCache[str, NDArray[np.float32]] = LRUCache(MAX_TEXTS)
        self._lock = threading.Lock()

    def __contains__(self, text: str) -> bool:
        """Whether the vector of a text is kept."""
        with self._lock:
            return text in self._kept

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of texts, one a row; zeros for a text that the encoder always fails on.

        Raises:
            EncoderError: the encoder cannot be reached or gave unusable vectors.
        """
        import numpy as np

        with self._lock:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        new = list(dict.fromkeys(text for text in texts if text not in known))
        if new:
            made = dict(zip(new, self.made(new), strict=True))
            if any(len(vector) != self.width for vector in known.values()):
                return self.of(texts)  # the cached ones are of an earlier model
            nothing = np.zeros(self.width, dtype=np.float32)
            known |= {text: nothing if row is None else row for text, row in made.items()}
            self.keep((text, known[text]) for text in new)
        return np.stack([known[text] for text in texts])

    def made(
        self, texts: Sequence[str], until: float | None = None
    ) -> list[NDArray[np.float32] | None]:
        """Vectors that the encoder makes now; None for a text that it fails on twice, alone. Raises
        EncoderError if it fails on every text, or if the time ``until`` is over."""
        until = self._monotonic() + PATIENCE_SECONDS if until is None else until
        try:
            return [*self._encoded(texts)]
        except EncoderError:
            if self._monotonic() > until:
                raise
        self._encoded([PROBE])
        if len(texts) > 1:
            half = len(texts) // 2
            return [*self.made(texts[:half], until), *self.made(texts[half:], until)]
        try:
            return [*self._encoded(texts)]
        except EncoderError as error:
            _log.warning("a text is found by its words only: %s", error)
            return [None]

    def keep(self, vectors: Iterable[tuple[str, NDArray[np.float32]]]) -> None:
        """Put vectors into the cache that this encoder made before, such as stored ones."""
        with self._lock:
            width = self.width
            self._kept.update(
                (text, one) for text, one in vectors if len(one) == width or not width
            )

    def _encoded(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = checked(self._encoder.encode(texts), len(texts), self.identity)
        with self._lock:
            if rows.shape[1] != self.width:
                self._kept.clear()
                self.width = rows.shape[1]
        return rows
