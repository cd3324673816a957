"""``router serve`` as a process: it starts safely, answers, and stops without losing anything."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from cascade import SQUASH
from mcp import Client, MCPError
from served import started
from servers.forgetful_server import ForgetfulServer
from typer.testing import CliRunner

from router.cli.app import app


async def test_it_answers_drains_and_keeps_what_it_learnt(
    served: tuple[subprocess.Popen[str], str], environment: dict[str, str]
) -> None:
    process, url = served
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        assert (await client.get("/healthz")).status_code == 200
        # The index is made behind: the first request waits for it.
        first = (await client.post("/v1/route", json={"request": SQUASH})).json()
        assert first["selected_skills"] == ["git"]
        assert (await client.get("/readyz")).json()["ready"]
        fed = await client.post(
            f"/v1/decisions/{first['id']}/feedback", json={"skills": ["testing"]}
        )
        assert fed.status_code == 200
        async with Client(f"{url}/mcp", read_timeout_seconds=60) as agent:
            again = await agent.call_tool("route", {"request": SQUASH})
            assert again.structured_content["selected_skills"] == ["testing"]
        async with client.stream("GET", "/v1/events") as events:
            assert events.status_code == 200
            process.send_signal(signal.SIGTERM)
            async for _ in events.aiter_bytes():
                pass  # the stream ends, and does not hold the server up
    output, errors = await asyncio.to_thread(process.communicate, timeout=60)
    assert (process.returncode, output, errors) == (0, "", "")
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "router", "learn", "status", "--json"],
        env=environment,
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout)["examples"]["feedback"] == 1


def test_requests_are_answered_while_no_further_file_can_be_opened(
    environment: dict[str, str],
) -> None:
    """Modules that a first request imported were files like all others."""
    code = f"""
import asyncio, resource
from router import SemanticRouter
from router.cli.serve import load_rest

async def main():
    async with SemanticRouter() as router:
        await load_rest(router)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        routed = await router.route({SQUASH!r})
        ranked = await router.rank({SQUASH!r} + " qwzx vhkq zzgr")
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(*routed.selected_skills, ranked.names[0])

asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("git git\n", "")


async def test_who_waits_longer_than_a_stopping_server_is_told_so(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    service = ForgetfulServer()
    service.fault = "hang"
    patient = {
        "ROUTER_MEMORY__DIRECTORY": str(tmp_path / "memory"),
        "ROUTER_MEMORY__SERVICE__URL": service.url,
        "ROUTER_MEMORY__SERVICE__PROBE_SECONDS": "60",
        "ROUTER_MEMORY__DEADLINE_SECONDS": "60",
    }
    with started(tmp_path, environment | patient, "--drain-seconds", "1") as (process, url):
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            query = {"query": "Why did we choose Postgres?"}
            waiting: list[asyncio.Future[Any]] = []
            async with Client(f"{url}/mcp", read_timeout_seconds=60) as agent:
                for asked in (
                    client.post("/v1/memory/recall", json=query),
                    client.post("/memory/ask", data=query, headers={"Origin": url}),
                    agent.call_tool("recall", query),
                ):
                    waiting.append(asyncio.ensure_future(asked))
                    assert await asyncio.to_thread(service.hanging.wait, 60)
                    service.hanging.clear()
                process.send_signal(signal.SIGTERM)
                answers = [await asked for asked in waiting[:2]]
                with pytest.raises(MCPError):  # the SDK does not pass on what a 503 says
                    await waiting[2]
        _, errors = await asyncio.to_thread(process.communicate, timeout=60)
    service.close()
    for answer in answers:
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "the server is stopping" in answer.text
    assert (process.returncode, "Traceback" in errors) == (0, False)


def test_slow_and_broken_clients_cost_nothing(served: tuple[subprocess.Popen[str], str]) -> None:
    _, url = served
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    broken = [
        b"",
        b"GET",
        b"POST /v1/route HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000,
        b"\x16\x03\x01 this is no HTTP\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50,
    ]
    held = []
    for text in broken * 20:
        connection = socket.create_connection(address)
        connection.sendall(text)
        held.append(connection)
    for connection in held[::2]:
        connection.close()
    with httpx.Client(base_url=url, timeout=60) as client:
        assert client.post("/v1/route", json={"request": SQUASH}).status_code == 200
    for connection in held[1::2]:
        connection.close()


@pytest.mark.parametrize("command", ["serve --port 0", "mcp --http --port 0", "mcp"])
def test_a_folder_that_is_not_there_is_told_before_anything_is_served(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    done = CliRunner().invoke(app, [*command.split(), "--skills", str(tmp_path / "gone")])
    assert (done.exit_code, "serving" in done.stderr) == (2, False)
    assert done.stderr.startswith(f"error: the skills folder {tmp_path / 'gone'} does not exist")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "other machines can reach 0.0.0.0: make keys"),  # noqa: S104
        (["--host", "192.0.2.1", "--key-env", "NOT_SET"], "the variable NOT_SET is not set"),
        (["--host", "0.0.0.0", "--key-env", "KEY"], "name those that they do (--allow-host)"),  # noqa: S104
    ],
    ids=["no key", "no variable", "no name"],
)
def test_an_open_address_without_its_guards_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: list[str], said: str
) -> None:
    monkeypatch.setenv("KEY", "secret")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    done = CliRunner().invoke(app, ["serve", *arguments])
    assert done.exit_code == 2
    assert said in done.stderr
