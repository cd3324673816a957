"""What is no HTTP, and what comes too slowly, is refused as everything else is; an offer to upgrade
is let pass."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import h11
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from uvicorn import Config, Server

from router.web.connections import MAX_HEADER_BYTES, ImpatientProtocol, JoinedConnection
from router.web.running import listen


async def answer_of(
    app: Any, sent: bytes, *, http: type[ImpatientProtocol] = ImpatientProtocol
) -> tuple[bytes, bytes]:
    """Head and body of what a server answers before it closes the connection."""
    config = Config(
        app,
        http=http,
        log_config=None,
        lifespan="off",
        ws="none",
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
    return head, body


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 this is no HTTP\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 2 * MAX_HEADER_BYTES,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * MAX_HEADER_BYTES + b"\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["no HTTP", "long headers", "long headers that come whole", "two lengths of its body"],
)
async def test_what_is_no_http_is_answered_with_a_problem(sent: bytes) -> None:
    head, body = await answer_of(PlainTextResponse("fine"), sent)
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ncontent-type: application/problem+json" in head
    assert json.loads(body)["title"] == "the request is no HTTP/1.1 that can be read"


async def test_a_request_that_offers_to_upgrade_keeps_its_body() -> None:
    async def echo(scope: Any, receive: Any, send: Any) -> None:
        body = await Request(scope, receive).body()
        await Response(body)(scope, receive, send)

    sent = (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\n"
        b"Connection: Upgrade, HTTP2-Settings, close\r\nContent-Length: 16\r\n\r\n"
        b"GET / HTTP/1.1\r\n"
    )
    head, body = await answer_of(echo, sent)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert body == b"GET / HTTP/1.1\r\n"  # and no request of its own


def test_the_head_of_an_answer_goes_with_its_body_and_that_of_a_stream_at_once() -> None:
    def asked() -> JoinedConnection:
        connection = JoinedConnection(h11.SERVER, MAX_HEADER_BYTES)
        connection.receive_data(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.next_event()
        return connection

    answering = asked()
    assert answering.send(h11.Response(status_code=200, headers=[("Content-Length", "4")])) == b""
    whole = answering.send(h11.Data(data=b"fine"))
    assert whole == b"HTTP/1.1 200 \r\nContent-Length: 4\r\n\r\nfine"
    assert answering.send(h11.EndOfMessage()) == b""
    head = asked().send(h11.Response(status_code=200, headers=[]))
    assert head == b"HTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_the_last_answer_before_the_server_stops_says_that_it_is_the_last() -> None:
    """Its client would send the next request on a connection that is closed."""

    class Stopping(ImpatientProtocol):
        """The server is told to stop as a request has come."""

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.shutdown()

    sent = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head, body = await answer_of(PlainTextResponse("fine"), sent, http=Stopping)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close" in head.lower()
    assert body == b"fine"


PART_OF_A_BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16\r\n\r\n{"


async def test_a_body_that_comes_too_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = asyncio.Event()

    async def read(scope: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] == "http.request":
            pass
        gone.set()

    monkeypatch.setattr("router.web.connections.BODY_SECONDS", 0.01)
    head, body = await answer_of(read, PART_OF_A_BODY)
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert json.loads(body)["title"] == "the body came too slowly"
    assert gone.is_set()


async def test_a_slow_body_that_was_answered_already_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.web.connections.BODY_SECONDS", 0.01)

    async def begin(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"some", "more_body": True})
        while (await receive())["type"] == "http.request":
            pass

    head, body = await answer_of(begin, PART_OF_A_BODY)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"some" in body
