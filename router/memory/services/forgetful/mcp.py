"""Forgetful over MCP: its tool ``execute_forgetful_tool`` on streamable HTTP.

Each call opens a session of its own, over connections that are kept. The SDK's sessions belong to
the task that opened them, and callers come and go in tasks of theirs; a shared session would need a
task that outlives them. It costs a few round trips, and a restarted server needs no care.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from router.errors import ConfigurationError, MemoryServiceError
from router.memory.services.forgetful.wire import (
    NewMemory,
    RemoteMemory,
    RequestRefused,
    ServiceLate,
    check_endpoint,
    headers_with,
    parse_created,
    parse_memory,
    parse_query,
    query_arguments,
    unreachable,
)
from router.replies import MAX_REPLY_BYTES, refusal_in, reply_bounds

if TYPE_CHECKING:
    import httpx2
    from mcp.types import CallToolResult

_ENDPOINT: Final = "/mcp"
_TOOL: Final = "execute_forgetful_tool"


class McpMemoryService:
    """A ``MemoryService`` over MCP.

    Args:
        url: where the server is, such as ``http://127.0.0.1:8020``, or its endpoint ``…/mcp``.
        token, timeout_seconds, project_ids: as for ``HttpMemoryService``; the time includes the
            session's beginning.

    Raises:
        ConfigurationError: as ``check_endpoint``, or the extra ``mcp`` is not installed.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout_seconds: float = 10.0,
        project_ids: tuple[int, ...] = (),
    ) -> None:
        try:
            import mcp  # noqa: F401 - it takes longer to import than a search may take
        except ImportError as error:
            raise ConfigurationError(
                "memory.service.protocol mcp is an extra: pip install 'cascade-router[mcp]'"
            ) from error
        self._is_local = check_endpoint(url, token)
        base = url.rstrip("/")
        self._url = base if base.endswith(_ENDPOINT) else base + _ENDPOINT
        self._headers = headers_with(token)
        self._http: httpx2.AsyncClient | None = None
        self._timeout = timeout_seconds
        self._project_ids = project_ids

    async def search(self, query: str, *, k: int) -> list[RemoteMemory]:
        arguments = query_arguments(query, k, self._project_ids)
        return parse_query(await self._call("query_memory", arguments))[:k]

    async def create(self, memory: NewMemory) -> int:
        arguments = memory.to_arguments(self._project_ids)
        return parse_created(await self._call("create_memory", arguments))

    async def get(self, memory_id: int) -> RemoteMemory:
        return parse_memory(await self._call("get_memory", {"memory_id": memory_id}))

    async def obsolete(self, memory_id: int, *, reason: str, superseded_by: int | None) -> None:
        arguments: dict[str, Any] = {"memory_id": memory_id, "reason": reason}
        if superseded_by is not None:
            arguments["superseded_by"] = superseded_by
        await self._call("mark_memory_obsolete", arguments)

    async def probe(self) -> None:
        await self.search("probe", k=1)

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def _call(self, tool: str, arguments: dict[str, Any]) -> bytes:
        """The JSON of a tool's answer."""
        try:
            async with asyncio.timeout(self._timeout):
                result = await self._session_call(tool, arguments)
        except TimeoutError:
            raise ServiceLate(
                f"the memory service gave no answer within {self._timeout:g} s"
            ) from None
        except Exception as error:
            # The SDK lets through what its tasks raise, in groups: HTTP, protocol, validation and
            # stream errors. Whatever it is, there is no answer.
            fault = refusal_in(error) or _innermost(error)
            if isinstance(fault, MemoryServiceError):
                raise fault from None
            raise unreachable(self._url, fault) from error
        if result.is_error:
            text = _text(result)
            is_final = "VALIDATION_ERROR" in text or "not found" in text
            kind = RequestRefused if is_final else MemoryServiceError
            raise kind(f"the memory service fails at {tool}: {text[:200]}")
        return _json(result)

    async def _session_call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        import httpx2
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        if self._http is None:  # connections outlive sessions
            hooks = reply_bounds()
            hooks["response"].insert(0, _check)
            self._http = httpx2.AsyncClient(
                headers=dict(self._headers),
                timeout=self._timeout,
                trust_env=not self._is_local,
                event_hooks=hooks,
            )
        transport = streamable_http_client(
            self._url, http_client=self._http, max_sse_event_size=MAX_REPLY_BYTES
        )
        async with Client(transport, cache=None) as session:
            return await session.call_tool(_TOOL, {"tool_name": tool, "arguments": arguments})


async def _check(response: httpx2.Response) -> None:
    """Refuse what cannot be an answer. Other refusals (400, 404, 405) belong to the negotiation of
    the protocol's version."""
    if response.status_code in (401, 403, 429) or response.status_code >= 500:
        raise MemoryServiceError(f"the memory service answers {response.status_code}")


def _json(result: CallToolResult) -> bytes:
    """A tool's answer: its structured content, which some servers wrap, or else its text."""
    structured = result.structured_content
    if structured is None:
        return _text(result).encode()
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        structured = structured["result"]
    return json.dumps(structured).encode()


def _text(result: CallToolResult) -> str:
    return next((block.text for block in result.content if block.type == "text"), "")


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
