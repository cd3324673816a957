"""MCP over standard input and output: one message a line.

The SDK does the writing and keeps everything but messages off standard output. Reading is done here
for two reasons: a line is bounded, and the thread that waits for it is a daemon, so that the
process can end while no line comes. Lines that are no message are answered as JSON-RPC wants it.

The first line has been read, and perhaps answered, by ``router/mcp/hello.py`` before.

A message takes this way, where what is not ours is the SDK's:

    standard input -> _Lines -> its reader -> _pass_requests -> the server
    standard output <- its writer <- _pass_answers <- the server

``_pass_requests`` answers lines that are no message, and ``_pass_answers`` leaves out what
``hello.py`` has answered already.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from router.mcp.lines import MAX_MESSAGE_BYTES, TOO_LONG, TOO_LONG_METHOD, bounded_line

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    from router.mcp.hello import Greeting
    from router.mcp.server import Servable

    Streams: TypeAlias = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]

_NOT_A_MESSAGE: Final = types.ErrorData(
    code=types.INVALID_REQUEST, message="not a JSON-RPC message"
)
_NOT_JSON: Final = types.ErrorData(
    code=types.PARSE_ERROR,
    message=f"a line must be one JSON-RPC message of at most {MAX_MESSAGE_BYTES:,} bytes",
)


@asynccontextmanager
async def stdio_streams(greeting: Greeting) -> AsyncIterator[Streams]:
    """The streams to and from the client, until it closes standard input. While they are open,
    whatever this process prints goes to standard error."""
    lines = cast("anyio.AsyncFile[str]", _Lines(greeting))  # the SDK only iterates over it
    async with AsyncExitStack() as last, stdio_server(stdin=lines) as (incoming, outgoing):
        # Only after the SDK's reader has ended: it fails when nobody can take what it has read.
        last.push_async_callback(incoming.aclose)
        to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        from_server, answers = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as reading:
            reading.start_soon(_pass_requests, incoming, to_server, outgoing)
            async with anyio.create_task_group() as writing:
                writing.start_soon(_pass_answers, answers, outgoing, greeting)
                async with requests, from_server:
                    yield requests, from_server
            # All answers have been passed on by now.
            reading.cancel_scope.cancel()


async def serve_stdio(server: Servable, streams: Streams) -> None:
    """Serve the one client until it closes standard input."""
    await server.protocol.run(*streams, server.protocol.create_initialization_options())


async def _pass_requests(
    incoming: ReadStream[SessionMessage | Exception],
    to_server: anyio.abc.ObjectSendStream[SessionMessage | Exception],
    outgoing: WriteStream[SessionMessage],
) -> None:
    """Pass messages on to the server; answer lines that are no messages with an error."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the server has stopped
        async with to_server:
            async for item in incoming:
                fault = _fault(item)
                if fault is None:
                    await to_server.send(item)
                else:
                    await outgoing.send(SessionMessage(fault))


async def _pass_answers(
    answers: anyio.abc.ObjectReceiveStream[SessionMessage],
    outgoing: WriteStream[SessionMessage],
    greeting: Greeting,
) -> None:
    """Pass on what the server says, but for the greeting that the client has got already."""
    waiting = greeting.answered
    async with answers, outgoing:  # the SDK ends when nobody can write any more
        async for answer in answers:
            message = answer.message
            if (
                waiting is not None
                and isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
                and message.id == waiting
            ):
                waiting = None
                continue
            await outgoing.send(answer)


def _fault(item: SessionMessage | Exception) -> types.JSONRPCError | None:
    """What to answer in place of the server."""
    if isinstance(item, SessionMessage):
        message = item.message
        if not isinstance(message, types.JSONRPCRequest) or message.method != TOO_LONG_METHOD:
            return None
        error = types.ErrorData(code=types.INVALID_REQUEST, message=TOO_LONG)
        return types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error)
    is_json = isinstance(item, ValidationError) and item.errors()[0]["type"] != "json_invalid"
    return types.JSONRPCError(
        jsonrpc="2.0", id=None, error=_NOT_A_MESSAGE if is_json else _NOT_JSON
    )


class _Lines:
    """The lines of standard input, for ``async for``."""

    def __init__(self, greeting: Greeting) -> None:
        self._greeting = greeting
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
        threading.Thread(target=self._read, name="mcp-stdin", daemon=True).start()

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> str:
        line = await self._ready.get()
        if not line:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")

    def _read(self) -> None:
        line = self._greeting.first or bounded_line(self._greeting.file)
        while True:
            put = self._ready.put(line)
            try:
                asyncio.run_coroutine_threadsafe(put, self._loop).result()
            except (RuntimeError, CancelledError):  # the loop has ended, or is about to
                put.close()
                return
            if not line:
                return
            line = bounded_line(self._greeting.file)
