"""MCP over streamable HTTP, alone or under ``/mcp`` beside the API.

What surrounds the SDK's application, from the outside in: host names (``router/web/names.py``), who
calls (``router/http/caller.py``), the size of messages, and the number of sessions.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import Response

from router.mcp.lines import EDGE_BYTES, MAX_MESSAGE_BYTES, TOO_LONG, request_id
from router.web.problems import problem

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from router.mcp.server import Servable

PATH: Final = "/mcp"
MAX_SESSIONS: Final = 1_000
"""Sessions of clients of the older protocol at the same time."""
MAX_READ_BYTES: Final = 16 * MAX_MESSAGE_BYTES
"""How much is read of a message that is too long, so that the answer can name its id. Nothing of it
is kept."""
DRAIN_SECONDS: Final = 2
"""How long requests under way may take when the server is told to stop."""

_SESSION: Final = "mcp-session-id"


def mcp_app(server: Servable, *, sessions: bool = True) -> McpApp:
    """The application without its guards, to be put into another one that has some.

    Without ``sessions`` every message stands for itself, as it must where several processes share
    one address; clients of the older protocol are then not told of changes.
    """
    inner = server.protocol.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=not sessions,
        max_request_body_size=MAX_MESSAGE_BYTES,
        max_sessions=MAX_SESSIONS,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return McpApp(inner, LongMessagesAnswered(SessionsBounded(inner)))


class McpApp(NamedTuple):
    """The SDK's application, and the same with its wrappers."""

    inner: Starlette
    wrapped: ASGIApp


class LongMessagesAnswered:
    """Answers a message that is too long by its id.

    Clients of the older protocol wait on for the answer to their request when all they get is an
    error of HTTP. So the message is read to its end, of which nothing is kept but the edges, and
    the answer is one of JSON-RPC.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        message: Message = {"more_body": True}
        while message.get("more_body") and len(body) <= MAX_MESSAGE_BYTES:
            message = await receive()
            if message["type"] != "http.request":  # the client has gone
                return
            body += message.get("body", b"")
        if len(body) > MAX_MESSAGE_BYTES:
            refusal = await _refusal(body, message, receive)
            await refusal(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, replay, send)


async def _refusal(body: bytearray, message: Message, receive: Receive) -> Response:
    start, end, size = bytes(body[:EDGE_BYTES]), bytes(body[-EDGE_BYTES:]), len(body)
    del body[:]
    while message.get("more_body") and size <= MAX_READ_BYTES:
        message = await receive()
        more = message.get("body", b"")
        size += len(more)
        end = (end + more)[-EDGE_BYTES:]
    found = None if message.get("more_body") else request_id(start, end)
    if found is None:
        return problem(413, "the message is too long", TOO_LONG)
    error = f'{{"jsonrpc":"2.0","id":{found},"error":{{"code":-32600,"message":"{TOO_LONG}"}}}}'
    return Response(error, 200, media_type="application/json")


class SessionsBounded:
    """Ends the session that has been idle for longest when another one is wanted and all places are
    taken. Sessions that clients left without a word would keep the others out for half an hour."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._active: dict[str, int] = {}
        self._idle: OrderedDict[str, None] = OrderedDict()  # longest idle first

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        session = Headers(scope=scope).get(_SESSION)
        known = session in self._active or session in self._idle
        if session is None and len(self._active) + len(self._idle) >= MAX_SESSIONS and self._idle:
            await self._end(scope, self._idle.popitem(last=False)[0])
        ended = scope["method"] == "DELETE"

        async def watch(message: Message) -> None:
            nonlocal session, known
            if message["type"] == "http.response.start":
                given = Headers(raw=message["headers"]).get(_SESSION)
                if session is None and given is not None and message["status"] < 400:
                    session, known = given, True
                    self._begin(given)
            await send(message)

        if known and session is not None:
            self._begin(session)
        try:
            await self._app(scope, receive, watch)
        finally:
            if known and session is not None:
                self._leave(session, ended=ended)

    def _begin(self, session: str) -> None:
        self._idle.pop(session, None)
        self._active[session] = self._active.get(session, 0) + 1

    def _leave(self, session: str, *, ended: bool) -> None:
        self._active[session] -= 1
        if self._active[session] == 0:
            del self._active[session]
            if not ended:
                self._idle[session] = None

    async def _end(self, scope: Scope, session: str) -> None:
        """End a session as its client would: by a ``DELETE`` of its own."""
        headers = [(b"host", b"localhost"), (_SESSION.encode(), session.encode("latin-1"))]
        request: dict[str, Any] = {**scope, "method": "DELETE", "headers": headers}

        async def nothing() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignore(_message: Message) -> None:
            pass

        await self._app(request, nothing, ignore)
