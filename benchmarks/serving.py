"""What HTTP costs: exact hits a second beside a bare handler, and a local route beside the library.

    python benchmarks/serving.py [--seconds 5] [--steady 600] [--broken 10000]

**Exact hits**: ``router serve`` answers the same request from its exact cache, and a bare Starlette
handler under the same uvicorn settings returns the bytes of that answer, one after the other. The
load comes from this process over 16 connections that stay open.

**A local route**: requests that nobody has seen are asked one at a time, each of three processes
in turn: ``router serve``, the library behind a socket that takes lines, and the bare handler. So
all three wait equally long between two requests, and what else the machine does hits them alike. A
library that is called without a pause is quicker, because the processor's caches stay warm; its
time stands beside the others. What the bare handler takes is the floor: nothing served by Starlette
and uvicorn is quicker. The library measures its own calls; the others' times include the client's
side of the socket. CPU is that of each process, and holds on a busy machine too.

Only ratios and differences of one run mean anything.

``--steady`` keeps 200 connections busy for so many seconds while a skill is saved every second, and
compares with as many seconds, at most 60, without that: errors, p99, and the server's memory after
the first minute and at the end. ``--broken`` opens so many connections that are slow or wrong
(headers bit by bit, half a body, pipelining, headers without an end, no HTTP, resets), 500 at a
time, while others are served: their p99 beside that of the same load without them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import perf_counter

from router import SemanticRouter, Settings

CONNECTIONS = 16
ROUTES = 300
STEADY_CONNECTIONS = 200
MAX_REPLY = 1 << 20
HEAD = b"POST /v1/route HTTP/1.1\r\nHost: localhost\r\n"
WRONG = (
    b"",
    b"POST",
    HEAD + b"Content-Length: 100\r\n\r\n{",
    HEAD + b"X-Long: " + b"y" * 100_000,
    b"\x16\x03\x01 this is no HTTP\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50,
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    HEAD + b"Content-Type: application/json\r\nContent-Length: 5000000\r\n\r\n",
)
REQUEST = "squash the last four commits on this branch"
SERVE = ("-m", "router", "serve", "--port", "0", "--no-llm")
WARMING_UP = [f"merge branch {number} and undo commit {number}" for number in range(20)]

BARE = """
import sys
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from router.web.running import address_of, listen, run, run_loop

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

run_loop(main())
"""

LIBRARY = """
import asyncio, sys
from pathlib import Path
from time import perf_counter
from router import SemanticRouter, Settings

async def main() -> None:
    settings = Settings(state_dir=Path(sys.argv[1]), llm={"enabled": False})
    async with SemanticRouter(settings) as router:

        async def handle(reader, writer):
            while line := await reader.readline():
                began = perf_counter()
                await router.route(line.decode().strip())
                writer.write(f"{perf_counter() - began}\\n".encode())
            writer.close()

        listening = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        print(f"serving at :{port}", file=sys.stderr, flush=True)
        await listening.serve_forever()

asyncio.run(main())
"""


@contextmanager
def server(*arguments: str, state: Path) -> Iterator[tuple[int, int]]:
    """A server in a process of its own; gives its port and process id."""
    environment = {**os.environ, "ROUTER_STATE_DIR": str(state), "XDG_CONFIG_HOME": str(state)}
    with subprocess.Popen(
        [sys.executable, *arguments], env=environment, stderr=subprocess.PIPE, text=True
    ) as process:
        line = "" if process.stderr is None else process.stderr.readline()
        # What it says later is read too: a full pipe would hold it up.
        threading.Thread(target=process.communicate, daemon=True).start()
        port = line.strip().rpartition(":")[2]
        if not port.isdigit():  # it says why it cannot serve, such as an extra that is missing
            sys.exit(line.strip() or "the server ended without a word")
        try:
            yield int(port), process.pid
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


def length_of(head: bytes) -> int:
    """How long the body is that follows these headers of an answer."""
    length = re.search(rb"HTTP/1.1 200 [^$]*content-length: (\d+)", head)
    if length is None:
        raise RuntimeError(head.decode())
    return int(length[1])


class Connection:
    """One connection that stays open."""

    async def open(self, port: int) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)

    async def ask(self, request: bytes) -> bytes:
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        return await self._reader.readexactly(length_of(head))


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


async def ask_for(
    port: int, seconds: float, *, connections: int, pause: float = 0.0
) -> tuple[list[float], list[str]]:
    """The times of answers, in seconds and sorted, and the errors."""
    request, times, errors = posted(REQUEST), [], []
    end = perf_counter() + seconds

    async def ask_on(_number: int) -> None:
        connection: Connection | None = None
        while perf_counter() < end:
            began = perf_counter()
            try:
                if connection is None:
                    connection = Connection()
                    await connection.open(port)
                await connection.ask(request)
                times.append(perf_counter() - began)
            except (OSError, RuntimeError, asyncio.IncompleteReadError) as error:
                errors.append(f"{type(error).__name__}: {error}"[:80])
                connection = None
            await asyncio.sleep(pause)

    await asyncio.gather(*map(ask_on, range(connections)))
    return sorted(times), errors


def p99(times: list[float]) -> float:
    """Milliseconds."""
    return times[int(len(times) * 0.99)] * 1000


def memory_mib(process: int) -> float:
    """What a process holds."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    return 0.0 if found is None else int(found[1]) / 1024


def save_a_skill(folder: Path, number: int) -> None:
    (folder / "changing").mkdir(parents=True, exist_ok=True)
    text = f"---\nname: changing\ndescription: Waters plant {number} in the garden.\n---\nWater.\n"
    (folder / "changing" / "SKILL.md").write_text(text, encoding="utf-8")


async def steady(port: int, process: int, folder: Path, seconds: float) -> None:
    """200 connections while skills are saved, beside the same without."""
    load = {"connections": STEADY_CONNECTIONS, "pause": 0.5}
    await ask_for(port, 5, **load)  # type: ignore[arg-type]  # an int and a float
    quiet, before = await ask_for(port, min(seconds, 60), **load)  # type: ignore[arg-type]
    held: list[float] = []

    async def save() -> None:
        for number in range(1_000_000):
            await asyncio.to_thread(save_a_skill, folder, number)
            held.append(memory_mib(process))
            await asyncio.sleep(1)

    saving = asyncio.create_task(save())
    times, errors = await ask_for(port, seconds, **load)  # type: ignore[arg-type]
    saving.cancel()
    print(
        f"steady, {seconds:g} s        p99 {p99(times):.1f} ms   quiet {p99(quiet):.1f} ms   "
        f"ratio {p99(times) / p99(quiet):.2f}   errors {len(before) + len(errors)}   "
        f"memory {held[min(60, len(held) - 1)]:.0f} -> {held[-1]:.0f} MiB   {set(errors) or ''}"
    )


async def broken(port: int, number: int) -> None:
    """Clients that do everything wrong, while others are served."""
    load = {"connections": 8, "pause": 0.01}
    await ask_for(port, 2, **load)  # type: ignore[arg-type]
    alone, _ = await ask_for(port, 10, **load)  # type: ignore[arg-type]
    done = 0

    async def misbehave(kind: int) -> None:
        nonlocal done
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(WRONG[kind % len(WRONG)])
            if kind % 7 == 0:  # a reset in the middle
                writer.transport.abort()
            elif kind % 20 == 3:  # it hangs until the server has had enough of it
                await reader.read(MAX_REPLY)
            writer.close()
        except OSError:
            pass
        done += 1

    async def flood() -> None:
        gate = asyncio.Semaphore(500)

        async def one(kind: int) -> None:
            async with gate:
                await misbehave(kind)

        await asyncio.gather(*map(one, range(number)))

    flooding = asyncio.create_task(flood())
    times: list[float] = []
    errors: list[str] = []
    while not flooding.done():
        more, wrong = await ask_for(port, 2, **load)  # type: ignore[arg-type]
        times += more
        errors += wrong
    times.sort()
    print(
        f"{done:,} broken clients  p99 {p99(times):.1f} ms   without {p99(alone):.1f} ms   "
        f"ratio {p99(times) / p99(alone):.2f}   errors of the others {len(errors)}"
    )


def ask_once(connection: socket.socket, text: str) -> bytes:
    """The answer to one request, by the cheapest client there is."""
    connection.sendall(posted(text))
    head, _, body = connection.recv(MAX_REPLY).partition(b"\r\n\r\n")
    while len(body) < length_of(head):
        body += connection.recv(MAX_REPLY)
    return body


def cpu_seconds(process: int) -> float:
    """What the main thread of a process has computed."""
    return int(Path(f"/proc/{process}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def local_routes(state: Path) -> None:
    """Prints what a local route takes over HTTP and in the library, and what the floor is."""
    with ExitStack() as stack:
        served, library = (
            stack.enter_context(server(*command, state=state / name))
            for name, command in (
                ("served", SERVE),
                ("library", ("-c", LIBRARY, str(state / "library"))),
            )
        )
        with socket.create_connection(("127.0.0.1", served[0])) as connection:
            answer = ask_once(connection, "warm up").decode()
        bare = stack.enter_context(server("-c", BARE, answer, state=state))
        over_http, by_line, floor = (
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            for port, _ in (served, library, bare)
        )
        took: list[list[float]] = [[], [], []]
        began = [0.0] * 3
        for number, text in enumerate([*WARMING_UP, *new_requests()]):
            if number == len(WARMING_UP):
                began = [cpu_seconds(process) for _, process in (served, library, bare)]
            start = perf_counter()
            ask_once(over_http, text)
            took[0].append(perf_counter() - start)
            by_line.sendall(text.encode() + b"\n")
            took[1].append(float(by_line.recv(MAX_REPLY)))
            start = perf_counter()
            ask_once(floor, text)
            took[2].append(perf_counter() - start)
        ended = [cpu_seconds(process) for _, process in (served, library, bare)]
    cpu = [(end - start) / ROUTES * 1000 for start, end in zip(began, ended, strict=True)]
    p50 = [statistics.median(times[len(WARMING_UP) :]) * 1000 for times in took]
    unpaused = asyncio.run(p50_without_a_pause(state / "unpaused"))
    for name, (served_ms, library_ms, bare_ms) in (("p50 ms", p50), ("CPU ms", cpu)):
        above = served_ms - library_ms
        print(
            f"local route, {name}   over HTTP {served_ms:.2f}   library {library_ms:.2f}   "
            f"difference {above:.2f}   floor {bare_ms:.2f}   above the floor {above - bare_ms:.2f}"
        )
    print(f"the library without a pause, p50 ms   {unpaused:.2f}")


def new_requests() -> list[str]:
    """Requests that no cache has seen."""
    return [f"rebase branch {number} and resolve conflict {number}" for number in range(ROUTES)]


async def p50_without_a_pause(state: Path) -> float:
    """Milliseconds of a request to the library, called in a loop."""
    settings = Settings(state_dir=state, llm={"enabled": False})
    async with SemanticRouter(settings) as router:
        for text in WARMING_UP:
            await router.route(text)
        times = []
        for text in new_requests():
            began = perf_counter()
            await router.route(text)
            times.append(perf_counter() - began)
    return statistics.median(times) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement of hits")
    parser.add_argument("--steady", type=float, default=0.0, help="seconds of the steady load")
    parser.add_argument("--broken", type=int, default=0, help="number of broken clients")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        if given.steady or given.broken:
            skills = state / "skills"
            save_a_skill(skills, 0)
            shipped = str(Path(__file__).parents[1] / "skills")
            both = (*SERVE, "--skills", str(skills), "--skills", shipped)
            with server(*both, state=state / "steady") as (port, process):
                if given.steady:
                    asyncio.run(steady(port, process, skills, given.steady))
                if given.broken:
                    asyncio.run(broken(port, given.broken))
            return
        with server(*SERVE, state=state / "hits") as (port, _):
            hits, answer = asyncio.run(hits_a_second(port, given.seconds))
        with server("-c", BARE, answer.decode(), state=state) as (port, _):
            bare, _ = asyncio.run(hits_a_second(port, given.seconds))
        print(f"exact hits a second   {hits:.0f}   bare {bare:.0f}   ratio {hits / bare:.2f}")
        local_routes(state)


if __name__ == "__main__":
    main()
