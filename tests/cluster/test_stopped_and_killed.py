"""Processes of their own that are stopped and killed by signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from cascade import SQUASH, WAIT_SECONDS, write_skill
from cluster_process import ProcessEnded, SteeredProcess
from servers.redis_server import RedisServer

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def processes(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[list[SteeredProcess]]:
    """Three of one cluster. The LLM of the first one never answers in time."""
    folder = tmp_path_factory.mktemp("processes")
    started = []
    for number in range(3):
        skills = folder / f"skills-{number}"
        write_skill(skills, "alpha", "Answers requests by number.")
        settings: dict[str, Any] = {
            "state_dir": str(folder / f"state-{number}"),
            "shipped_skills": False,
            "cluster": {"url": redis_server.url, "namespace": "killed", "deadline_seconds": 5.0},
            "call_seconds": 0.2 if number else 600.0,
        }
        started.append(SteeredProcess(settings, skills))
    await asyncio.gather(*(process.start() for process in started))
    yield started
    await asyncio.gather(*(process.close() for process in started))


async def test_a_process_that_was_stopped_does_not_go_on_with_a_dropped_answer(
    processes: list[SteeredProcess],
) -> None:
    _, one, other = processes
    text = "request number one"
    async with asyncio.timeout(WAIT_SECONDS):
        first = await one.ask("route", text=text)
        again = await other.ask("route", text=text)
        assert again["decision"] == first["decision"]
        other.send(signal.SIGSTOP)
        await one.ask("forget", text=text)
        asked = asyncio.create_task(other.ask("route", text=text))
        await asyncio.sleep(0)  # the line is written, and read as soon as it goes on
        other.send(signal.SIGCONT)
        assert (await asked)["decision"] != first["decision"]


async def test_when_the_process_that_decides_is_killed_exactly_one_other_decides(
    processes: list[SteeredProcess],
) -> None:
    leader, *others = processes
    async with asyncio.timeout(WAIT_SECONDS):
        before = [(await other.ask("status"))["calls"] for other in others]
        decided = asyncio.create_task(leader.ask("route", text=SQUASH))
        while (await leader.ask("status"))["calls"] == 0:
            pass
        waiting = [asyncio.create_task(other.ask("route", text=SQUASH)) for other in others]
        await leader.kill()
        answers = await asyncio.gather(*waiting)
        after = [(await other.ask("status"))["calls"] for other in others]
    assert sum(after) == sum(before) + 1
    assert answers[0]["decision"] == answers[1]["decision"]
    assert isinstance((await asyncio.gather(decided, return_exceptions=True))[0], ProcessEnded)
