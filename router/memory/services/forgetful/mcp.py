"""Forgetful over MCP: its tool ``execute_forgetful_tool`` on streamable HTTP.

Each call opens a session of its own, over connections that are kept. The SDK's sessions belong to
the task that opened them, and callers come and go in tasks of theirs; a shared session would need a
task that outlives them. It costs a few round trips, and a restarted server needs no care.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from router.bounded.replies import MAX_REPLY_BYTES, refusal_in, reply_bounds
from router.errors import ConfigurationError, MemoryServiceError
from router.memory.services.forgetful.wire import (
    CALL_SECONDS,
    ForgetfulService,
    RequestRefused,
    unreachable,
)
from router.version import install_extra
from router.web.loopback import direct

if TYPE_CHECKING:
    import httpx2
    from mcp.types import CallToolResult

_ENDPOINT: Final = "/mcp"
_TOOL: Final = "execute_forgetful_tool"


class McpMemoryService(ForgetfulService):
    """A ``ForgetfulService`` over MCP. The time of a call includes the session's beginning.

    Its ``url`` may also be the endpoint itself, ``…/mcp``.
    """

    def __init__(self, url: str, *, token: str | None) -> None:
        try:
            import mcp  # noqa: F401 - it takes longer to import than a search may take
        except ImportError as error:
            raise ConfigurationError(
                f"memory.service.protocol mcp is an extra: {install_extra('mcp')}"
            ) from error
        super().__init__(url, token=token)
        base = url.rstrip("/")
        self._url = base if base.endswith(_ENDPOINT) else base + _ENDPOINT
        self._http: httpx2.AsyncClient | None = None

    async def aclose(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def _send(self, tool: str, arguments: dict[str, Any]) -> bytes:
        try:
            result = await self._session_call(tool, arguments)
        except TimeoutError:
            raise
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
                headers=self._headers,
                timeout=CALL_SECONDS,
                event_hooks=hooks,
                **direct(httpx2.AsyncClient, self._url),
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
