"""Listening, and stopping in order: what is under way is finished, then the process ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any, Final

from starlette.types import ASGIApp

from router.errors import ConfigurationError

BACKLOG: Final = 2_048
"""Connections that wait to be taken."""
IDLE_SECONDS: Final = 75
"""An idle connection is closed after so long. Clients keep theirs for 5 to 60 s; one that sends a
request at the moment at which the server closes loses it."""

LAST_SECONDS: Final = 0.2
"""A stopping server answers so long what was on its way as it was told to stop, and says with each
answer that it is the last of its connection. Closed at once, such requests would be lost."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends without delay only where the protocol is named, as create_server does not: each
    # answer on a connection that stays open would wait 40 ms for the client's acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # elsewhere it would let others take the port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
        return listening
    except OSError as error:
        listening.close()
        raise ConfigurationError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}"
        ) from error


def address_of(listening: socket.socket) -> str:
    """The address of a listening socket, as it stands in a URL."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that tell a server to stop in order. A terminal that is closed sends SIGHUP; a
    process that ``nohup`` started goes on."""
    hangup: signal.Signals | None = getattr(signal, "SIGHUP", None)  # not on Windows
    if hangup is None or signal.getsignal(hangup) is signal.SIG_IGN:
        return (signal.SIGTERM,)
    return (signal.SIGTERM, hangup)


def run_loop(work: Coroutine[Any, Any, None]) -> None:
    """``asyncio.run``, in uvloop's event loop where there is one: each request costs 0.15 ms less
    CPU. uvloop does not exist for Windows."""
    if find_spec("uvloop") is None:
        asyncio.run(work)
    else:
        import uvloop

        uvloop.run(_quietly(work))


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    """The work, without a traceback in the log for each time that anyio 4.16 is told by uvloop that
    a socket can be read once it has stopped waiting for that: nothing is lost."""

    def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        too_late = isinstance(context.get("exception"), asyncio.InvalidStateError)
        if not (too_late and "method set_result of" in context["message"]):
            loop.default_exception_handler(context)

    asyncio.get_running_loop().set_exception_handler(tell)
    await work


async def run(
    app: ASGIApp,
    listening: socket.socket,
    *more: socket.socket,
    drain_seconds: float,
    started: Callable[[], None] = lambda: None,
    stopping: Callable[[], None] = lambda: None,
) -> None:
    """Serve until the process is told to stop. Call it in the main thread, which gets the signals.

    Args:
        app: the ASGI application.
        listening: as ``listen`` gives it; it is closed at the end.
        more: further sockets that listen.
        drain_seconds: how long requests under way may take once the process is told to stop.
        started: is called once clients can connect.
        stopping: is called when the process is told to stop; it ends streams, which would not end
            by themselves.
    """
    import uvicorn

    from router.web.connections import ImpatientProtocol

    class Running(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            for server in self.servers:
                server.close()
            connections = self.server_state.connections
            for connection in connections:
                if isinstance(connection, ImpatientProtocol):
                    connection.conn.is_last = True
            end = time.monotonic() + LAST_SECONDS
            while connections and time.monotonic() < end:  # noqa: ASYNC110 - uvicorn tells of none
                await asyncio.sleep(0.01)
            stopping()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        http=ImpatientProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=max(1, round(drain_seconds)),
    )
    running = Running(config)
    # uvicorn handles signals while it runs, and raises them again when it has stopped; SIGTERM
    # would then end the process before the router is closed.
    for name in stop_signals():
        signal.signal(name, lambda *_: setattr(running, "should_exit", True))
    # Ctrl-C may have cancelled this task while modules were imported. It ends here, and not inside
    # uvicorn, which would log a traceback.
    await asyncio.sleep(0)
    serving = asyncio.create_task(running.serve(sockets=[listening, *more]))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        # What is served cannot be, such as skills that nobody can read. The application is ended in
        # order: it would be given up with the event loop, and uvicorn would log a traceback.
        running.should_exit = True
        await serving
        raise
