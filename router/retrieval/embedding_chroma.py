"""The embedding cache in Chroma: in a folder of this machine, or on a server that machines share.

Each encoder has a collection of its own, named by a digest of its identity. A row's id is the key.
Nothing is opened, and Chroma is not imported (1 s), before the first look-up or write.

Chroma holds Python's interpreter lock while it writes, some 10 ms of waiting for the disk. So
``VectorStore`` reads it rarely and writes to it only when a router opens or closes.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from router.errors import ConfigurationError, StoreError
from router.retrieval.embedding_cache import UNUSED_DAYS, Vectors, today
from router.storage.private_files import FILE_MODE, narrow_tree, private_folder

if TYPE_CHECKING:
    import httpx
    from chromadb.api.client import Client
    from chromadb.api.models.Collection import Collection

_log: Final = logging.getLogger(__name__)

BATCH: Final = 1_000
"""Rows of one call; Chroma refuses a few thousand."""
MAX_VECTORS: Final = 500_000
"""How many vectors of one encoder are kept. Beyond it the least recently used are deleted."""
SERVER_TIMEOUT_SECONDS: Final = 10.0


class ChromaCache:
    """The cache in Chroma. Threads may share it; they take turns. ``StoreError`` also says that
    another process has the folder."""

    def __init__(
        self,
        place: Path | str,
        *,
        clock: Callable[[], int] = today,
    ) -> None:
        """A cache in a folder, or on a server with an address such as ``http://127.0.0.1:8000``,
        that is not open yet; ``clock`` gives days since the epoch.

        Raises:
            ConfigurationError: the address is not one.
        """
        self._place = place
        self._clock = clock
        self._turn = threading.Lock()
        self._client: Client | None = None
        self._lock: FileLock | None = None
        self._collections: dict[str, Collection] = {}
        if isinstance(place, str):
            _server_of(place)

    @property
    def name(self) -> str:
        """The folder, or the address."""
        return str(self._place)

    def get(self, encoder: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """See ``EmbeddingCache``."""
        found: dict[str, NDArray[np.float32]] = {}
        with self._opened(encoder) as collection:
            for start in range(0, len(keys), BATCH):
                batch = list(keys[start : start + BATCH])
                rows = collection.get(ids=batch, include=["embeddings"])
                vectors = np.asarray(rows["embeddings"], dtype=np.float32)
                found.update(zip(rows["ids"], vectors, strict=True))
        return found

    def put(self, encoder: str, vectors: Vectors) -> None:
        """See ``EmbeddingCache``."""
        day = self._clock()
        keys = list(vectors)
        with self._opened(encoder) as collection:
            for start in range(0, len(keys), BATCH):
                batch = keys[start : start + BATCH]
                collection.upsert(
                    ids=batch,
                    embeddings=np.stack([vectors[key] for key in batch]),
                    metadatas=[{"used": day}] * len(batch),
                )
            self._prune(collection, day)
        if isinstance(self._place, Path):
            narrow_tree(self._place)

    def close(self) -> None:
        """Close the files and let another process have the folder. Closing twice is fine."""
        with self._turn:
            client, self._client = self._client, None
            self._collections.clear()
            if client is not None:
                close_client(client)
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _prune(self, collection: Collection, day: int) -> None:
        """Delete what nobody has used for long, and what is too much."""
        long_ago: dict[str, Any] = {"used": {"$lt": day - UNUSED_DAYS}}
        collection.delete(where=long_ago)
        too_many = collection.count() - MAX_VECTORS
        if too_many > 0:
            rows = collection.get(include=["metadatas"])
            used = [int((row or {}).get("used", 0)) for row in rows["metadatas"] or []]  # type: ignore[arg-type]
            oldest = np.argsort(used, kind="stable")[:too_many]
            for start in range(0, len(oldest), BATCH):
                places = oldest[start : start + BATCH]
                collection.delete(ids=[rows["ids"][place] for place in places])

    @contextmanager
    def _opened(self, encoder: str) -> Iterator[Collection]:
        """The collection of an encoder, for one caller at a time."""
        with self._turn:
            try:
                collection = self._collections.get(encoder)
                if collection is None:
                    if self._client is None:
                        self._client = self._connect()
                    collection = _collection(self._client, encoder)
                    self._collections[encoder] = collection
                with _panics_are_errors():
                    yield collection
            except (StoreError, ConfigurationError):
                raise
            except Exception as error:  # Chroma has no error type for a full disk, damaged
                # files, a server that is gone, or a bad `.env` in the working directory
                self._collections.pop(encoder, None)
                raise StoreError(self._place, f"Chroma cannot be used: {error}") from error

    def _connect(self) -> Client:
        if isinstance(self._place, str):
            import httpx

            host, port, ssl = _server_of(self._place)
            # Chroma's client asks this when it is made, and would wait for ever for a server that
            # hangs. The heartbeat would not do: it is told by a server whose tables hang.
            tables = "api/v2/tenants/default_tenant/databases/default_database"
            address = f"{'https' if ssl else 'http'}://{host}:{port}/{tables}"
            httpx.get(address, timeout=SERVER_TIMEOUT_SECONDS).raise_for_status()
            return chroma_client(
                chroma_api_impl="chromadb.api.fastapi.FastAPI",
                chroma_server_host=host,
                chroma_server_http_port=port,
                chroma_server_ssl_enabled=ssl,
            )
        private_folder(self._place)
        # By default only the thread that takes a lock can let it go.
        lock = FileLock(self._place / "lock", thread_local=False, mode=FILE_MODE)
        try:
            lock.acquire(blocking=False)
        except Timeout as error:
            raise StoreError(self._place, "another process has it") from error
        files = self._place / "chroma"
        try:
            try:
                client = chroma_client(is_persistent=True, persist_directory=str(files))
                client.list_collections()
            except Exception as error:  # noqa: BLE001 - Chroma has no error type for damaged files
                _log.warning("rebuilding the vectors in %s: %s", files, error)
                shutil.rmtree(files, ignore_errors=True)
                client = chroma_client(is_persistent=True, persist_directory=str(files))
        except BaseException:
            lock.release()
            raise
        self._lock = lock
        return client


def chroma_client(**settings: Any) -> Client:
    """A client of Chroma with these settings and no others.

    Raises:
        Exception: Chroma's own; it has no error type for damaged files.
    """
    import chromadb.api  # 1 s to import
    from chromadb.api.client import Client
    from chromadb.config import Settings, System

    # PersistentClient keeps one system a path for the whole process, even one that failed to
    # start, so a damaged index could not be replaced. And Chroma would take settings from `.env`
    # in the working directory, which may be a stranger's; they name the classes that it loads.
    system = System(Settings(_env_file=None, anonymized_telemetry=False, **settings))
    system.instance(chromadb.api.ServerAPI)  # type: ignore[type-abstract]  # Chroma's own idiom
    with _panics_are_errors():
        system.start()
        client = Client.from_system(system)
    for session in _sessions_of(client):
        session.timeout = SERVER_TIMEOUT_SECONDS  # its own default is to wait for ever
    return client


@contextmanager
def _panics_are_errors() -> Iterator[None]:
    """Chroma's Rust code panics over damaged files. What Python makes of a panic is no
    ``Exception``, and would end the process."""
    try:
        yield
    except BaseException as error:
        if type(error).__module__ != "pyo3_runtime":
            raise
        raise RuntimeError(f"Chroma gave up: {error}") from error


def close_client(client: Client) -> None:
    """Close a client with its connections, which its own ``close`` leaves open."""
    sessions = _sessions_of(client)
    client.close()
    for session in sessions:
        session.close()


def _sessions_of(client: Client) -> list[httpx.Client]:
    """The connections of a client of a server; an embedded one has none."""
    systems = (client._system, getattr(client._admin_client, "_system", None))
    parts = (part for system in systems if system is not None for part in system.components())
    found = (getattr(part, "_session", None) for part in parts)
    return [session for session in found if session is not None]


def _collection(client: Client, encoder: str) -> Collection:
    digest = hashlib.blake2b(encoder.encode("utf-8", "replace"), digest_size=16).hexdigest()
    return client.get_or_create_collection(
        f"embeddings-{digest}",
        configuration={"hnsw": {"space": "l2"}},  # cosine would scale what is kept
        metadata={"encoder": encoder},
        embedding_function=None,
    )


def _server_of(address: str) -> tuple[str, int, bool]:
    """Host, port, and whether the connection is encrypted."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise ConfigurationError(f"{address!r} is no address of a Chroma server") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"{address!r} is no address of a Chroma server; expected http://HOST:PORT"
        )
    encrypted = parts.scheme == "https"
    return parts.hostname, port or (443 if encrypted else 8000), encrypted
