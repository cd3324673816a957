"""The vectors that a router works with: looked up, or encoded and kept.

Vectors come, quickest first, from the machine's own file, from a shared cache where there is one
(Chroma, embedded or on a server), and else from the encoder. What was encoded is in the file at
once. The shared cache is written later, by ``save``, because Chroma stops every thread
while it writes. What one process could not share, because another one has Chroma's folder or the
server is away, is in the file and is shared by the next.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.errors import StoreError
from router.retrieval.documents import SkillDocument, analysis_key
from router.retrieval.embedding_cache import EmbeddingCache
from router.retrieval.embedding_file import EmbeddingFile
from router.retrieval.encoders import checked, unit
from router.skills.manifest import SkillManifest

_log: Final = logging.getLogger(__name__)

FILE: Final = "embeddings.sqlite3"
ENCODING_BATCH: Final = 64
"""Texts encoded at a time. Progress is told for each batch."""
WORTH_KEEPING: Final = 8
"""From this many skills on, their analyses are kept."""


def embeddings_folder(state_dir: Path) -> Path:
    """Where a router keeps its vectors, and Chroma's beside them."""
    return state_dir / "embeddings"


class VectorStore:
    """The vectors of one encoder. Threads may share it; closed once.

    Attributes:
        identity: the encoder's.
    """

    def __init__(
        self, directory: Path, *, identity: str, shared: EmbeddingCache | None = None
    ) -> None:
        """Open or create the file in a folder, which any number of processes may have open. Where
        it cannot be used, the vectors are kept in memory, with a warning.

        Args:
            shared: where others may have put vectors, and may find ours; worth it where encoding
                costs more than asking. The store closes it.
        """
        self.identity = identity
        self._file = EmbeddingFile(directory / FILE)
        self._shared = shared
        self._turn = threading.Lock()
        self._has_new = False
        self._has_warned = False
        self._closed = False
        self.reopen = self._file.reopen

    @property
    def fault(self) -> str:
        """Why the vectors are kept in memory, until ``reopen``; empty where the file has them."""
        return self._file.fault

    def vectors(
        self,
        keys: Sequence[str],
        encode: Callable[[Sequence[int]], NDArray[np.float32]],
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[NDArray[np.float32], int]:
        """The vectors of texts, in order, scaled to unit length.

        Args:
            keys: for each text the digest of all that its vector depends on but the encoder.
            encode: the vectors of the texts at these places, one row each.
            progress: called with (done, total) texts to encode.

        Returns:
            The vectors, of shape (texts, dimensions), and how many different ones were encoded.

        Raises:
            EncoderError: raised by ``encode``, or what it gave are no vectors; what was encoded
                before is kept.
        """
        if not keys:
            return np.zeros((0, 0), dtype=np.float32), 0
        with self._turn:
            places = {key: place for place, key in enumerate(keys)}
            found = self._looked_up(list(places))
            missing = [key for key in places if key not in found]
            for start in range(0, len(missing), ENCODING_BATCH):
                batch = missing[start : start + ENCODING_BATCH]
                rows = checked(encode([places[key] for key in batch]), len(batch), self.identity)
                new = dict(zip(batch, rows, strict=True))
                self._keep(new, self.identity)
                self._has_new = True
                found |= new
                if progress is not None:
                    progress(start + len(batch), len(missing))
            if len({len(vector) for vector in found.values()}) > 1:
                # Another model has taken the name of the one that made what was kept.
                missing = list(dict.fromkeys(keys))
                rows = encode([keys.index(key) for key in missing])
                rows = checked(rows, len(missing), self.identity)
                found = dict(zip(missing, rows, strict=True))
                self._keep(found, self.identity)
        return unit(np.stack([found[key] for key in keys])), len(missing)

    def table(
        self, key: str, count: int, encode: Callable[[], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """The vectors of texts that are always wanted together, scaled to unit length.

        They are kept as one row, which is found in a fifth of the time that looking each of them
        up takes. A shared cache holds vectors of one dimension, so this row stays here.

        Args:
            key: digest of the texts.
            count: of the texts.
            encode: the vectors of all of them, one row each.

        Raises:
            EncoderError: raised by ``encode``, or what it gave are no vectors.
        """
        name = f"tables of {self.identity}"  # what is filed under the identity itself is shared
        with self._turn:
            kept = self._found(name, [key]).get(key)
            if kept is None or len(kept) % count:
                kept = checked(encode(), count, self.identity).reshape(-1)
                self._keep({key: kept}, name)
        return unit(kept.reshape(count, -1))

    def documents(
        self, skills: Sequence[SkillManifest], *, removed: bool = False
    ) -> list[SkillDocument]:
        """The documents of skills, in order. Those of many are read from the file, where they are
        kept once they are made, and so are those that are ``removed``: finding one costs a quarter
        of making it. Few others are new, and looking for them would be in vain."""
        if not skills or (len(skills) < WORTH_KEEPING and not removed):
            return [SkillDocument.of(skill) for skill in skills]
        keys = [analysis_key(skill) for skill in skills]
        try:
            kept = self._file.analyses(keys)
        except StoreError as error:
            _log.warning("skills are analysed again: %s", error)
            kept = {}
        made: dict[str, bytes] = {}
        documents = []
        for key, skill in zip(keys, skills, strict=True):
            try:
                document = SkillDocument.of(skill, kept=kept.get(key))
            except ValueError:  # damaged
                document = SkillDocument.of(skill)
                kept.pop(key)
            if key not in kept:
                made[key] = document.analysis
            documents.append(document)
        try:
            if made and not removed:
                self._file.keep_analyses(made)
        except StoreError as error:
            _log.warning("skills are analysed anew at the next start: %s", error)
        return documents

    def save(self) -> None:
        """Share what is not shared yet. Where that cannot be done now, because the shared cache
        cannot be written or another process has its folder, it is tried again next time."""
        if self._shared is None or not self._has_new:
            return
        try:
            unshared = self._file.unshared(self.identity, self._shared.name)
            if unshared:
                self._shared.put(self.identity, unshared)
                self._file.note_shared(self.identity, unshared, self._shared.name)
            self._has_new = False
        except StoreError as error:
            _log.warning("vectors are not shared yet: %s", error)

    def close(self) -> None:
        """Save and close. Closing twice is fine."""
        if self._closed:
            return
        self._closed = True
        self.save()
        if self._shared is not None:
            self._shared.close()
        self._file.close()

    def _looked_up(self, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """What the file and the shared cache hold. A cache that fails costs encoding, no more."""
        if not keys:
            return {}
        found = self._found(self.identity, keys)
        missing = [key for key in keys if key not in found]
        if missing and self._shared is not None:
            try:
                others = _usable(self._shared.get(self.identity, missing))
            except StoreError as error:
                _log.warning("encoding what may be shared: %s", error)
            else:
                self._keep(others, self.identity)
                found |= others
        return found

    def _found(self, name: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """What the file holds under a name."""
        try:
            return _usable(self._file.get(name, keys))
        except StoreError as error:
            _log.warning("encoding again: %s", error)
            return {}

    def _keep(self, vectors: dict[str, NDArray[np.float32]], name: str) -> None:
        try:
            if vectors:
                self._file.put(name, vectors)
        except StoreError as error:
            if not self._has_warned:  # a full disk refuses every batch
                _log.warning("vectors are made anew at the next start: %s", error)
            self._has_warned = True


def _usable(vectors: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    """Without vectors that hold a value that is not a number."""
    return {key: vector for key, vector in vectors.items() if np.isfinite(vector).all()}
