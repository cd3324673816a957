"""Sends the router's events to HTTP clients that listen, as server-sent events.

A listener that is too slow misses events and is told how many; the router never waits for it. Texts
of requests are left out: ``/v1/decisions/{id}`` gives them to those who may see them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from router.events import (
    CacheLookup,
    Degraded,
    Event,
    Learned,
    LLMCalled,
    Recalled,
    Recovered,
    Reloaded,
    Routed,
)
from router.http.problems import Refused
from router.http.siblings import Siblings
from router.plain_json import plain_json

PATH: Final = "/v1/events"
MAX_LISTENERS: Final = 32
MAX_QUEUED: Final = 1_000
"""Events that wait for one listener."""
JOIN_SECONDS: Final = 2.0
"""How long to wait for the streams of the other workers, before the stream begins without them."""
ALIVE_SECONDS: Final = 15.0
"""After this time without an event a comment is sent, so that proxies do not close the stream."""
_ALIVE: Final = ": alive\n\n"


class EventStream:
    """Tells listeners what happens. Belongs to one event loop."""

    def __init__(self, siblings: Siblings | None = None) -> None:
        """Nobody listens yet; ``siblings`` are the other workers of the server, if it has any."""
        self._listeners: set[_Listener] = set()
        self._siblings = siblings

    def __call__(self, event: Event) -> None:
        if self._listeners:
            text = as_text(event)
            for listener in self._listeners:
                listener.put(text)

    def close(self) -> None:
        for listener in self._listeners:
            listener.end()

    async def listen(self, *, everywhere: bool = True) -> AsyncGenerator[bytes, None]:
        """What happens from now on, in the other workers too where ``everywhere`` is set, until the
        stream is closed. Raises Refused when there are too many listeners."""
        if len(self._listeners) >= MAX_LISTENERS:
            raise Refused(503, "too many listeners", f"at most {MAX_LISTENERS} may listen")
        listener = _Listener()
        self._listeners.add(listener)
        others = self._siblings.streams(PATH) if self._siblings and everywhere else []
        gates = [asyncio.Event() for _ in others]
        pumps = [
            asyncio.create_task(_pump(stream, listener, gate))
            for stream, gate in zip(others, gates, strict=True)
        ]
        try:
            with suppress(TimeoutError):  # one that is being started again joins later
                async with asyncio.timeout(JOIN_SECONDS):
                    for gate in gates:
                        await gate.wait()
            yield b": listening\n\n"
            async for text in listener.texts():
                yield text.encode()
        finally:
            self._listeners.discard(listener)
            for pump in pumps:
                pump.cancel()
            await asyncio.gather(*pumps, return_exceptions=True)


async def _pump(stream: AsyncIterator[str], listener: _Listener, stands: asyncio.Event) -> None:
    """Hand what another worker tells to a listener."""
    async for text in stream:
        stands.set()
        if text:
            listener.put(text)


class _Listener:
    def __init__(self) -> None:
        self._queue: asyncio.Queue[str] = asyncio.Queue(MAX_QUEUED)
        self._missed = 0
        self._ended = False

    def put(self, text: str) -> None:
        try:
            self._queue.put_nowait(text)
        except asyncio.QueueFull:
            self._missed += 1

    def end(self) -> None:
        self._ended = True
        self.put(_ALIVE)  # wakes one that waits; whose queue is full does not

    async def texts(self) -> AsyncIterator[str]:
        while not self._ended:
            text = _ALIVE
            with suppress(TimeoutError):
                async with asyncio.timeout(ALIVE_SECONDS):
                    text = await self._queue.get()
            yield text
            if self._missed and self._queue.empty():
                yield _sse("missed", {"events": self._missed})
                self._missed = 0


async def streamed(pieces: AsyncGenerator[bytes, None], media_type: str) -> Response:
    """The response that gives pieces as they come. The first is waited for, so that what is refused
    is a problem and no broken stream."""
    first = await anext(pieces)

    async def all_of_them() -> AsyncIterator[bytes]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(all_of_them(), headers=headers, media_type=media_type)


async def while_known(
    pieces: AsyncGenerator[bytes, None], identify: Callable[[], object]
) -> AsyncGenerator[bytes, None]:
    """A stream that has no end of its own, until ``identify`` refuses who listens: a key that was
    revoked hears nothing from then on. The first piece holds no event, and is always there."""
    async with aclosing(pieces):
        yield await anext(pieces)
        async for piece in pieces:
            try:
                identify()
            except Refused:
                return
            yield piece


def as_text(event: Event) -> str:
    return _sse(type(event).__name__.lower(), _fields(event))


def _sse(name: str, fields: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(fields, ensure_ascii=False)}\n\n"


_SENT_FIELDS: Final[Mapping[type, str]] = {
    CacheLookup: "stage outcome",
    LLMCalled: "provider model purpose seconds input_tokens output_tokens cost_usd",
    Learned: "skills source",
    Recalled: "layers items confidence partial seconds",
    Degraded: "part reason",
    Recovered: "part",
}
"""The fields of each event that a listener may see. What users say is not among them."""


def _fields(event: Event) -> dict[str, Any]:
    match event:
        case Routed(scope=scope, result=result, seconds=seconds):
            return {
                "id": result.id,
                "scope": scope,
                "decision": result.decision.value,
                "skills": list(result.selected_skills),
                "stage": result.stage.value,
                "from_cache": result.from_cache,
                "confidence": result.confidence,
                "seconds": seconds,
            }
        case Reloaded(change=change, seconds=seconds):
            return {
                "catalog_version": change.after.version,
                "changed": list(change.names),
                "seconds": seconds,
            }
    fields = {name: plain_json(getattr(event, name)) for name in _SENT_FIELDS[type(event)].split()}
    return fields | ({"failed": event.error is not None} if isinstance(event, LLMCalled) else {})
