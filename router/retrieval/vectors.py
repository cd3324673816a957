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
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

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
    """Vectors of the installed skills.

    One thread may ``sync`` while others ask for the ``nearest``; closed once.
    """

    def __init__(
        self,
        client: Client,
        identity: str,
        lock: FileLock | None,
        temporary: tempfile.TemporaryDirectory[str] | None,
    ) -> None:
        self._client = client
        self._lock = lock
        self._temporary = temporary
        # Chroma fails a query that meets a write of the same rows. No one waits for an encoder.
        self._turn = threading.Lock()
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
        of its own; so does one that may not write there, with a warning. An index that cannot be
        read is only a copy of what the encoder can compute again: it is replaced, with a warning.

        Raises:
            StoreError: no index can be created.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # By default only the thread that takes a lock can let it go.
            lock = FileLock(directory / "lock", thread_local=False)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                return cls._open_temporary(identity)
        except OSError as error:
            _log.warning("the index is temporary: %s cannot be used: %s", directory, error)
            return cls._open_temporary(identity)
        place = directory / "chroma"
        try:
            return cls._over(place, identity, lock, None)
        except Exception as error:  # noqa: BLE001 - Chroma has no error type for damaged files
            _log.warning("rebuilding the vector index in %s: %s", place, error)
        try:
            shutil.rmtree(place)
            return cls._over(place, identity, lock, None)
        except Exception as error:
            lock.release()
            raise StoreError(f"cannot create the vector index in {place}: {error}") from error

    @classmethod
    def _open_temporary(cls, identity: str) -> Self:
        temporary = tempfile.TemporaryDirectory(
            prefix="cascade-router-", ignore_cleanup_errors=True
        )
        return cls._over(Path(temporary.name), identity, None, temporary)

    @classmethod
    def _over(
        cls,
        place: Path,
        identity: str,
        lock: FileLock | None,
        temporary: tempfile.TemporaryDirectory[str] | None,
    ) -> Self:
        client = _client(place)
        try:
            return cls(client, identity, lock, temporary)
        except BaseException:
            client.close()
            raise

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
            with self._turn:
                self._collection.delete(ids=gone)
                for name in gone:
                    del self._digests[name]
        stale = [name for name, digest in wanted.items() if self._digests.get(name) != digest]
        for start in range(0, len(stale), ENCODING_BATCH):
            names = stale[start : start + ENCODING_BATCH]
            vectors = np.asarray(encode(names), dtype=np.float32)
            with self._turn:
                self._collection.upsert(
                    ids=names,
                    embeddings=vectors,
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
        with self._turn:
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

    def vectors(self, names: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The stored vectors of those of the names that the index holds."""
        with self._turn:
            held = [name for name in names if name in self._digests]
            if not held:
                return {}
            rows = self._collection.get(ids=held, include=["embeddings"])
        embeddings = np.asarray(rows["embeddings"], dtype=np.float32)
        return dict(zip(rows["ids"], embeddings, strict=True))

    def close(self) -> None:
        """Close the files and let another process have the folder."""
        self._client.close()
        if self._lock is not None:
            self._lock.release()
        if self._temporary is not None:
            self._temporary.cleanup()


def _client(place: Path) -> Client:
    import chromadb.api  # 1 s to import
    from chromadb.api.client import Client
    from chromadb.config import Settings, System

    # PersistentClient keeps one system a path for the whole process, even one that failed to
    # start, so a damaged index could not be replaced.
    settings = Settings(
        is_persistent=True, persist_directory=str(place), anonymized_telemetry=False
    )
    system = System(settings)
    system.instance(chromadb.api.ServerAPI)  # type: ignore[type-abstract]  # Chroma's own idiom
    system.start()
    return Client.from_system(system)
