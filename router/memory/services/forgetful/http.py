"""Forgetful over its HTTP API: ``POST /api/v1/memories/search`` and what lies beside it."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx

from router.errors import MemoryServiceError
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
from router.replies import RefusedReply, reply_bounds

_MEMORIES: Final = "/api/v1/memories"
_REFUSALS: Final = frozenset({400, 404, 409, 413, 422})


class HttpMemoryService:
    """A ``MemoryService`` over HTTP. Connections are kept between calls.

    Args:
        url: where the server is, such as ``http://127.0.0.1:8020``.
        token: what it wants to be shown; never shown anywhere else.
        timeout_seconds: of each call, from connecting to the reply's last byte.
        project_ids: the service's projects to search and to store in; none means all.

    Raises:
        ConfigurationError: as ``check_endpoint``.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout_seconds: float = 10.0,
        project_ids: tuple[int, ...] = (),
    ) -> None:
        is_local = check_endpoint(url, token)
        self._timeout = timeout_seconds
        self._project_ids = project_ids
        self._client = httpx.AsyncClient(
            base_url=url,
            headers=headers_with(token),
            timeout=timeout_seconds,
            follow_redirects=False,
            event_hooks=reply_bounds(),
            trust_env=not is_local,  # a proxy has no part in what stays on this machine
        )

    async def search(self, query: str, *, k: int) -> list[RemoteMemory]:
        arguments = query_arguments(query, k, self._project_ids)
        return parse_query(await self._call("POST", f"{_MEMORIES}/search", arguments))[:k]

    async def create(self, memory: NewMemory) -> int:
        arguments = memory.to_arguments(self._project_ids)
        return parse_created(await self._call("POST", _MEMORIES, arguments))

    async def get(self, memory_id: int) -> RemoteMemory:
        return parse_memory(await self._call("GET", f"{_MEMORIES}/{memory_id}", None))

    async def obsolete(self, memory_id: int, *, reason: str, superseded_by: int | None) -> None:
        arguments = {"reason": reason, "superseded_by": superseded_by}
        await self._call("DELETE", f"{_MEMORIES}/{memory_id}", arguments)

    async def probe(self) -> None:
        await self.search("probe", k=1)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _call(self, method: str, path: str, arguments: dict[str, Any] | None) -> bytes:
        try:
            async with asyncio.timeout(self._timeout):  # httpx bounds each read, not their sum
                response = await self._client.request(
                    method,
                    path,
                    content=None if arguments is None else json.dumps(arguments).encode(),
                    headers={"Content-Type": "application/json"},
                )
        except TimeoutError:
            raise ServiceLate(
                f"the memory service gave no answer within {self._timeout:g} s"
            ) from None
        except (httpx.HTTPError, httpx.InvalidURL, RefusedReply) as error:
            raise unreachable(str(self._client.base_url), error) from error
        if response.is_success:
            return response.content
        kind = RequestRefused if response.status_code in _REFUSALS else MemoryServiceError
        raise kind(f"the memory service answers {response.status_code} to {method} {path}")
