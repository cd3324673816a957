"""The vector index: one vector a skill in an embedded, persistent Chroma collection.

Each row carries the digest of what it was encoded from, so that opening the index again encodes
only what changed, after a crash as well. The collection carries the encoder's identity; vectors of
another encoder are dropped. Only installed skills are kept in it: filtering inside Chroma costs
more than the search itself.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, cast

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from router.errors import StoreError

if TYPE_CHECKING:
    from chromadb.api.client import Client

_log: Final = logging.getLogger(__name__)

COLLECTION: Final = "skills"

ENCODING_BATCH: Final = 64
"""Skills encoded and stored at a time; progress is told, and a crash loses, at most this many."""


class VectorStore:
    """Vectors of the installed skills. Used by one thread at a time, closed once."""

    def __init__(
        self, client: Client, identity: str, lock: FileLock | None, temporary: Path | None
    ) -> None:
        self._client = client
        self._lock = lock
        self._temporary = temporary
        self._collection = client.get_or_create_collection(
            COLLECTION,
            configuration={"hnsw": {"space": "cosine"}},  # Chroma's default is squared L2
            metadata={"identity": identity},
            embedding_function=None,
        )
        if (self._collection.metadata or {}).get("identity") != identity:
            client.delete_collection(COLLECTION)
            self._collection = client.create_collection(
                COLLECTION,
                configuration={"hnsw": {"space": "cosine"}},
                metadata={"identity": identity},
                embedding_function=None,
            )
        rows = self._collection.get(include=["metadatas"])
        metadatas = rows["metadatas"] or []
        self._digests: dict[str, str] = {
            name: str((metadata or {}).get("digest", ""))
            for name, metadata in zip(rows["ids"], metadatas, strict=True)
        }

    @classmethod
    def open(cls, directory: Path, *, identity: str) -> Self:
        """Open or create the index in a folder.

        Two processes cannot share an embedded Chroma, so the second one works on a temporary index
        of its own. An index that cannot be read is only a copy of what the encoder can compute
        again: it is replaced, with a warning.

        Raises:
            StoreError: the folder cannot be created or written.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = FileLock(directory / "lock")
            try:
                lock.acquire(blocking=False)
            except Timeout:
                return cls._open_temporary(identity)
        except OSError as error:
            raise StoreError(f"cannot use the index folder {directory}: {error}") from error
        place = directory / "chroma"
        try:
            return cls(_client(place), identity, lock, None)
        except Exception as error:  # noqa: BLE001 - Chroma has no error type for damaged files
            _log.warning("rebuilding the vector index in %s: %s", place, error)
        try:
            shutil.rmtree(place)
            return cls(_client(place), identity, lock, None)
        except Exception as error:
            lock.release()
            raise StoreError(f"cannot create the vector index in {place}: {error}") from error

    @classmethod
    def _open_temporary(cls, identity: str) -> Self:
        place = Path(tempfile.mkdtemp(prefix="cascade-router-"))
        return cls(_client(place), identity, None, place)

    def sync(
        self,
        wanted: Mapping[str, str],
        encode: Callable[[Sequence[str]], NDArray[np.float32]],
        progress: Callable[[int, int], None] | None = None,
    ) -> int:
        """Make the index hold exactly the wanted names, each at its wanted digest.

        Args:
            wanted: name to digest.
            encode: names to their vectors, one row each.
            progress: called with (done, total) rows to encode.

        Returns:
            How many were encoded.

        Raises:
            EncoderError: raised by ``encode``; what was stored before it stays.
        """
        gone = [name for name in self._digests if name not in wanted]
        if gone:
            self._collection.delete(ids=gone)
            for name in gone:
                del self._digests[name]
        stale = [name for name, digest in wanted.items() if self._digests.get(name) != digest]
        for start in range(0, len(stale), ENCODING_BATCH):
            names = stale[start : start + ENCODING_BATCH]
            self._collection.upsert(
                ids=names,
                embeddings=np.asarray(encode(names), dtype=np.float32),
                metadatas=[{"digest": wanted[name]} for name in names],
            )
            self._digests.update((name, wanted[name]) for name in names)
            if progress is not None:
                progress(start + len(names), len(stale))
        return len(stale)

    def nearest(
        self,
        vector: NDArray[np.float32],
        *,
        limit: int,
        among: Collection[str] | None = None,
    ) -> list[tuple[str, float]]:
        """The names nearest to a unit vector with their cosine similarity, best first.

        ``among`` restricts the search itself, not its outcome: the best ``limit`` of those names.
        """
        # Chroma fails on an id that it does not hold.
        ids = None if among is None else [name for name in among if name in self._digests]
        limit = min(limit, len(self._digests) if ids is None else len(ids))
        if limit == 0:
            return []
        found = self._collection.query(
            query_embeddings=vector[np.newaxis], ids=ids, n_results=limit, include=["distances"]
        )
        distances = found["distances"] or [[]]
        return [
            (name, 1.0 - distance)
            for name, distance in zip(found["ids"][0], distances[0], strict=True)
        ]

    def close(self) -> None:
        """Close the files and let another process have the folder."""
        self._client.close()
        if self._lock is not None:
            self._lock.release()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _client(place: Path) -> Client:
    import chromadb  # 1 s to import
    from chromadb.config import Settings

    client = chromadb.PersistentClient(place, settings=Settings(anonymized_telemetry=False))
    return cast("Client", client)  # declared as its interface, which lacks close()
