"""The HTTP client of a connection to an MCP server: it bounds replies, and it ends a request whose
caller has given it up.

The SDK tells a server of the older protocol that a call is given up, and still waits for the
answer, on a connection that nothing else can use: after a hundred such calls no other could be
made. So that message also ends the request that it is about.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar, cast

import anyio
import httpx2

from router.bounded.replies import reply_bounds
from router.web.loopback import direct

MAX_MESSAGE_BYTES: Final = 16 << 20
"""The longest message that a server may send over HTTP, as a reply or as an event of a stream."""
Result = TypeVar("Result")


class GivenUp(httpx2.SSEError, httpx2.StreamError):
    """Nobody waits for this reply any more. The SDK ends one request for either of these errors,
    the first in a stream of events and the second elsewhere. For any other it asks again, or gives
    up the whole connection."""


class EndingClient(httpx2.AsyncClient):
    """A client of one server, for the SDK."""

    def __init__(self, url: str, *, headers: Mapping[str, str], seconds: float) -> None:
        """Nothing is connected yet.

        Args:
            url: of the server. One on this machine is asked without the proxy of the environment.
            headers: of every request.
            seconds: for each step of a request. Only the answer to a call may take longer, which
                has a time of its own, and a stream of changes, which is silent for hours.
        """
        hooks = reply_bounds(max_bytes=MAX_MESSAGE_BYTES)
        [bound] = hooks["response"]

        async def bound_reply(response: httpx2.Response) -> None:
            if not response.headers.get("Content-Type", "").startswith("text/event-stream"):
                await bound(response)  # a stream has no end; the SDK bounds each of its events

        super().__init__(
            headers=dict(headers),
            timeout=seconds,
            event_hooks={**hooks, "response": [bound_reply]},
            **direct(httpx2.AsyncClient, url),
        )
        self._waiting: dict[object, _Wait] = {}

    async def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:
        """Send one message; see ``httpx2.AsyncClient.send``. A request that is given up before any
        answer is answered here: accepted."""
        message = json.loads(request.content) if request.method == "POST" else {}
        asks = "method" in message and "id" in message
        if asks or request.method == "GET":
            request.extensions["timeout"]["read"] = None
        if not asks:
            gives_up = message.get("method") == "notifications/cancelled"
            try:
                return await super().send(request, **more)
            except httpx2.TimeoutException:
                if not gives_up:
                    raise
                # Nothing rests on it, and the SDK would give up the whole connection.
                return httpx2.Response(202, request=request)
            finally:
                if gives_up:
                    given_up = self._waiting.pop(message["params"]["requestId"], None)
                    if given_up is not None:
                        given_up.end()
        number = message["id"]
        wait = self._waiting[number] = _Wait()
        answer = super().send
        try:
            response = await wait.on(lambda: answer(request, **more))
        except GivenUp:
            return httpx2.Response(202, request=request)
        except BaseException:
            self._waiting.pop(number, None)
            raise
        response.stream = _Ending(
            cast("httpx2.AsyncByteStream", response.stream),
            wait,
            lambda: self._waiting.pop(number, None),
        )
        return response


class _Wait:
    """What a request waits for: its answer, then each piece of it."""

    def __init__(self) -> None:
        self._ended = False
        self._scope = anyio.CancelScope()

    def end(self) -> None:
        self._ended = True
        self._scope.cancel()

    async def on(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Wait for some work.

        Raises:
            GivenUp: its caller has given the request up.
        """
        if not self._ended:
            with anyio.CancelScope() as self._scope:
                return await work()
        raise GivenUp("the caller waits no longer")


class _Ending(httpx2.AsyncByteStream):
    """The body of an answer, which ends when it is given up."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, wait: _Wait, done: Callable[[], object]
    ) -> None:
        self._stream = stream
        self._wait = wait
        self._done = done

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._stream)
        while True:
            try:
                piece = await self._wait.on(lambda: anext(pieces))
            except StopAsyncIteration:
                return
            yield piece

    async def aclose(self) -> None:
        self._done()
        await self._stream.aclose()
