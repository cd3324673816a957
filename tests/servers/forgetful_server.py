"""Forgetful as its published schema describes it, with both its faces on one port: the HTTP API
under ``/api/v1/memories`` and, on ``/mcp``, the official SDK's server with its one tool that
matters. It finds memories by their words, keeps what it is told, and misbehaves on order.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_QUERY: Final = {
    "query",
    "query_context",
    "k",
    "include_links",
    "token_context_threshold",
    "max_links_per_primary",
    "importance_threshold",
    "project_ids",
    "strict_project_filter",
}
_CREATE: Final = {
    "title",
    "content",
    "context",
    "keywords",
    "tags",
    "importance",
    "project_ids",
    "source_repo",
    "source_files",
    "source_url",
    "confidence",
    "encoding_agent",
    "encoding_version",
}
_LIMITS: Final = {"title": 200, "content": 2_000, "context": 500, "keywords": 10, "tags": 10}


class Refused(Exception):
    """The service does not take a request."""


@dataclass
class ForgetfulServer:
    """A running server.

    Attributes:
        memories: what it holds, by id.
        calls: every operation that reached it: its name and arguments.
        violations: what a client sent that the schema does not allow.
        fault: how it misbehaves from now on: ``starting`` (503), ``broken`` (500), ``hang``,
            ``cut`` (half a reply), ``deaf`` (does what it is told and cuts the reply),
            ``malformed``, ``oversized``, ``compressed``, ``redirect``; None to behave.
        fault_on: the operation that is concerned; None means all.
        says_scores: whether it is version 0.6, which says how similar its finds are.
        token: what clients must show; None means nothing.
        hanging: set once a request hangs.
        holds_five: set once there are five memories.
    """

    memories: dict[int, dict[str, Any]] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    fault: str | None = None
    fault_on: str | None = None
    says_scores: bool = False
    token: str | None = None

    def __post_init__(self) -> None:
        # asyncio turns Nagle's delay off only where the protocol is named.
        self._listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._listening.bind(("127.0.0.1", 0))
        self._listening.listen()
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._loop = asyncio.new_event_loop()
        self._closing = asyncio.Event()
        self.hanging = threading.Event()
        self.holds_five = threading.Event()
        self._app = self._mcp().streamable_http_app()
        self._app.router.routes[:0] = self._routes()
        self._server = uvicorn.Server(
            uvicorn.Config(
                _Faulty(self._app, self),
                log_config=None,
                access_log=False,
                ws="none",
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()  # connections wait in the socket until it serves

    def add(self, content: str, **values: Any) -> int:
        """Hold a memory that somebody else has stored; its id."""
        number = len(self.memories) + 1
        self.memories[number] = {
            "id": number,
            "title": content[:50],
            "content": content,
            "context": "A test.",
            "keywords": [],
            "tags": [],
            "importance": 7,
            "project_ids": [],
            "linked_memory_ids": [],
            "is_obsolete": False,
            "superseded_by": None,
            "created_at": "2026-03-01T12:00:00Z",
            "updated_at": "2026-03-01T12:00:00Z",
        } | values
        if number == 5:
            self.holds_five.set()
        return number

    def held(self) -> list[str]:
        """The contents that are not obsolete, in the order of their ids."""
        return [m["content"] for m in self.memories.values() if not m["is_obsolete"]]

    def reset(self) -> None:
        """Forget everything, behave, and let go of whatever hangs."""
        self._loop.call_soon_threadsafe(self._let_go)
        for kept in (self.memories, self.calls, self.violations):
            kept.clear()
        self.fault = self.fault_on = self.token = None
        self.says_scores = False
        self.hanging.clear()
        self.holds_five.clear()

    def _let_go(self) -> None:
        self._closing.set()
        self._closing = asyncio.Event()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._let_go)
        self._server.should_exit = True
        self._thread.join(30)
        self._listening.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._server.serve(sockets=[self._listening]))
        self._loop.close()

    def do(self, operation: str, arguments: Mapping[str, Any]) -> Any:
        """One operation of the service, whichever face it came through."""
        self.calls.append((operation, dict(arguments)))
        return {
            "query_memory": self._query,
            "create_memory": self._create,
            "get_memory": self._get,
            "mark_memory_obsolete": self._obsolete,
        }[operation](dict(arguments))

    def _query(self, given: dict[str, Any]) -> dict[str, Any]:
        self._check(given, _QUERY, ("query", "query_context"))
        k = given.get("k", 3)
        if not isinstance(k, int) or not 1 <= k <= 20:
            self._refuse(f"k is {k!r}")
        words = set(given["query"].casefold().split())
        ranked = sorted(
            (
                (len(words & set(m["content"].casefold().split())) / max(len(words), 1), m)
                for m in self.memories.values()
                if not m["is_obsolete"]
            ),
            key=lambda pair: -pair[0],
        )[:k]
        ranked.sort(key=lambda pair: -pair[1]["importance"])  # as the service does
        result = {
            "query": given["query"],
            "primary_memories": [memory for _, memory in ranked],
            "linked_memories": [],
            "total_count": len(ranked),
            "token_count": 100,
            "truncated": False,
        }
        if self.says_scores:
            result["scores"] = [{"similarity": s, "rerank_score": None} for s, _ in ranked]
        return result

    def _create(self, given: dict[str, Any]) -> dict[str, Any]:
        required = ("title", "content", "context", "keywords", "tags", "importance")
        self._check(given, _CREATE, required)
        for name, limit in _LIMITS.items():
            if len(given[name]) > limit:
                self._refuse(f"{name} has {len(given[name])}; at most {limit}")
        now = datetime.now(UTC).isoformat()
        number = self.add(**given, created_at=now, updated_at=now)
        return {"id": number, "title": given["title"], "linked_memory_ids": []}

    def _get(self, given: dict[str, Any]) -> dict[str, Any]:
        return self._held(given["memory_id"])

    def _obsolete(self, given: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(given.get("reason"), str):
            self._refuse("reason is required")
        self._held(given["memory_id"]).update(
            is_obsolete=True, superseded_by=given.get("superseded_by")
        )
        return {"success": True}

    def _held(self, number: int) -> dict[str, Any]:
        if number not in self.memories:
            raise Refused(f"Memory {number} not found")
        return self.memories[number]

    def _check(self, given: dict[str, Any], known: set[str], required: tuple[str, ...]) -> None:
        for name in given.keys() - known:
            self._refuse(f"unexpected {name}")
        for name in required:
            if given.get(name) in (None, ""):
                self._refuse(f"{name} is required")

    def _refuse(self, what: str) -> None:
        self.violations.append(what)
        raise Refused(what)

    def _routes(self) -> list[Route]:
        async def answer(operation: str, arguments: dict[str, Any], status: int = 200) -> Response:
            try:
                return JSONResponse(self.do(operation, arguments), status_code=status)
            except Refused as error:
                missing = "not found" in str(error)
                return JSONResponse({"error": str(error)}, status_code=404 if missing else 400)

        async def search(request: Request) -> Response:
            return await answer("query_memory", await request.json())

        async def create(request: Request) -> Response:
            return await answer("create_memory", await request.json(), 201)

        async def one(request: Request) -> Response:
            number = request.path_params["memory_id"]
            if request.method == "GET":
                return await answer("get_memory", {"memory_id": number})
            body = await request.json()
            return await answer("mark_memory_obsolete", {"memory_id": number} | body)

        return [
            Route("/api/v1/memories/search", search, methods=["POST"]),
            Route("/api/v1/memories", create, methods=["POST"]),
            Route("/api/v1/memories/{memory_id:int}", one, methods=["GET", "DELETE"]),
        ]

    def _mcp(self) -> MCPServer:
        server = MCPServer("forgetful", log_level="CRITICAL")

        @server.tool()
        async def execute_forgetful_tool(tool_name: str, arguments: dict[str, Any]) -> Any:
            try:
                return self.do(tool_name, arguments)
            except Refused as error:
                raise ToolError(f"VALIDATION_ERROR: {error}") from None

        return server

    async def hang(self) -> None:
        self.hanging.set()
        await self._closing.wait()


class _Faulty:
    """Lets a request through, or answers it as the server's ``fault`` says."""

    def __init__(self, app: ASGIApp, owner: ForgetfulServer) -> None:
        self._app = app
        self._owner = owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        owner = self._owner
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if owner.token is not None and headers.get("authorization") != f"Bearer {owner.token}":
            await JSONResponse({"error": "unauthorized"}, 401)(scope, receive, send)
            return
        body = await _body(receive)
        fault = owner.fault if owner.fault_on in (None, _operation(scope, body)) else None
        if fault is None:
            await self._app(scope, _again(body, receive), send)
        elif fault == "hang":
            await owner.hang()
        elif fault in ("cut", "deaf"):
            await self._cut(scope, _again(body, receive), send, obey=fault == "deaf")
        else:
            await _FAULTS[fault](scope, receive, send)

    async def _cut(self, scope: Scope, receive: Receive, send: Send, *, obey: bool) -> None:
        if obey:

            async def unheard(message: Message) -> None:
                """The reply goes nowhere."""

            await self._app(scope, receive, unheard)
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"application/json"), (b"content-length", b"100")],
            }
        )
        await send({"type": "http.response.body", "body": b'{"primary_mem', "more_body": True})
        # Ending here makes the server close the connection in the middle of the body.


_FAULTS: Final[Mapping[str, ASGIApp]] = {
    "starting": JSONResponse({"status": "starting"}, 503),
    "broken": JSONResponse({"error": "internal"}, 500),
    "malformed": JSONResponse({"primary_memories": [{"id": "one", "content": 5}]}),
    "oversized": Response(b'{"x": "' + b"x" * 3_000_000 + b'"}', media_type="application/json"),
    "compressed": Response(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}),
    "redirect": Response(status_code=307, headers={"Location": "http://127.0.0.1:9/elsewhere"}),
}


def _operation(scope: Scope, body: bytes) -> str | None:
    """Which operation a request asks for."""
    if scope["path"] == "/mcp":
        message = json.loads(body or b"{}")
        name = message.get("params", {}).get("arguments", {}).get("tool_name")
        return name if isinstance(name, str) else None
    return {
        ("POST", "/api/v1/memories/search"): "query_memory",
        ("POST", "/api/v1/memories"): "create_memory",
    }.get(
        (scope["method"], scope["path"]),
        "get_memory" if scope["method"] == "GET" else "mark_memory_obsolete",
    )


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


def _again(body: bytes, receive: Receive) -> Receive:
    """The request's body once more, and then whatever follows."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
