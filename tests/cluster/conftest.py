"""What the tests of clusters share: one server for all of them, a namespace for each."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import SettingsOf
from servers.redis_server import RedisServer

from router.settings.settings import Settings


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server that no test harms."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.close()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server for one test to harm."""
    server = RedisServer(tmp_path)
    yield server
    server.close()


@pytest.fixture
def settings_of(tmp_path: Path) -> SettingsOf:
    """Settings of processes of one cluster, each with a folder of its own."""
    namespace = f"test-{secrets.token_hex(4)}"
    count = iter(range(100))

    def settings(url: str, **more: object) -> Settings:
        return Settings(
            state_dir=tmp_path / f"state-{next(count)}",
            llm={"enabled": False},
            cluster={"url": url, "namespace": namespace, "deadline_seconds": 5.0, **more},
        )

    return settings
