"""Fixtures for the tests of memory: the bundled encoder, a PostgreSQL server and a memory service,
each started once, and a store of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clock import Clock
from memory.remembered import NOW
from servers.forgetful_server import ForgetfulServer
from servers.postgres_server import PostgresServer

from router.memory.stores.memory_store import MemoryStore
from router.retrieval.bundled_encoder import BundledEncoder


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def encoder() -> BundledEncoder:
    return BundledEncoder()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server that no test harms."""
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The address of an empty database."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def open_store(tmp_path: Path, encoder: BundledEncoder) -> Iterator[Callable[..., MemoryStore]]:
    """Opens the store of this test, as often as it is called; all are closed at the end."""
    opened: list[MemoryStore] = []

    def opening() -> MemoryStore:
        opened.append(MemoryStore.open(tmp_path / "memory", encoder=encoder, clock=NOW.timestamp))
        return opened[-1]

    yield opening
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Callable[..., MemoryStore]) -> MemoryStore:
    return open_store()


@pytest.fixture(scope="module")
def running() -> Iterator[ForgetfulServer]:
    made = ForgetfulServer()
    yield made
    made.close()


@pytest.fixture
def server(running: ForgetfulServer) -> Iterator[ForgetfulServer]:
    """A service that holds nothing; at the end it must have seen valid requests only."""
    running.reset()
    yield running
    assert running.violations == []
