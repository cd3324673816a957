"""Connections that send nothing, or a request bit by bit, are closed after a while. What is not
HTTP is refused with a problem, as everything else is.

uvicorn waits for the rest of a request for as long as the connection stands, so clients that never
finish would take its places for ever.

The parser is h11. uvicorn's other one, httptools, is quicker by some 0.2 ms. But it drops the body
of a request that offers to upgrade, as Java's HttpClient does by default (``Upgrade: h2c``), and
takes a body that comes later for the next request. It has no bound for headers either.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from router.web.problems import problem

HEADER_SECONDS: Final = 10.0
"""How long the headers of a request may take from its first byte on; those of the first request
from the moment at which the connection was made."""
MAX_HEADER_BYTES: Final = 32 * 1024
"""How long the first line and the headers of a request may be together."""
BODY_SECONDS: Final = 20.0
"""How long the body of a request may take from the end of its headers on."""


class JoinedConnection(h11.Connection):
    """Holds the head of an answer back until the beginning of its body is there, and gives both
    together. The socket sends each write at once, so two writes would be two packets, and would
    wake the client twice. The head of a stream, whose length is not known, is given at once.

    A head that is too long is refused, also one that comes whole: h11 bounds only those of which a
    part is still to come. So is one that gives a length and chunks: a proxy that believes the other
    one would hand over what it has not looked at."""

    _held: tuple[bytes, ...] = ()
    is_last = False
    """Whether answers say that the connection is closed behind them."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            size = len(event.method) + len(event.target)
            size += sum(len(name) + len(value) + len(": \r\n") for name, value in event.headers)
            if size > MAX_HEADER_BYTES:
                raise h11.RemoteProtocolError("the headers are too long", error_status_hint=431)
            if {b"content-length", b"transfer-encoding"} <= {name for name, _ in event.headers}:
                raise h11.RemoteProtocolError("its body has two lengths")
        return event

    def send_with_data_passthrough(self, event: h11.Event) -> list[bytes] | None:
        if self.is_last and isinstance(event, h11.Response):
            headers = [*event.headers, (b"connection", b"close")]
            event = h11.Response(
                status_code=event.status_code, headers=headers, reason=event.reason
            )
        pieces = super().send_with_data_passthrough(event)
        if pieces is None:
            return None
        if isinstance(event, h11.Response) and any(
            name == b"content-length" for name, _ in event.headers
        ):
            self._held = tuple(pieces)
            return []
        if self._held:
            pieces = [*self._held, *pieces]
            self._held = ()
        return pieces


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 that waits for the headers and for the body of a request for a bounded time each."""

    conn: JoinedConnection
    _patience: asyncio.TimerHandle | None = None
    _in_body = False

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.conn = JoinedConnection(h11.SERVER, MAX_HEADER_BYTES)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        in_body = self.conn.their_state is h11.SEND_BODY
        if self._patience is not None:
            if in_body is self._in_body and (in_body or self._has_begun()):
                return  # the same part of the request goes on
            self._patience.cancel()
            self._patience = None
        if in_body:
            self._in_body = True
            self._patience = self.loop.call_later(BODY_SECONDS, self._give_up_the_body)
        elif self._has_begun():
            self._wait_for_headers()

    def shutdown(self) -> None:
        """As uvicorn's, whose last answer leaves a client to send the next request in vain."""
        self.conn.is_last = True
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """As a problem; uvicorn sends plain text."""
        self._refuse(HTTPStatus.BAD_REQUEST, "the request is no HTTP/1.1 that can be read", msg)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        super().connection_lost(exc)

    def _has_begun(self) -> bool:
        """Whether a part of a request's headers is there, and not all of them."""
        return self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])

    def _wait_for_headers(self) -> None:
        self._in_body = False
        self._patience = self.loop.call_later(HEADER_SECONDS, self.transport.close)

    def _give_up_the_body(self) -> None:
        if self.cycle.response_started:
            self.transport.close()
        else:
            waited = f"{BODY_SECONDS:g} s are waited"
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the body came too slowly", waited)

    def _refuse(self, status: HTTPStatus, title: str, detail: str) -> None:
        told = problem(status, title, detail, headers={"Connection": "close"})
        start = h11.Response(
            status_code=status, headers=told.raw_headers, reason=status.phrase.encode()
        )
        for event in (start, h11.Data(data=bytes(told.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
