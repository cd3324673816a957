"""Whatever a server answers, its client reads a bounded part, and shows the key to nobody else."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final

import httpx
import pytest
from llm.asked import PROMPT
from servers.loopback import QueuedServer, Reply

from router.bounded.replies import (
    MAX_REPLY_BYTES,
    RefusedReply,
    blocking_reply_bounds,
    refusal_in,
    reply_bounds,
)
from router.errors import EncoderError, LLMUnavailable, MemoryServiceError
from router.llm.ollama import OllamaModel
from router.llm.openai import OpenAIModel
from router.memory.services.forgetful.client import connect_service
from router.retrieval.encoders import MAX_VECTORS_BYTES, OllamaEncoder, OpenAIEncoder

BOMB: Final = gzip.compress(b" " * 50_000_000)
ENDLESS: Final = Reply(b'{"a": 1, ' * 10_000, endless=True)


@dataclass(frozen=True)
class Client:
    """One of the clients that this package makes.

    Attributes:
        ask: makes one call.
        fault: what it raises when there is no usable answer.
        limit: bytes of a reply that it reads.
        aclose: closes its connections.
    """

    ask: Callable[[], Awaitable[object]]
    fault: type[Exception]
    limit: int
    aclose: Callable[[], Awaitable[None]] | None = None


@pytest.fixture
def server() -> Iterator[QueuedServer]:
    made = QueuedServer()
    yield made
    made.close()


@pytest.fixture
def elsewhere() -> Iterator[QueuedServer]:
    made = QueuedServer()
    made.always = Reply.json({})
    yield made
    made.close()


@pytest.fixture(
    params=["openai", "ollama", "openai encoder", "ollama encoder", "memory http", "memory mcp"]
)
async def client(request: pytest.FixtureRequest, server: QueuedServer) -> AsyncIterator[Client]:
    made = _made(request.param, server.address)
    yield made
    if made.aclose is not None:
        await made.aclose()


def _made(kind: str, address: str) -> Client:
    name, _, part = kind.partition(" ")
    if name == "memory":
        service = connect_service(address, protocol=part)
        return Client(service.probe, MemoryServiceError, MAX_REPLY_BYTES, service.aclose)
    if part:
        encoder = (
            OpenAIEncoder("m", base_url=address, api_key="sk-test")
            if name == "openai"
            else OllamaEncoder("m", host=address)
        )

        async def encode() -> object:
            return encoder.encode(["x"])

        return Client(encode, EncoderError, MAX_VECTORS_BYTES)
    model = (
        OpenAIModel("m", base_url=address, api_key="sk-test")
        if name == "openai"
        else OllamaModel("m", host=address)
    )
    return Client(
        lambda: model.complete(PROMPT, timeout_seconds=120),
        LLMUnavailable,
        MAX_REPLY_BYTES,
        model.aclose,
    )


async def test_a_reply_that_is_too_large_is_not_read(server: QueuedServer, client: Client) -> None:
    server.always = Reply(b" " * (client.limit + 1))
    with pytest.raises(client.fault, match=f"the reply is over {client.limit:,} bytes"):
        await client.ask()


async def test_a_reply_without_end_is_read_to_the_bound(
    server: QueuedServer, client: Client
) -> None:
    server.always = ENDLESS
    with pytest.raises(client.fault, match=f"the reply is over {client.limit:,} bytes"):
        await client.ask()


async def test_a_compressed_reply_is_refused_without_unpacking(
    server: QueuedServer, client: Client
) -> None:
    server.always = Reply(BOMB, headers={"Content-Encoding": "gzip"})
    with pytest.raises(client.fault, match="the reply is compressed"):
        await client.ask()
    assert {request.headers["accept-encoding"] for request in server.requests} == {"identity"}


async def test_no_redirect_leads_to_another_server(
    server: QueuedServer, elsewhere: QueuedServer, client: Client
) -> None:
    location = {"Location": f"{elsewhere.address}/v1/chat/completions"}
    server.always = Reply(b"", status=307, headers=location)
    with pytest.raises(client.fault, match=f"the server redirects to {elsewhere.address}"):
        await client.ask()
    assert elsewhere.requests == []


def test_a_redirect_on_the_same_server_is_followed(server: QueuedServer) -> None:
    moved = Reply(b"", status=308, headers={"Location": "/there"})
    server.queue(moved, Reply.json({"a": 1}))
    with httpx.Client(event_hooks=blocking_reply_bounds(), follow_redirects=True) as client:
        assert client.get(server.address).json() == {"a": 1}


def test_a_reply_that_trickles_is_read_for_a_bounded_time(server: QueuedServer) -> None:
    server.always = Reply(b" ", endless=True)
    seconds = itertools.count()
    hooks = blocking_reply_bounds(seconds=5, clock=lambda: float(next(seconds)))
    late = pytest.raises(RefusedReply, match="did not end within 5 s")
    with httpx.Client(event_hooks=hooks) as client, late:
        client.get(server.address)


async def test_the_largest_reply_is_read(server: QueuedServer) -> None:
    server.always = Reply(b"x" * 100)
    async with httpx.AsyncClient(event_hooks=reply_bounds(max_bytes=100)) as client:
        assert len((await client.get(server.address)).content) == 100


def test_the_refusal_is_found_below_the_errors_that_hide_it() -> None:
    try:
        try:
            raise RefusedReply("too large")
        except RefusedReply as error:
            raise ExceptionGroup("tasks", [OSError("x")]) from error
    except ExceptionGroup as group:
        assert refusal_in(ExceptionGroup("outer", [RefusedReply("inner")])) is not None
        assert refusal_in(group.exceptions[0]) is None
    assert refusal_in(None) is None
