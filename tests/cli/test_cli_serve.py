"""``router serve`` as a process: it starts safely, answers, and stops without losing anything."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cascade import SQUASH, some_skills
from mcp import Client
from typer.testing import CliRunner

import router
from router.cli.app import app


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "ROUTER_STATE_DIR": str(tmp_path / "state"),
        "PYTHONPATH": str(Path(router.__file__).parents[1]),
    }


@pytest.fixture
def served(
    tmp_path: Path, environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and its address."""
    with started(tmp_path, environment) as running:
        yield running


@contextmanager
def started(
    tmp_path: Path, environment: dict[str, str], *more: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    skills = some_skills(tmp_path / "skills", "git", "testing")
    arguments = ["serve", "--port", "0", "--no-llm", "--skills", str(skills), *more]
    with subprocess.Popen(
        [sys.executable, "-m", "router", *arguments],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.fullmatch(r"serving at (http://127\.0\.0\.1:\d+)( with 2 workers)?\n", line)
        assert found is not None, line
        try:
            yield process, found[1]
        finally:
            process.terminate()


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


def test_the_command_asks_a_server_and_tells_what_it_would_itself(
    served: tuple[subprocess.Popen[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url = served
    direct = httpx.post(f"{url}/v1/route", json={"request": SQUASH, "trace": True}, timeout=60)
    done = CliRunner().invoke(app, ["route", SQUASH, "--server", url, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told.keys() == direct.json().keys()
    assert (told["selected_skills"], told["from_cache"]) == (["git"], True)
    assert "git" in CliRunner().invoke(app, ["route", SQUASH, "--server", url]).stdout
    explained = CliRunner().invoke(app, ["route", SQUASH, "--server", url, "--explain"]).stdout
    assert "git (selected)" in explained and "ahead of" in explained
    lines = f'{SQUASH}\n{{"request": "and now?", "id": 7, "history": ["{SQUASH}"]}}\n{{\n'
    (tmp_path / "lines").write_text(lines, encoding="utf-8")
    batch = CliRunner().invoke(app, ["route", "--batch", f"{tmp_path}/lines", "--server", url])
    first, second, third = map(json.loads, batch.stdout.splitlines())
    assert (batch.exit_code, first["result"]["selected_skills"]) == (1, ["git"])
    assert (second["id"], second["result"]["from_cache"]) == (7, False)
    assert "starts with { but is not JSON" in third["error"]
    monkeypatch.setenv("WRONG", "crk_wrong")
    for arguments, code, said in (
        (["--server", url, "--key-env", "WRONG"], 1, "this key is not known"),
        (["--server", "http://127.0.0.1:1"], 1, "is router serve running there?"),
        (["--server", "ftp://x"], 2, "expected http://HOST:PORT"),
        (["--server", url, "--no-llm"], 2, "--server goes without"),
    ):
        failed = CliRunner().invoke(app, ["route", SQUASH, *arguments])
        assert failed.exit_code == code, failed.output
        assert said in " ".join(failed.stderr.replace("│", " ").split())


def test_workers_answer_as_one_server(tmp_path: Path, environment: dict[str, str]) -> None:
    """Each request comes on a connection of its own, so that any worker may get it."""
    with started(tmp_path, environment, "--workers", "2") as (process, url):

        def ask(method: str, path: str, **sent: Any) -> httpx.Response:
            return httpx.request(method, url + path, timeout=60, **sent)

        with httpx.stream("GET", f"{url}/v1/events", timeout=60) as events:
            ids = {
                ask("POST", "/v1/route", json={"request": SQUASH}).json()["id"] for _ in range(20)
            }
            left = set(ids)
            for line in events.iter_lines():
                left -= {one for one in ids if one in line}
                if not left:
                    break
        for one in ids:
            assert ask("GET", f"/v1/decisions/{one}").status_code == 200
            page = ask("GET", f"/decisions/{one}")
            assert (page.status_code, SQUASH in page.text) == (200, True)
            said = {"data": {"said": "right"}, "headers": {"Origin": url}}
            assert ask("POST", f"/decisions/{one}/feedback", **said).status_code == 200
        assert ask("GET", "/v1/decisions/nothing").status_code == 404
        metrics = ask("GET", "/metrics").text
        counted = re.findall(r"^router_requests_total\{.*\} (\S+)$", metrics, re.MULTILINE)
        assert sum(map(float, counted)) == len(ids)
        for one in sorted(ids)[:4]:
            sent = {"skills": ["testing"]}
            assert ask("POST", f"/v1/decisions/{one}/feedback", json=sent).status_code == 200
        again = ask("POST", "/v1/route", json={"request": SQUASH}).json()
        assert again["selected_skills"] == ["testing"]
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output, errors) == (0, "", "")


def test_a_worker_that_dies_is_started_again(tmp_path: Path, environment: dict[str, str]) -> None:
    with started(tmp_path, environment, "--workers", "2") as (process, url):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        first, second = children.read_text().split()
        os.kill(int(first), signal.SIGKILL)
        answer = httpx.post(f"{url}/v1/route", json={"request": SQUASH}, timeout=60)
        assert answer.json()["selected_skills"] == ["git"]
        while len(now := children.read_text().split()) < 2 or first in now:
            httpx.get(f"{url}/healthz", timeout=60)
        assert second in now


def test_slow_and_broken_clients_cost_nothing(
    served: tuple[subprocess.Popen[str], str],
) -> None:
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
