"""Several workers behind one address."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from cascade import SQUASH
from served import environment_of, hung_up, launched, started

import router.web.workers as workers_module
from router.web.workers import run_workers


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return environment_of(tmp_path)


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
        for unknown in ("nothing", "%01", "a%3Fb"):  # it is asked for at the other worker
            assert ask("GET", f"/v1/decisions/{unknown}").status_code == 404
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


def test_workers_of_the_command_import_nothing_from_the_working_directory(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """It may be a stranger's: a clone's ``http.py`` was run by each worker."""
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("http", "yaml", "router"):
        (clone / f"{name}.py").write_text("open('was-run', 'w').close()\n")
    command = ("-P", "-c", "from router.cli import main; main()")
    with launched(clone, environment, "--no-llm", "--workers", "2", by=command) as (_, url):
        assert httpx.get(f"{url}/healthz", timeout=60).status_code == 200
        assert not (clone / "was-run").exists()


def test_ctrl_c_ends_workers_as_it_ends_one(tmp_path: Path, environment: dict[str, str]) -> None:
    with started(tmp_path, environment, "--workers", "2") as (process, _):
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
        assert (process.returncode, output, errors) == (130, "", "")


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGHUP])
def test_no_worker_is_left_when_the_first_process_ends(
    tmp_path: Path, environment: dict[str, str], by: signal.Signals
) -> None:
    with (
        hung_up(signal.SIG_DFL),
        started(tmp_path, environment, "--workers", "2") as (process, url),
    ):
        assert httpx.get(f"{url}/healthz", timeout=60).status_code == 200
        worker = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
        folder = Path(f"/proc/{worker}/cmdline").read_text().rstrip("\0").rpartition(":")[2]
        assert Path(folder).is_dir()
        process.send_signal(by)
        process.communicate(timeout=60)  # their standard error ends when the last of them has
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/healthz", timeout=60)
    assert process.returncode == (0 if by is signal.SIGHUP else -by)
    assert not Path(folder).exists()


def test_a_worker_that_dies_is_started_again(tmp_path: Path, environment: dict[str, str]) -> None:
    with started(tmp_path, environment, "--workers", "2") as (process, url):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        first, second = children.read_text().split()
        command = Path(f"/proc/{first}/cmdline").read_text().rstrip("\0")
        metrics = Path(command.rpartition(":")[2], "metrics")
        while len(kept := sorted(file.name for file in metrics.iterdir())) < 4:
            httpx.post(f"{url}/v1/route", json={"request": SQUASH}, timeout=60)
        os.kill(int(first), signal.SIGKILL)
        answer = httpx.post(f"{url}/v1/route", json={"request": SQUASH}, timeout=60)
        assert answer.json()["selected_skills"] == ["git"]
        while len(now := children.read_text().split()) < 2 or first in now:
            httpx.get(f"{url}/healthz", timeout=60)
        assert second in now
        assert kept == [f"{kind}_{n}.db" for kind in ("counter", "histogram") for n in (0, 1)]
        assert sorted(file.name for file in metrics.iterdir()) == kept  # it goes on with them
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert re.search(rf"worker \d \(process {first}\) was ended by signal 9; another", errors)


async def test_a_worker_that_is_being_started_when_the_server_stops_is_stopped_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def told_to_stop_meanwhile(*command: str, **more: Any) -> asyncio.subprocess.Process:
        processes.append(await start(*command, **more))
        if len(processes) == 2:
            signal.raise_signal(signal.SIGTERM)
            for _ in range(50):  # until the server has told all that it knows of
                await asyncio.sleep(0)
        return processes[-1]

    def command(_worker: int) -> list[str]:
        said = "import time; time.sleep(60)" if processes else "raise SystemExit(3)"
        return [sys.executable, "-c", said]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", told_to_stop_meanwhile)
    monkeypatch.setattr(workers_module, "FIRST_PAUSE", 0.0)
    with socket.socket() as listening:
        async with asyncio.timeout(30):
            await run_workers(
                command,
                1,
                listening=listening,
                environment=os.environ,
                drain_seconds=1,
                started=lambda: None,
                died=lambda _process: None,
            )
    assert [process.returncode for process in processes] == [3, -signal.SIGTERM]


async def test_nobody_can_connect_any_more_while_workers_finish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    processes: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def noted(*command: str, **more: Any) -> asyncio.subprocess.Process:
        processes.append(await start(*command, **more))
        return processes[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        place, number = listening.getsockname(), listening.fileno()
        worker = (
            "import os, signal, socket, sys\n"
            f"os.close({number})\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
            f"socket.create_connection({place!r})\n"  # it is ready
            "signal.sigwait([signal.SIGTERM])\n"
            f"sys.exit(10 if socket.socket().connect_ex({place!r}) else 20)\n"
        )
        running = asyncio.create_task(
            run_workers(
                lambda _worker: [sys.executable, "-c", worker],
                1,
                listening=listening,
                environment=os.environ,
                drain_seconds=1,
                started=lambda: None,
                died=lambda _process: None,
            )
        )
        async with asyncio.timeout(30):
            connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            connection.close()
            signal.raise_signal(signal.SIGTERM)
            await running
    assert [process.returncode for process in processes] == [10]
