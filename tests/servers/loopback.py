"""An HTTP server on 127.0.0.1 that answers with queued replies and records what it was asked.

A reply can be cut off mid-body or hang. A hanging reply waits until the client or ``close`` ends
the connection, so no test sleeps and no thread outlives its server. Where a test fails before
``close``, the run ends all the same: the threads are daemons. Whatever a client sends that the
protocol does not allow lands in ``violations``; the fixtures assert that there are none.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import socket
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

_TEARDOWN_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted reply. ``cut`` sends half the body and closes; ``hang`` sends nothing at all;
    ``pause`` sends the body as a part and nothing after it; ``endless`` sends it again and again
    until the client has gone.

    The connection is closed afterwards, unless the headers say ``Connection: keep-alive``.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: bool = False
    pause: bool = False
    endless: bool = False

    @classmethod
    def json(cls, value: object, *, status: int = 200, headers: Mapping[str, str] = {}) -> Self:
        return cls(json.dumps(value).encode(), status, headers)


HANG: Final = Reply(b"", hang=True)


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it arrived; names of headers in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


class LoopbackServer:
    """Base of the two protocol servers, which say in ``respond`` what a request means."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self.violations: list[str] = []
        self.arrived = threading.Event()
        self.abandoned = threading.Event()  # a client has closed what hung or paused
        self.always: Reply | None = None
        self._queue: deque[Reply] = deque()
        self._lock = threading.Lock()
        self._http = _HTTPServer(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def queue(self, *replies: Reply) -> None:
        """Answer the next valid requests with these, in order; then with ``always``."""
        self._queue.extend(replies)

    def respond(self, request: Recorded) -> Reply:
        """The reply to one request; called in the thread of its connection."""
        raise NotImplementedError

    def violation(self, what: str) -> None:
        self.violations.append(what)

    def next_reply(self) -> Reply:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
        if self.always is None:
            self.violation("a request that the test did not script")
            return Reply.json({"error": {"message": "nothing is scripted"}}, status=500)
        return self.always

    def close(self) -> None:
        self._http.shutdown()
        for connection in self._http.connections:
            with contextlib.suppress(OSError):  # closed already
                connection.shutdown(socket.SHUT_RD)
        self._http.server_close()
        for thread in (self._thread, *self._http.threads):
            thread.join(_TEARDOWN_SECONDS)


class QueuedServer(LoopbackServer):
    """Answers whatever it is asked with what a test queues."""

    def respond(self, request: Recorded) -> Reply:
        return self.next_reply()


class _HTTPServer(ThreadingHTTPServer):
    owner: LoopbackServer

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.connections: list[socket.socket] = []
        self.threads: list[threading.Thread] = []

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        connection, address = super().get_request()
        self.connections.append(connection)
        return connection, address

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own that ``close`` waits for. The base class waits for no
        daemons, and without them a forgotten ``close`` would keep the whole run from ending."""
        work = (request, client_address)
        thread = threading.Thread(target=self.process_request_thread, args=work, daemon=True)
        self.threads.append(thread)
        thread.start()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up while we write is a normal part of these tests."""


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    def do_HEAD(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def _serve(self) -> None:
        owner = self.server.owner
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            owner.violation("the body is not JSON")
            body = None
        request = Recorded(
            self.command,
            self.path,
            {name.lower(): value for name, value in self.headers.items()},
            body,
        )
        owner.requests.append(request)
        owner.arrived.set()
        self._send(owner.respond(request))

    def _send(self, reply: Reply) -> None:
        self.close_connection = reply.headers.get("Connection") != "keep-alive"
        if reply.hang:
            self._wait_for_client()
            return
        self.send_response_only(reply.status)  # without a Date, which a reply may script
        headers = {"Content-Type": "application/json", "Connection": "close", **reply.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        if not (reply.endless or reply.pause):
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        while reply.endless:
            self.wfile.write(reply.body)  # raises once nobody reads
        if self.command == "HEAD":
            return
        self.wfile.write(reply.body[: len(reply.body) // 2] if reply.cut else reply.body)
        if reply.pause:
            self._wait_for_client()

    def _wait_for_client(self) -> None:
        """Until the client or this server closes the connection."""
        self.close_connection = True
        with contextlib.suppress(OSError):  # it was reset
            self.rfile.read(1)
        self.server.owner.abandoned.set()

    def log_message(self, *_: object) -> None:
        """Tests read ``requests``; nothing goes to the console."""


def pieces(text: str, probabilities: Mapping[str, float] | None = None) -> list[dict[str, Any]]:
    """``text`` cut into tokens, in the form in which both protocols describe them.

    Every token has probability 1 but those whose text is a key of ``probabilities``.
    """
    chances = probabilities or {}
    return [
        {"token": token, "logprob": math.log(chances.get(token, 1.0)), "top_logprobs": []}
        for token in re.findall(r"\w+|\W", text)
    ]
