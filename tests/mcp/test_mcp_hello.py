"""The first answer is given before the SDK is imported, and is what the SDK would have said."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from greetings import DISCOVER, initialize
from mcp import Client
from numpy.typing import NDArray

from router.mcp.hello import HANDSHAKE_VERSIONS, STATELESS_VERSION, answer_to
from router.mcp.server import SkillServer
from router.memory.memory import Memory
from router.retrieval.encoders import Encoder
from router.router import SemanticRouter
from router.settings.settings import Settings

ACCEPT = {"Accept": "application/json, text/event-stream"}


async def answer_of_the_sdk(server: SkillServer, message: dict[str, Any]) -> dict[str, Any]:
    app = server.protocol.streamable_http_app(json_response=True)
    headers = dict(ACCEPT)
    if message["method"] == "server/discover":
        headers |= {"MCP-Protocol-Version": STATELESS_VERSION, "Mcp-Method": "server/discover"}
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1:80"
        ) as client,
    ):
        # The SDK takes the address only with a port, which httpx leaves out where it is the usual.
        answer = await client.post(
            "/mcp", json=message, headers={**headers, "Host": "127.0.0.1:80"}
        )
        found: dict[str, Any] = answer.json()["result"]
        return found


@pytest.mark.parametrize("memory", [True, False])
@pytest.mark.parametrize(
    "message",
    [*map(initialize, HANDSHAKE_VERSIONS), DISCOVER],
    ids=[*HANDSHAKE_VERSIONS, STATELESS_VERSION],
)
async def test_the_greeting_is_the_sdk_s(
    message: dict[str, Any], memory: bool, tmp_path: Path
) -> None:
    settings = Settings(state_dir=tmp_path / "state-here")
    server = SkillServer(SemanticRouter(settings), memory=Memory(settings) if memory else None)
    assert answer_to(message, memory=memory) == await answer_of_the_sdk(server, message)


@pytest.mark.parametrize(
    "message",
    [
        initialize("1999-01-01"),
        {**initialize("2025-11-25"), "params": {"protocolVersion": "2025-11-25"}},
        {**initialize("2025-11-25"), "params": []},
        {**DISCOVER, "params": {}},
        {**DISCOVER, "method": "tools/list"},
    ],
    ids=["version", "no client", "no params", "no meta", "method"],
)
def test_what_is_no_greeting_is_left_to_the_sdk(message: dict[str, Any]) -> None:
    assert answer_to(message, memory=True) is None


def test_the_greeting_needs_neither_the_sdk_nor_the_index() -> None:
    code = (
        "import sys\n"
        "from router.mcp.hello import greet\n"
        "greet(memory=True)\n"
        "heavy = {'mcp', 'mcp_types', 'pydantic', 'numpy', 'chromadb', 'anyio'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(initialize("2025-11-25")).encode() + b"\n",
        capture_output=True,
        check=True,
    )
    answer, modules = done.stdout.splitlines()
    assert json.loads(answer)["result"]["protocolVersion"] == "2025-11-25"
    assert modules == b"[]"


class WaitingEncoder:
    """The real encoder, which encodes nothing before it is released."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.identity, self.static = encoder.identity, encoder.static
        self.asked, self.released = threading.Event(), threading.Event()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._encoder.encode(texts)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.asked.set()
        assert self.released.wait(60)
        return self._encoder.encode_documents(documents)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_is_served_while_the_skills_are_indexed(
    mode: str, skills: Path, encoder: Encoder, tmp_path: Path
) -> None:
    import asyncio

    waiting = WaitingEncoder(encoder)
    settings = Settings(state_dir=tmp_path / "state-here", llm={"enabled": False})
    router = SemanticRouter(settings, roots=[skills], encoder=waiting)
    server = SkillServer(router)
    async with Client(server.protocol, mode=mode) as client:
        opening = asyncio.create_task(router.open())
        await asyncio.to_thread(waiting.asked.wait, 60)
        early = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        assert "enum" not in early["load_skill"]["properties"]["name"]
        routing = asyncio.create_task(client.call_tool("route", {"request": "commit my changes"}))
        listing = asyncio.create_task(client.list_resources())
        await client.list_tools()
        assert not opening.done()
        waiting.released.set()
        assert (await routing).structured_content["selected_skills"] == ["git"]
        assert len((await listing).resources) == 2
        await opening
        await server.on_open()
    await router.aclose()
