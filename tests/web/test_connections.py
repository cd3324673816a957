"""What is no HTTP is refused as everything else is, and the connection is closed."""

from __future__ import annotations

import asyncio
import json

import pytest
from starlette.responses import PlainTextResponse
from uvicorn import Config, Server

from router.web.connections import ImpatientProtocol
from router.web.running import MAX_HEADER_BYTES, listen


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 this is no HTTP\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 2 * MAX_HEADER_BYTES,
    ],
    ids=["no HTTP", "long headers"],
)
async def test_what_is_no_http_is_answered_with_a_problem(sent: bytes) -> None:
    config = Config(
        PlainTextResponse("fine"),
        http=ImpatientProtocol,
        log_config=None,
        lifespan="off",
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
    )
    server = Server(config)
    with listen("127.0.0.1", 0) as listening:
        config.load()
        server.lifespan = config.lifespan_class(config)
        await server.startup([listening])
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(sent)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        await server.shutdown([listening])
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ncontent-type: application/problem+json" in head
    assert json.loads(body)["title"] == "the request is no HTTP/1.1 that can be read"
