"""What HTTP costs: exact hits a second beside a bare handler, and a local route beside the library.

    python benchmarks/serving.py [--seconds 5]

Three servers of the same uvicorn settings run one after the other in processes of their own: a bare
Starlette handler that returns the bytes of an answer, ``router serve`` answering the same request
from its exact cache, and ``router serve`` deciding requests that it has not seen. The load comes
from this process over 16 connections that stay open. Only ratios of one run mean anything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from router import SemanticRouter, Settings

CONNECTIONS = 16
ROUTES = 300
REQUEST = "squash the last four commits on this branch"

BARE = """
import asyncio, sys
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from router.web.running import address_of, listen, run

answer = sys.argv[1].encode()

async def handle(request: Request) -> Response:
    await request.body()
    return Response(answer, media_type="application/json")

async def main() -> None:
    app = Starlette(routes=[Route("/v1/route", handle, methods=["POST"])])
    with listen("127.0.0.1", 0) as listening:
        said = f"serving at {address_of(listening)}"
        started = lambda: print(said, file=sys.stderr, flush=True)
        await run(app, listening, drain_seconds=1, started=started)

asyncio.run(main())
"""


@contextmanager
def server(*arguments: str, state: Path) -> Iterator[int]:
    """A server in a process of its own; gives its port."""
    environment = {**os.environ, "ROUTER_STATE_DIR": str(state), "XDG_CONFIG_HOME": str(state)}
    with subprocess.Popen(
        [sys.executable, *arguments], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        line = "" if process.stderr is None else process.stderr.readline()
        try:
            yield int(line.rpartition(":")[2])
        finally:
            process.terminate()


def posted(text: str) -> bytes:
    """A whole request over HTTP."""
    body = json.dumps({"request": text}).encode()
    head = (
        "POST /v1/route HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Connection:
    """One connection that stays open."""

    async def open(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(self, request: bytes) -> bytes:
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"HTTP/1.1 200 [^$]*content-length: (\d+)", head)
        if length is None:
            raise RuntimeError(head.decode())
        return await self._reader.readexactly(int(length[1]))


async def hits_a_second(port: int, seconds: float) -> tuple[float, bytes]:
    """How often the same request is answered, and with what."""
    request = posted(REQUEST)
    connections = [Connection() for _ in range(CONNECTIONS)]
    for connection in connections:
        await connection.open(port)
    answer = await connections[0].ask(request)
    end = perf_counter() + seconds

    async def ask_on(connection: Connection) -> int:
        number = 0
        while perf_counter() < end:
            await connection.ask(request)
            number += 1
        return number

    began = perf_counter()
    numbers = await asyncio.gather(*map(ask_on, connections))
    return sum(numbers) / (perf_counter() - began), answer


def new_requests() -> list[str]:
    """Requests that no cache has seen."""
    return [f"rebase branch {number} and resolve conflict {number}" for number in range(ROUTES)]


async def p50_over_http(port: int) -> float:
    """Milliseconds of a request that is decided anew, one at a time."""
    connection = Connection()
    await connection.open(port)
    await connection.ask(posted("warm up"))
    times = []
    for text in new_requests():
        began = perf_counter()
        await connection.ask(posted(text))
        times.append(perf_counter() - began)
    return statistics.median(times) * 1000


async def p50_of_the_library(state: Path) -> float:
    """The same without HTTP."""
    settings = Settings(state_dir=state, llm={"enabled": False})
    async with SemanticRouter(settings) as router:
        await router.route("warm up")
        times = []
        for text in new_requests():
            began = perf_counter()
            await router.route(text)
            times.append(perf_counter() - began)
    return statistics.median(times) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of hits")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        serve = ("-m", "router", "serve", "--port", "0", "--no-llm")
        with server(*serve, state=state / "hits") as port:
            hits, answer = asyncio.run(hits_a_second(port, seconds))
        with server("-c", BARE, answer.decode(), state=state) as port:
            bare, _ = asyncio.run(hits_a_second(port, seconds))
        with server(*serve, state=state / "routes") as port:
            over_http = asyncio.run(p50_over_http(port))
        library = asyncio.run(p50_of_the_library(state / "library"))
    print(f"exact hits a second   {hits:8.0f}   bare handler {bare:8.0f}   ratio {hits / bare:.2f}")
    print(
        f"local route, p50 ms   {over_http:8.2f}   library      {library:8.2f}   "
        f"difference {over_http - library:.2f}"
    )


if __name__ == "__main__":
    main()
