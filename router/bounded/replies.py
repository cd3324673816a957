"""Bounds on what another machine may answer over HTTP, for every client that this package makes.

A reply is read as it arrives, and reading stops at a number of bytes and after a time. Replies are
asked for uncompressed, and a compressed one is refused: a few kilobytes can unpack to gigabytes. No
redirect is followed to another server, which would be sent the request, and perhaps the key.

The official SDKs are built on httpx or, in later versions, on its successor httpx2, and both take
such bounds as event hooks. So do clients that are made here.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

MAX_REPLY_BYTES: Final = 1_048_576
"""The longest answer of an LLM or of a memory service: some hundred times what is usual."""


class RefusedReply(Exception):
    """A reply is too large, endless, compressed, or leads to another server."""


def reply_bounds(*, max_bytes: int = MAX_REPLY_BYTES) -> dict[str, list[Callable[..., Any]]]:
    """The event hooks of an asynchronous client, each of whose calls has a deadline of its own. The
    body of a reply has at most ``max_bytes``. Calls raise ``RefusedReply``, which an SDK may wrap
    in an error of its own."""

    async def ask(request: Any) -> None:
        _ask_uncompressed(request)

    async def bound(response: Any) -> None:
        budget = _Budget.of(response, max_bytes, math.inf, time.monotonic)
        stream = response.stream
        base: type = _library(response).AsyncByteStream

        class Bounded(base):  # type: ignore[misc]  # httpx and httpx2 check for their own class
            async def __aiter__(self) -> AsyncIterator[bytes]:
                async for piece in stream:
                    budget.spend(piece)
                    yield piece

            async def aclose(self) -> None:
                await stream.aclose()

        response.stream = Bounded()

    return {"request": [ask], "response": [bound]}


def blocking_reply_bounds(
    *,
    seconds: float = math.inf,
    max_bytes: int = MAX_REPLY_BYTES,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, list[Callable[..., Any]]]:
    """The same for a client that is not asynchronous. No more of a reply is read ``seconds`` after
    its headers, by a monotonic ``clock``."""

    def bound(response: Any) -> None:
        budget = _Budget.of(response, max_bytes, seconds, clock)
        stream = response.stream
        base: type = _library(response).SyncByteStream

        class Bounded(base):  # type: ignore[misc]
            def __iter__(self) -> Iterator[bytes]:
                for piece in stream:
                    budget.spend(piece)
                    yield piece

            def close(self) -> None:
                stream.close()

        response.stream = Bounded()

    return {"request": [_ask_uncompressed], "response": [bound]}


class _Budget:
    """What is left of one reply's bytes and time."""

    def __init__(self, max_bytes: int, seconds: float, clock: Callable[[], float]) -> None:
        self._max_bytes = max_bytes
        self._seconds = seconds
        self._clock = clock
        self._began = clock()
        self._read = 0

    @classmethod
    def of(
        cls, response: Any, max_bytes: int, seconds: float, clock: Callable[[], float]
    ) -> _Budget:
        """The budget of a reply, from its headers.

        Raises:
            RefusedReply: it is compressed, or leads to another server.
        """
        encoding = response.headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            raise RefusedReply(f"the reply is compressed ({encoding}), which was not asked for")
        if response.has_redirect_location:
            asked = response.request.url
            target = asked.join(response.headers["Location"])
            if (target.scheme, target.host, target.port) != (asked.scheme, asked.host, asked.port):
                place = f"{target.scheme}://{target.netloc.decode('ascii', 'replace')}"
                raise RefusedReply(
                    f"the server redirects to {place}; set that address if it is right"
                )
        return cls(max_bytes, seconds, clock)

    def spend(self, piece: bytes) -> None:
        self._read += len(piece)
        if self._read > self._max_bytes:
            raise RefusedReply(f"the reply is over {self._max_bytes:,} bytes")
        if self._clock() - self._began > self._seconds:
            raise RefusedReply(f"the reply did not end within {self._seconds:g} s")


def _ask_uncompressed(request: Any) -> None:
    request.headers["Accept-Encoding"] = "identity"


def _library(response: Any) -> Any:
    """httpx or httpx2, whichever the reply is of."""
    return sys.modules[type(response).__module__.partition(".")[0]]


def refusal_in(error: BaseException | None) -> RefusedReply | None:
    """The refused reply that caused an error, however deep SDKs have wrapped it."""
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, RefusedReply):
            return error
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        else:
            error = error.__cause__ or error.__context__
        seen += 1
    return None
