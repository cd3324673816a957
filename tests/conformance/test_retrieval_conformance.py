"""The conformance suite for embedding caches: ours pass it, and each kind of bad one does not."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from router.retrieval.conformance import EmbeddingCacheConformance
from router.retrieval.embedding_cache import EmbeddingCache, Vectors
from router.retrieval.embedding_chroma import ChromaCache
from router.retrieval.embedding_file import EmbeddingFile


@pytest.fixture(scope="module")
def chroma_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Chroma server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    command = "from chromadb.cli.cli import app; app()"
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", command, "run", "--host", "127.0.0.1"),
            *("--port", str(port), "--path", str(folder)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _await_answer(f"{address}/api/v2/heartbeat", process)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def _await_answer(url: str, process: subprocess.Popen[bytes]) -> None:
    """The server has no other way to say that it is ready than to answer."""
    for _ in range(600):
        assert process.poll() is None, "the server has ended"
        try:
            if httpx.get(url).is_success:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


class TestFile(EmbeddingCacheConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "embeddings.sqlite3"

    def make_cache(self) -> EmbeddingCache:
        return EmbeddingFile(self.path)


class TestEmbeddedChroma(EmbeddingCacheConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.folder = tmp_path / "embeddings"

    def make_cache(self) -> EmbeddingCache:
        return ChromaCache(self.folder)


class TestChromaServer(EmbeddingCacheConformance):
    @pytest.fixture(autouse=True)
    def _empty(self, chroma_server: str) -> None:
        from router.retrieval.embedding_chroma import _server_of, chroma_client, close_client

        self.address = chroma_server
        host, port, _ = _server_of(chroma_server)
        client = chroma_client(
            chroma_api_impl="chromadb.api.fastapi.FastAPI",
            chroma_server_host=host,
            chroma_server_http_port=port,
        )
        for collection in client.list_collections():
            client.delete_collection(collection.name)
        close_client(client)

    def make_cache(self) -> EmbeddingCache:
        return ChromaCache(self.address)

    def test_processes_with_two_encoders_lose_none_of_each_others_vectors(self) -> None:
        caches = [self.make_cache() for _ in range(4)]

        def put(number: int) -> None:
            encoder, length = (("small", 4), ("large", 8))[number % 2]
            for key in range(10):
                vector = np.full(length, number + key / 10, np.float32)
                caches[number].put(encoder, {f"{number}-{key}": vector})

        with ThreadPoolExecutor(len(caches)) as threads:
            list(threads.map(put, range(len(caches))))
        for number in range(len(caches)):
            encoder, length = (("small", 4), ("large", 8))[number % 2]
            keys = [f"{number}-{key}" for key in range(10)]
            found = caches[0].get(encoder, keys)
            assert [found[key].tolist() for key in keys] == [
                np.full(length, number + key / 10, np.float32).tolist() for key in range(10)
            ]
            assert caches[0].get("another", keys) == {}
        for cache in caches:
            cache.close()


class Good:
    """Keeps its vectors in a dictionary that outlives it."""

    name = "good"

    def __init__(self, held: dict[tuple[str, str], NDArray[np.float32]]) -> None:
        self.held = held

    def get(self, encoder: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return {key: self.held[encoder, key] for key in keys if (encoder, key) in self.held}

    def put(self, encoder: str, vectors: Vectors) -> None:
        self.held.update({(encoder, key): vector for key, vector in vectors.items()})

    def close(self) -> None:
        pass


class OneForAllEncoders(Good):
    def get(self, encoder: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return super().get("", keys)

    def put(self, encoder: str, vectors: Vectors) -> None:
        super().put("", vectors)


class DropsTheOther(Good):
    def put(self, encoder: str, vectors: Vectors) -> None:
        self.held.clear()
        super().put(encoder, vectors)


class Forgets(Good):
    def close(self) -> None:
        self.held.clear()


class Scales(Good):
    def put(self, encoder: str, vectors: Vectors) -> None:
        scaled = {k: v / max(float(np.linalg.norm(v)), 1e-9) for k, v in vectors.items()}
        super().put(encoder, scaled)


class Raises(Good):
    def get(self, encoder: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        return {key: self.held[encoder, key] for key in keys}


def failures(cache: Callable[[dict[tuple[str, str], NDArray[np.float32]]], EmbeddingCache]) -> int:
    failed = 0
    for name in dir(EmbeddingCacheConformance):
        if name.startswith("test_"):
            held: dict[tuple[str, str], NDArray[np.float32]] = {}
            suite = EmbeddingCacheConformance()
            suite.make_cache = lambda held=held: cache(held)  # type: ignore[method-assign,misc]
            try:
                getattr(suite, name)()
            except (AssertionError, KeyError):
                failed += 1
    return failed


def test_a_good_cache_passes() -> None:
    assert failures(Good) == 0


@pytest.mark.parametrize("bad", [OneForAllEncoders, DropsTheOther, Forgets, Scales, Raises])
def test_a_bad_cache_does_not(bad: type[Good]) -> None:
    assert failures(bad) > 0


def test_analyses_count_in_the_bound_and_the_oldest_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They grew with each change of a skill, and pushed all vectors out of a file that was full."""
    monkeypatch.setattr("router.retrieval.embedding_file.MAX_BYTES", 400_000)
    file = EmbeddingFile(tmp_path / "embeddings.sqlite3")
    vectors = {f"vector {number}": np.ones(8, np.float32) for number in range(20)}
    names = [f"analysis {number}" for number in range(1_000)]
    for start in range(0, len(names), 20):  # a megabyte
        file.keep_analyses({name: bytes(1_000) for name in names[start : start + 20]})
        file.put("test", vectors)
    assert set(file.get("test", list(vectors))) == set(vectors)
    kept = set(file.analyses(names))
    assert 200 < len(kept) < 400
    assert kept == set(names[-len(kept) :])
    file.close()
