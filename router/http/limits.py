"""Limits of a request: the size of its body, as JSON or as a form, and the number of requests at a
time. How long a body may take to arrive is bounded in ``router/web/connections.py``.

``Places`` bounds how many requests are processed and how many wait. A request that finds no place
is refused at once, which costs nothing. One caller may have half of the places, so that a busy
caller does not keep out the others.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from router.http.problems import Refused

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
MAX_FIELDS: Final = 50
"""How many fields a form may have."""
MAX_ACTIVE: Final = 64
"""Requests that are processed at the same time. Cached answers take microseconds, LLM calls
seconds."""
MAX_WAITING: Final = 1_000


async def read_json(request: Request) -> Any:
    """The body of a request as JSON; an empty one is an empty object. Raises Refused when it is too
    large, or no JSON."""
    if _kind_of(request) not in ("application/json", ""):
        raise Refused(415, "the body must be JSON", "send Content-Type: application/json")
    body = await read_body(request)
    if not body:
        return {}
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise Refused(400, "the body is no JSON", reason) from None


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form by name, with the last value of each; a file counts as a field with its
    text. Raises Refused when the body is too large, or no form."""
    kind, body = _kind_of(request), await read_body(request)
    try:
        if kind == "multipart/form-data":
            fields = await _parts(request, body)
        elif kind in ("application/x-www-form-urlencoded", ""):
            fields = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"
            )
        else:
            raise Refused(415, "the body is no form", f"it is {kind[:80]}")
    except (MultiPartException, ValueError, KeyError) as error:  # a ValueError: it is no UTF-8
        raise Refused(400, "the form cannot be read", str(error)) from None
    return {name: value.replace("\r\n", "\n") for name, value in fields}


async def _parts(request: Request, body: bytes) -> list[tuple[str, str]]:
    async def stream() -> AsyncIterator[bytes]:
        yield body

    parser = MultiPartParser(
        request.headers,
        stream(),  # type: ignore[arg-type]  # it asks for a generator and reads an iterator
        max_files=2,
        max_fields=MAX_FIELDS,
        max_part_size=MAX_BODY_BYTES,
    )
    return [
        (name, (await value.read()).decode("utf-8-sig") if isinstance(value, UploadFile) else value)
        for name, value in (await parser.parse()).multi_items()
    ]


def _kind_of(request: Request) -> str:
    """The media type of a body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request) -> bytes:
    """The body of a request. Raises Refused when it is too large."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise Refused(
                413, "the body is too large", f"at most {MAX_BODY_BYTES:,} bytes are read"
            )
    return bytes(body)


class Places:
    """The places for requests that are processed or wait. Belongs to one event loop."""

    def __init__(self) -> None:
        self._gate = asyncio.Semaphore(MAX_ACTIVE)
        self._taken: Counter[str] = Counter()
        self.draining = False

    @property
    def taken(self) -> int:
        """The number of requests that are processed or wait."""
        return self._taken.total()

    @contextmanager
    def refusing_when_stopped(self) -> Iterator[None]:
        """Answer a request that is cancelled because the server stops. The server cancels requests
        that are still under way when its time to stop is over; they would end without an answer.

        Raises:
            Refused: the block was cancelled because the server is stopping.
        """
        try:
            yield
        except asyncio.CancelledError:
            if not self.draining:
                raise
            reason = "it waits no longer for this request"
            raise Refused(503, "the server is stopping", reason) from None

    @asynccontextmanager
    async def take(self, caller: str) -> AsyncIterator[None]:
        """Hold a place while the block runs.

        Raises:
            Refused: all places are taken, or the caller's share of them, or the server is stopping.
        """
        if self.draining:
            raise Refused(503, "the server is stopping", "another one may answer")
        most = MAX_ACTIVE + MAX_WAITING
        if self.taken >= most:
            raise Refused(503, "the server is full", f"{self.taken:,} requests are under way")
        if self._taken[caller] >= most // 2:
            raise Refused(
                429, "too many requests", f"{self._taken[caller]:,} of this caller are under way"
            )
        self._taken[caller] += 1
        try:
            async with self._gate:
                yield
        finally:
            self._taken[caller] -= 1
            if not self._taken[caller]:
                del self._taken[caller]
