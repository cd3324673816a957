"""Forgetful over its HTTP API: ``POST /api/v1/memories/search`` and what lies beside it."""

from __future__ import annotations

import json
from typing import Any, Final

import httpx

from router.bounded.replies import RefusedReply, reply_bounds
from router.errors import MemoryServiceError
from router.memory.services.forgetful.wire import (
    CALL_SECONDS,
    ForgetfulService,
    RequestRefused,
    unreachable,
)
from router.web.loopback import direct

_MEMORIES: Final = "/api/v1/memories"
_REQUESTS: Final = {
    "query_memory": ("POST", "/search"),
    "create_memory": ("POST", ""),
    "get_memory": ("GET", "/{memory_id}"),
    "mark_memory_obsolete": ("DELETE", "/{memory_id}"),
}
"""The method and path of each of the service's tools."""
_REFUSALS: Final = frozenset({400, 404, 409, 413, 422})


class HttpMemoryService(ForgetfulService):
    """A ``ForgetfulService`` over HTTP. Connections are kept between calls."""

    def __init__(self, url: str, *, token: str | None) -> None:
        super().__init__(url, token=token)
        self._client = httpx.AsyncClient(
            base_url=url,
            headers=self._headers,
            timeout=CALL_SECONDS,
            follow_redirects=False,
            event_hooks=reply_bounds(),
            **direct(httpx.AsyncClient, url),
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _send(self, tool: str, arguments: dict[str, Any]) -> bytes:
        method, path = _REQUESTS[tool]
        path = _MEMORIES + path.format_map(arguments)
        sent = {name: value for name, value in arguments.items() if name != "memory_id"}
        try:
            response = await self._client.request(
                method,
                path,
                content=json.dumps(sent).encode() if sent else None,
                headers={"Content-Type": "application/json"},
            )
        except (httpx.HTTPError, httpx.InvalidURL, RefusedReply) as error:
            raise unreachable(str(self._client.base_url), error) from error
        if response.is_success:
            return response.content
        kind = RequestRefused if response.status_code in _REFUSALS else MemoryServiceError
        raise kind(f"the memory service answers {response.status_code} to {method} {path}")
