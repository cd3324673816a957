"""Several processes, and everything that can go wrong, checked by an oracle over the whole history.

Processes are killed, stopped and cut off, skills are changed, people correct and drop answers, all
at random, while requests go on. ``ROUTER_CHAOS_SECONDS`` says for how long (8), and a run of a
minute or more has six processes in place of three; ``ROUTER_CHAOS_SEED`` says which run (1).
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import time
from collections import Counter
from collections.abc import Awaitable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cascade import write_skill
from cluster_process import ProcessEnded, SteeredProcess
from servers.redis_server import FaultyProxy, RedisServer

SECONDS = float(os.environ.get("ROUTER_CHAOS_SECONDS", "8"))
SEED = int(os.environ.get("ROUTER_CHAOS_SEED", "1"))
PROCESSES = 6 if SECONDS >= 60 else 3
TEXTS = [f"request number {word}" for word in "one two three four five six seven eight".split()]
SETTLE_SECONDS = 120.0
"""Longest that labels may take to reach every process once nothing is broken any more."""


@dataclass
class History:
    """What happened, and what must not have."""

    catalogs: dict[str, set[str]] = field(default_factory=dict)
    given: dict[str, set[str]] = field(default_factory=dict)  # decisions by text
    dropped: dict[str, float] = field(default_factory=dict)  # decision: when that was acknowledged
    alone: set[str] = field(
        default_factory=set
    )  # decided by a process that was cut off, for itself
    labels: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def answered(self, text: str, began: float, answer: dict[str, Any]) -> None:
        """Check one answer, and remember it."""
        self.counts["answers"] += 1
        self.counts["cached"] += answer["cached"]
        names = self.catalogs.get(answer["catalog"])
        for skill in answer["skills"]:
            if names is not None and skill not in names:
                self.faults.append(f"{skill} is not in {answer['catalog']}")
        decision = answer["decision"]
        if not decision.startswith("decision "):
            self.counts["decided without the LLM"] += 1  # each is like all others
            return
        if not answer["up"] and not answer["cached"]:
            self.alone.add(decision)
        dropped = self.dropped.get(decision)
        if dropped is not None and began > dropped and decision not in self.alone:
            self.faults.append(f"{text}: {decision} was dropped {began - dropped:.3f} s before")
        self.given.setdefault(text, set()).add(decision)


class Chaos:
    """Does one random thing after the other, several at a time."""

    def __init__(
        self, processes: list[SteeredProcess], proxies: list[FaultyProxy], history: History
    ) -> None:
        self.random = random.Random(SEED)
        self.processes, self.proxies, self.history = processes, proxies, history
        self.versions = 0

    async def run(self) -> None:
        """Until the time is over."""
        ends = time.monotonic() + SECONDS
        await asyncio.gather(*(self._requests(ends) for _ in range(4)), self._faults(ends))

    async def _requests(self, ends: float) -> None:
        while time.monotonic() < ends:
            process = self.random.choice(self.processes)
            text = self.random.choice(TEXTS)
            with suppress(ProcessEnded):
                await self._request(process, text, self.random.random())
            await asyncio.sleep(0.01)

    async def _request(self, process: SteeredProcess, text: str, chance: float) -> None:
        history = self.history
        if chance < 0.1:
            known = set(history.given.get(text, ()))
            said = await process.ask("forget", text=text)
            if self._is_fine(said) and said["acknowledged"]:
                now = time.monotonic()
                history.dropped.update(dict.fromkeys(known - history.dropped.keys(), now))
                history.counts["drops"] += 1
            return
        began = time.monotonic()
        answer = await process.ask("route", text=text)
        if not self._is_fine(answer):
            return
        history.answered(text, began, answer)
        if chance > 0.9:
            label = f"{text} {secrets.token_hex(3)}"  # a label of its own, to be found again
            asked = await process.ask("route", text=label)
            if self._is_fine(asked):
                said = await process.ask("feedback", id=asked["id"], skills=["alpha"])
                if self._is_fine(said):
                    history.labels.add(label)

    def _is_fine(self, answer: dict[str, Any]) -> bool:
        if "error" in answer:
            self.history.faults.append(answer["error"])
        return "error" not in answer

    async def _faults(self, ends: float) -> None:
        things = [self._kill, self._stop, self._cut, self._slow, self._deploy]
        while time.monotonic() < ends:
            thing = self.random.choice(things)
            self.history.counts[thing.__name__.strip("_")] += 1
            with suppress(ProcessEnded):
                await thing(self.random.randrange(PROCESSES))
            await asyncio.sleep(self.random.uniform(0.2, 1.0))

    async def _kill(self, number: int) -> None:
        await self.processes[number].kill()
        await self.processes[number].start()

    async def _stop(self, number: int) -> None:
        self.processes[number].send(signal.SIGSTOP)
        await asyncio.sleep(self.random.uniform(0.5, 5))
        self.processes[number].send(signal.SIGCONT)

    async def _cut(self, number: int) -> None:
        self.proxies[number].cut()
        await asyncio.sleep(self.random.uniform(0.5, 3))
        self.proxies[number].mend()

    async def _slow(self, number: int) -> None:
        self.proxies[number].delay = self.random.uniform(0.01, 1.0)
        await asyncio.sleep(1)
        self.proxies[number].mend()

    async def _deploy(self, _number: int) -> None:
        """Another version of the skills, one process after the other."""
        self.versions += 1
        for process in self.processes:
            write_skills(process.skills, self.versions)
            with suppress(ProcessEnded):
                told = await process.ask("reload")
                if self._is_fine(told):
                    self.history.catalogs[told["catalog"]] = set(told["names"])


def write_skills(folder: Path, version: int) -> None:
    """Skills ``alpha`` and ``beta``; what they say depends on the version."""
    write_skill(folder, "alpha", f"Answers requests by number. Edition {version}.")
    write_skill(folder, "beta", "Counts sheep at night.")


async def _until_all_know(processes: list[SteeredProcess], labels: set[str]) -> set[str]:
    """The labels that some process lacks when the time is over."""
    late = time.monotonic() + SETTLE_SECONDS
    while True:
        known = [set((await process.ask("labels"))["labels"]) for process in processes]
        missing = labels - set.intersection(*known)
        if not missing or time.monotonic() > late:
            return missing
        await asyncio.sleep(0.2)


async def _together(work: list[Awaitable[None]]) -> None:
    await asyncio.gather(*work)


@pytest.mark.timeout(SECONDS + 2 * SETTLE_SECONDS)
async def test_no_fault_costs_more_than_it_may(tmp_path: Path) -> None:
    server = RedisServer(tmp_path)
    history = History()
    try:
        async with AsyncExitStack() as stack:
            processes, proxies = [], []
            for number in range(PROCESSES):
                proxy = await stack.enter_async_context(FaultyProxy(server.port))
                write_skills(tmp_path / f"skills-{number}", 0)
                settings = {
                    "state_dir": str(tmp_path / f"state-{number}"),
                    "shipped_skills": False,
                    "cluster": {"url": proxy.url, "namespace": "chaos"},
                }
                proxies.append(proxy)
                processes.append(SteeredProcess(settings, tmp_path / f"skills-{number}"))
            await _together([process.start() for process in processes])
            try:
                await Chaos(processes, proxies, history).run()
                missing = await _until_all_know(processes, history.labels)
            finally:
                await _together([process.close() for process in processes])
    finally:
        server.close()
    print(dict(history.counts), f"{len(history.labels)} labels")  # noqa: T201 - for long runs, and for faults
    assert history.faults == []
    assert missing == set()
    assert history.counts["cached"] > 0
    assert history.counts["drops"] > 0
