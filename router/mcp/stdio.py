"""MCP over standard input and output: one message a line.

The SDK does the writing and keeps everything but messages off standard output. Reading is done here
for two reasons: a line is bounded, and the thread that waits for it is a daemon, so that the
process can end while no line comes. Lines that are no message are answered as JSON-RPC wants it.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, Final, TypeAlias, cast

import anyio
import mcp_types as types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from router.mcp.server import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    from router.mcp.server import SkillServer

    Streams: TypeAlias = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]

_TOO_LONG: Final = b"(a line that is too long)"  # no JSON, so it is answered like other faults


@asynccontextmanager
async def stdio_streams() -> AsyncIterator[Streams]:
    """The streams to and from the client, until it closes standard input. While they are open,
    whatever this process prints goes to standard error."""
    lines = cast("anyio.AsyncFile[str]", _Lines())  # the SDK only iterates over it
    async with stdio_server(stdin=lines) as (incoming, outgoing):
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        async with anyio.create_task_group() as group, receive:
            group.start_soon(_answer_faults, incoming, send, outgoing)
            yield receive, outgoing
            group.cancel_scope.cancel()


async def serve_stdio(server: SkillServer, streams: Streams) -> None:
    """Serve the one client until it closes standard input."""
    await server.protocol.run(*streams, server.protocol.create_initialization_options())


async def _answer_faults(
    incoming: ReadStream[SessionMessage | Exception],
    send: anyio.abc.ObjectSendStream[SessionMessage | Exception],
    outgoing: WriteStream[SessionMessage],
) -> None:
    """Pass messages on; answer what is none."""
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the server has stopped
        async with incoming, send:
            async for item in incoming:
                if isinstance(item, Exception):
                    await outgoing.send(SessionMessage(_fault(item)))
                else:
                    await send.send(item)


def _fault(error: Exception) -> types.JSONRPCError:
    if isinstance(error, ValidationError) and error.errors()[0]["type"] != "json_invalid":
        data = types.ErrorData(code=types.INVALID_REQUEST, message="not a JSON-RPC message")
    else:
        message = f"a line must be one JSON-RPC message of at most {MAX_MESSAGE_BYTES:,} bytes"
        data = types.ErrorData(code=types.PARSE_ERROR, message=message)
    return types.JSONRPCError(jsonrpc="2.0", id=None, error=data)


class _Lines:
    """The lines of standard input, for ``async for``."""

    def __init__(self) -> None:
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
        # A file object of its own: the interpreter closes sys.stdin when it ends, and aborts when
        # a thread is reading from it.
        file = os.fdopen(os.dup(sys.stdin.fileno()), "rb", closefd=False)
        line = b"\n"
        while line:
            line = _bounded_line(file)
            put = self._ready.put(line)
            try:
                asyncio.run_coroutine_threadsafe(put, self._loop).result()
            except (RuntimeError, CancelledError):  # the loop has ended, or is about to
                put.close()
                return


def _bounded_line(file: BinaryIO) -> bytes:
    """The next line, empty at the end; a longer one than the bound is read past and replaced."""
    line = file.readline(MAX_MESSAGE_BYTES)
    if len(line) < MAX_MESSAGE_BYTES or line.endswith(b"\n"):
        return line
    while (rest := file.readline(MAX_MESSAGE_BYTES)) and not rest.endswith(b"\n"):
        pass
    return _TOO_LONG
