"""The vector index: one vector a skill in an embedded, persistent Chroma collection.

Each row carries the digest of what it was encoded from, so that opening the index again encodes
only what changed, after a crash as well. The collection carries the encoder's identity; vectors of
another encoder are dropped, and so are skills that are no longer installed.

Chroma is where the vectors last. They are in memory too (1 kB a skill), and searched there, by
``SkillIndex``: over thousands of skills one matrix product is quicker than Chroma's search, and it
is exact, so that the outcome does not depend on the order in which the skills were stored.

Chroma holds Python's interpreter lock while it writes, some 10 ms of waiting for the disk. So a few
vectors are not written at once: ``save`` does it, when nothing is urgent. A crash before that costs
no more than encoding them again.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
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
"""Skills encoded at a time. Progress is told for each batch."""
WRITING_BATCH: Final = 1_024
"""So many are written at once while they are encoded, and a crash loses at most as many. Chroma
takes three times as long to write them a few at a time."""


class VectorStore:
    """Vectors of the installed skills.

    One thread may ``sync`` at a time, and any thread ``save``; closed once.
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
        self._saving = threading.Lock()
        self._changing = threading.Lock()  # ``_rows`` together with ``_unsaved``
        self._unsaved: set[str] = set()
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
        rows = self._collection.get(include=["metadatas", "embeddings"])
        metadatas = rows["metadatas"] or []
        embeddings = np.asarray(rows["embeddings"], dtype=np.float32)
        self._rows: dict[str, tuple[str, NDArray[np.float32]]] = {
            name: (str((metadata or {}).get("digest", "")), embedding)
            for name, metadata, embedding in zip(rows["ids"], metadatas, embeddings, strict=True)
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
            raise StoreError(place, f"cannot create the vector index: {error}") from error

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
        """Hold exactly the wanted names, each at its wanted digest. What is less than a
        writing batch is left for ``save`` to write.

        Args:
            wanted: name to digest.
            encode: names to their vectors, one row each.
            progress: called with (done, total) rows to encode.

        Returns:
            How many were encoded.

        Raises:
            EncoderError: raised by ``encode``; what was stored before it stays.
        """
        gone = [name for name in self._rows if name not in wanted]
        with self._changing:
            for name in gone:
                del self._rows[name]
            self._unsaved.update(gone)
        held = self.digests
        stale = [name for name, digest in wanted.items() if held.get(name) != digest]
        for start in range(0, len(stale), ENCODING_BATCH):
            names = stale[start : start + ENCODING_BATCH]
            vectors = np.asarray(encode(names), dtype=np.float32)
            with self._changing:
                for name, vector in zip(names, vectors, strict=True):
                    self._rows[name] = (wanted[name], vector)
                self._unsaved.update(names)
            if len(self._unsaved) >= WRITING_BATCH:
                self.save()
            if progress is not None:
                progress(start + len(names), len(stale))
        return len(stale)

    def save(self) -> None:
        """Write to Chroma what ``sync`` has left. What cannot be written is tried again next time.

        Raises:
            Exception: whatever Chroma raises when it cannot write.
        """
        with self._saving:
            with self._changing:
                unsaved, self._unsaved = self._unsaved, set()
                rows = {name: self._rows[name] for name in sorted(unsaved) if name in self._rows}
            try:
                if gone := sorted(unsaved - rows.keys()):
                    self._collection.delete(ids=gone)
                if rows:
                    self._collection.upsert(
                        ids=list(rows),
                        embeddings=np.stack([vector for _, vector in rows.values()]),
                        metadatas=[{"digest": digest} for digest, _ in rows.values()],
                    )
            except BaseException:
                with self._changing:
                    self._unsaved |= unsaved
                raise

    @property
    def digests(self) -> dict[str, str]:
        """The names that are held, with the digests that their vectors were made from."""
        return {name: digest for name, (digest, _) in self._rows.items()}

    def vectors(self, names: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of names that are held, scaled to unit length; shape (names, dimensions)."""
        if not names:
            return np.zeros((0, 0), dtype=np.float32)
        rows = np.stack([self._rows[name][1] for name in names])
        scaled: NDArray[np.float32] = rows / np.maximum(
            np.linalg.norm(rows, axis=1, keepdims=True), 1e-9
        )
        return scaled

    def close(self) -> None:
        """Save, close the files and let another process have the folder."""
        try:
            self.save()
        except Exception as error:  # noqa: BLE001 - Chroma has no error type for a full disk; what
            # is not written is encoded again, and closing must go on.
            _log.warning("the vector index is not up to date on disk: %s", error)
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
    # Chroma would take settings from `.env` in the working directory, which may be a stranger's,
    # and its settings name the classes that it loads.
    settings = Settings(
        _env_file=None,
        is_persistent=True,
        persist_directory=str(place),
        anonymized_telemetry=False,
    )
    system = System(settings)
    system.instance(chromadb.api.ServerAPI)  # type: ignore[type-abstract]  # Chroma's own idiom
    system.start()
    return Client.from_system(system)
