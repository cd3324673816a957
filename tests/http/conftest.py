"""An API over two skills, and clients of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest
from cascade import own_machine, some_skills

from router.http.api import Api
from router.http.app import http_app
from router.http.caller import Callers
from router.http.keys import KeyFile
from router.memory.memory import Memory
from router.router import SemanticRouter
from router.settings.settings import Settings
from router.tools.folder import ToolFolder

Connect: TypeAlias = Callable[..., httpx.AsyncClient]
ENVIRONMENT_KEY = "from-the-environment"
NAMES = ("localhost", "127.0.0.1")


@pytest.fixture(autouse=True)
def _clean_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_machine(tmp_path, monkeypatch)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return some_skills(tmp_path / "skills", "git", "testing")


@pytest.fixture
def keys(tmp_path: Path) -> KeyFile:
    return KeyFile(tmp_path / "config" / "api_keys.json")


@pytest.fixture
async def router(skills: Path, tmp_path: Path) -> AsyncIterator[SemanticRouter]:
    settings = Settings(state_dir=tmp_path / "state", llm={"enabled": False})
    tools = ToolFolder(tmp_path / "tools")
    async with SemanticRouter(settings, sources=[skills, tools]) as opened:
        yield opened


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    settings = Settings(
        state_dir=tmp_path / "state",
        llm={"enabled": False},
        memory={
            "directory": tmp_path / "memory",
            "deadline_seconds": 60,
            "layer_deadline_seconds": 30,
        },
    )
    made = Memory(settings)
    yield made
    await made.aclose()


@pytest.fixture
async def api(router: SemanticRouter, memory: Memory, keys: KeyFile) -> Api:
    """Whose callers need no key."""
    return Api(router, memory, Callers(keys, secret=None, required=False))


@pytest.fixture
async def guarded(router: SemanticRouter, memory: Memory, keys: KeyFile) -> Api:
    """Whose callers need one."""
    return Api(router, memory, Callers(keys, secret=ENVIRONMENT_KEY, required=True))


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """A client of an API; ``key`` is shown if given."""
    made: list[httpx.AsyncClient] = []

    def client(api: Api, key: str | None = None) -> httpx.AsyncClient:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        transport = httpx.ASGITransport(app=http_app(api, names=NAMES, mcp=None))
        made.append(
            httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)
        )
        return made[-1]

    yield client
    for one in made:
        await one.aclose()
