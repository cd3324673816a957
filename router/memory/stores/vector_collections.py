"""The vectors of large spaces in Chroma: one collection a space.

A collection holds the rows of its space up to a mark, which it carries itself, together with the
identity of the encoder and of the database. Where the two differ from what they should be, or
Chroma's files are damaged, the collection is dropped: it is a copy of what the database holds.

Two processes cannot share an embedded Chroma. The first one to open the folder has it.
"""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from router.private_files import FILE_MODE, narrow_tree, private_folder
from router.retrieval.embedding_chroma import chroma_client

if TYPE_CHECKING:
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

_log: Final = logging.getLogger(__name__)

Stored = Callable[[int, int], Mapping[int, NDArray[np.float32]]]
"""The vectors that the database holds of a space, up to a row."""


class VectorCollections:
    """Chroma's side of the store. Thread-safe; its faults never reach a caller of ``nearest``."""

    def __init__(self, client: Client, identity: str, lock: FileLock) -> None:
        self._client = client
        self._identity = identity
        self._lock = lock
        # Chroma fails a query that meets a write of the same rows.
        self._turn = threading.Lock()
        self._collections: dict[int, Collection] = {}
        self._marks: dict[int, int] = {}
        for name in [listed.name for listed in client.list_collections()]:
            collection = client.get_collection(name, embedding_function=None)
            metadata = collection.metadata or {}
            space, mark = metadata.get("space"), metadata.get("mark")
            if (
                metadata.get("identity") == identity
                and isinstance(space, int)
                and isinstance(mark, int)
            ):
                self._collections[space] = collection
                self._marks[space] = mark
            else:
                client.delete_collection(name)

    @classmethod
    def open(cls, directory: Path, *, identity: str) -> Self | None:
        """Open or create the folder; None when another process has it, or it cannot be used."""
        private_folder(directory)
        # By default only the thread that takes a lock can let it go.
        lock = FileLock(directory / "lock", thread_local=False, mode=FILE_MODE)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        place = directory / "chroma"
        try:
            return cls._over(place, identity, lock)
        except Exception as error:  # noqa: BLE001 - Chroma has no error type for damaged files
            _log.warning("rebuilding the vectors in %s: %s", place, error)
        try:
            shutil.rmtree(place, ignore_errors=True)
            return cls._over(place, identity, lock)
        except Exception as error:  # noqa: BLE001 - whatever it is, the database can do without
            _log.warning("going on without the vectors in %s: %s", place, error)
            lock.release()
            return None

    @classmethod
    def _over(cls, place: Path, identity: str, lock: FileLock) -> Self:
        client = chroma_client(is_persistent=True, persist_directory=str(place))
        narrow_tree(place)
        try:
            return cls(client, identity, lock)
        except BaseException:
            client.close()
            raise

    @property
    def spaces(self) -> tuple[int, ...]:
        """The spaces that have a collection."""
        with self._turn:
            return tuple(self._collections)

    def mark(self, space: int) -> int:
        """The row up to which a space is held here; 0 when it has no collection."""
        return self._marks.get(space, 0)

    def nearest(
        self, space: int, vector: NDArray[np.float32], *, limit: int
    ) -> dict[int, float] | None:
        """Rows and their cosine similarity; None when the collection has just been lost."""
        with self._turn:
            collection = self._collections.get(space)
            if collection is None:
                return None
            try:
                found = collection.query(
                    query_embeddings=vector[np.newaxis], n_results=limit, include=["distances"]
                )
            except Exception as error:  # noqa: BLE001 - Chroma has no error type for damaged files
                self._drop(space, error)
                return None
        distances = found["distances"] or [[]]
        return {
            int(row): 1.0 - distance
            for row, distance in zip(found["ids"][0], distances[0], strict=True)
        }

    def add(self, space: int, vectors: Mapping[int, NDArray[np.float32]]) -> None:
        """Take rows in, all after the mark, and move the mark behind them."""
        with self._turn:
            try:
                collection = self._collections.get(space)
                if collection is None:
                    collection = self._client.create_collection(
                        f"space-{space}",
                        configuration={"hnsw": {"space": "cosine"}},  # the default is squared L2
                        metadata=self._metadata(space, 0),
                        embedding_function=None,
                    )
                _upsert(collection, vectors)
                # Last: after a crash before it the rows are in the database's share as well.
                collection.modify(metadata=self._metadata(space, max(vectors)))
            except Exception as error:  # noqa: BLE001 - a full disk, damaged files
                self._drop(space, error)
                return
            self._collections[space] = collection
            self._marks[space] = max(vectors)

    def remove(self, space: int, rows: Sequence[int]) -> None:
        """Forget rows; those that are not held are passed over."""
        with self._turn:
            collection = self._collections.get(space)
            mark = self._marks.get(space, 0)
            ids = [str(row) for row in rows if row <= mark]
            if collection is None or not ids:
                return
            try:
                collection.delete(ids=ids)
            except Exception as error:  # noqa: BLE001 - a full disk, damaged files
                self._drop(space, error)

    def reconcile(self, space: int, count: int, stored: Stored) -> None:
        """Make a collection hold exactly what the database holds up to its mark.

        A crash between the two leaves a row too many or one too few here. A row never changes, so
        equal numbers are taken for equal rows; otherwise the rows are compared.

        Args:
            count: how many rows the database holds up to the mark.
        """
        with self._turn:
            collection = self._collections[space]
            try:
                if collection.count() == count:
                    return
                held = {int(row) for row in collection.get(include=[])["ids"]}
                wanted = stored(space, self._marks[space])
                if orphans := held - wanted.keys():
                    collection.delete(ids=[str(row) for row in orphans])
                if missing := wanted.keys() - held:
                    _upsert(collection, {row: wanted[row] for row in missing})
            except Exception as error:  # noqa: BLE001 - Chroma has no error type for damaged files
                self._drop(space, error)

    def drop(self, space: int) -> None:
        """Forget a space."""
        with self._turn:
            self._drop(space, None)

    def _drop(self, space: int, error: Exception | None) -> None:
        """The space goes on in the database alone, and comes back with the saves."""
        if error is not None:
            _log.warning("rebuilding the vectors of space %d: %s", space, error)
        self._collections.pop(space, None)
        self._marks.pop(space, None)
        try:
            self._client.delete_collection(f"space-{space}")
        except Exception as second:  # noqa: BLE001 - it may never have been created
            _log.debug("space %d: %s", space, second)

    def _metadata(self, space: int, mark: int) -> dict[str, str | int]:
        return {"identity": self._identity, "space": space, "mark": mark}

    def close(self) -> None:
        """Close the files and let another process have the folder."""
        with self._turn:
            self._client.close()
            self._lock.release()


_UPSERT_BATCH: Final = 1_000
"""Chroma refuses a few thousand rows at once."""


def _upsert(collection: Collection, vectors: Mapping[int, NDArray[np.float32]]) -> None:
    rows = list(vectors)
    for start in range(0, len(rows), _UPSERT_BATCH):
        batch = rows[start : start + _UPSERT_BATCH]
        collection.upsert(
            ids=[str(row) for row in batch], embeddings=np.stack([vectors[row] for row in batch])
        )
