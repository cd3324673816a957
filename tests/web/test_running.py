"""Listening: on what, and so that answers are sent at once."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from served import hung_up
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse

from router.errors import ConfigurationError
from router.web.running import address_of, listen, run, run_loop, stop_signals


async def test_answers_are_sent_without_delay() -> None:
    """Without it each answer on an open connection waits 40 ms for an acknowledgement."""
    accepted: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        accepted.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with listen("127.0.0.1", 0) as listening:
        async with await asyncio.start_server(take, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            assert await accepted == 1
            writer.close()


def test_the_address_stands_as_in_a_url() -> None:
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert address_of(listening) == f"http://127.0.0.1:{port}"
        with pytest.raises(ConfigurationError, match=f"cannot listen on 127.0.0.1, port {port}"):
            listen("127.0.0.1", port)


def test_what_was_interrupted_before_it_listens_ends_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def interrupted(listening: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()  # as Ctrl-C does while something is imported
        await run(Starlette(), listening, drain_seconds=1)

    with listen("127.0.0.1", 0) as listening, pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted(listening))
    assert caplog.text == ""


async def test_a_terminal_that_is_closed_ends_the_server_in_order() -> None:
    told: list[str] = []
    with hung_up(signal.SIG_DFL), listen("127.0.0.1", 0) as listening:
        await run(
            Starlette(),
            listening,
            drain_seconds=1,
            started=lambda: signal.raise_signal(signal.SIGHUP),
            stopping=lambda: told.append("stopping"),
        )
    assert told == ["stopping"]


async def test_a_request_that_comes_as_the_server_stops_is_answered_as_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.web.running.LAST_SECONDS", 30.0)
    heads: list[bytes] = []

    async def ask(address: tuple[str, int]) -> None:
        reader, writer = await asyncio.open_connection(*address)
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            await reader.readexactly(len("fine"))
            if len(heads) == 1:
                signal.raise_signal(signal.SIGHUP)
                with pytest.raises(ConnectionRefusedError):
                    while True:
                        socket.create_connection(address).close()
                        await asyncio.sleep(0)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()

    asking: list[asyncio.Task[None]] = []
    with hung_up(signal.SIG_DFL), listen("127.0.0.1", 0) as listening:
        address = listening.getsockname()
        await run(
            PlainTextResponse("fine"),
            listening,
            drain_seconds=1,
            started=lambda: asking.append(asyncio.create_task(ask(address))),
        )
    await asking[0]
    assert [b"connection: close" in head.lower() for head in heads] == [False, True]


def test_under_nohup_the_server_goes_on() -> None:
    with hung_up(signal.SIG_IGN):
        assert stop_signals() == (signal.SIGTERM,)


async def test_what_is_given_up_while_it_serves_ends_in_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As a server does whose skills turn out to be unreadable."""
    begun, ended = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        ended.set()

    with listen("127.0.0.1", 0) as listening:
        app = Starlette(lifespan=lifespan)
        serving = asyncio.create_task(run(app, listening, drain_seconds=1, started=begun.set))
        await begun.wait()
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
    assert ended.is_set()
    assert caplog.text == ""


def test_a_future_that_uvloop_sets_too_late_is_not_told_and_what_else_fails_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    pytest.importorskip("uvloop")

    async def work() -> None:
        loop = asyncio.get_running_loop()
        waited, came = loop.create_future(), asyncio.Event()
        waited.cancel()
        one, other = socket.socketpair()
        with one, other:
            loop.add_reader(one, waited.set_result, None)  # as anyio waits for a socket
            other.send(b"x")
            loop.call_soon(lambda: [].pop())
            loop.call_later(0, came.set)
            await came.wait()
            loop.remove_reader(one)

    run_loop(work())
    (told,) = caplog.records
    assert "IndexError" in str(told.exc_info)
