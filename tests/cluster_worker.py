"""One process of a cluster, steered by JSON lines: each line on stdin is a call, each on stdout its
answer, in whatever order they come about.

Its LLM is a plug-in that counts its calls and gives each answer a number of its own, so that an
answer that comes again can be told from a new one.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

from router import SemanticRouter, Settings
from router.events import Degraded, Event
from router.llm.protocol import Completion, OutputMode, Prompt

CALL_SECONDS: Final = 0.2


class Counting:
    """Chooses the skill that is named first in the request, or ``alpha``."""

    provider = "counting"
    model = "counting-1"

    def __init__(self, call_seconds: float) -> None:
        self.calls = 0
        self._call_seconds = call_seconds

    async def complete(self, prompt: Prompt, *, timeout_seconds: float) -> Completion:
        self.calls += 1
        number = f"decision {os.getpid()}-{self.calls}"
        await asyncio.sleep(self._call_seconds)
        offered = prompt.user if isinstance(prompt.user, str) else json.dumps(prompt.user)
        skill = "alpha" if '"alpha"' in offered else "beta"
        answer = {
            "skills": [skill],
            "memory_layers": [],
            "mission_brief": "",
            "reasoning": number,
            "confidence": 0.9,
        }
        return Completion(json.dumps(answer), OutputMode.JSON_SCHEMA)

    async def aclose(self) -> None:
        """There is nothing to close."""


class Worker:
    """Does what the lines say."""

    def __init__(self, router: SemanticRouter, model: Counting) -> None:
        self._router = router
        self._model = model
        self._losses = 0
        router.events.subscribe(self._count)

    def _count(self, event: Event) -> None:
        self._losses += isinstance(event, Degraded)

    @property
    def _is_up(self) -> bool:
        cluster = self._router.cluster
        return cluster is not None and cluster.link.is_up

    async def answer(self, call: dict[str, Any]) -> dict[str, Any]:
        """What one call gives."""
        router, kind = self._router, call["do"]
        if kind == "route":
            was_up, began = self._is_up, time.perf_counter()
            result = await router.route(call["text"])
            return {
                "id": result.id,
                "skills": result.selected_skills,
                "decision": result.reasoning,
                "catalog": result.catalog_version,
                "cached": result.from_cache,
                "stage": result.stage.value,
                "up": was_up and self._is_up,
                "seconds": time.perf_counter() - began,
            }
        if kind == "routes":  # as quickly as it can
            began = time.perf_counter()
            texts = call["texts"]
            for start in range(0, len(texts), 50):
                await asyncio.gather(*(router.route(text) for text in texts[start : start + 50]))
            return {"seconds": time.perf_counter() - began}
        if kind == "feedback":
            await router.feedback(call["id"], call["skills"])
        elif kind == "forget":
            was_up, losses = self._is_up, self._losses
            await router.forget(call["text"])
            return {"acknowledged": was_up and losses == self._losses}
        elif kind == "reload":
            await router.reload()
        elif kind == "labels":
            return {"labels": [label[2] for label in await router.learner.labels()]}
        return {
            "catalog": router.catalog.version,
            "names": sorted(router.catalog.skills),
            "calls": self._model.calls,
            "up": self._is_up,
        }


async def main(settings: dict[str, Any], skills: str) -> None:
    """Serve the lines until stdin ends."""
    model = Counting(settings.pop("call_seconds", CALL_SECONDS))
    with_llm = settings.pop("asks_llm", True)
    async with SemanticRouter(
        Settings(**settings), roots=[Path(skills)], models=[model] if with_llm else []
    ) as router:
        worker = Worker(router, model)
        lines = asyncio.StreamReader(limit=2**24)
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
        )
        say({"opened": True})

        async def one(call: dict[str, Any]) -> None:
            try:
                said = await worker.answer(call)
            except Exception as error:  # noqa: BLE001 - whoever steers this process judges it
                said = {"error": f"{type(error).__name__}: {error}"}
            say({"number": call["number"], **said})

        async with asyncio.TaskGroup() as group:
            while line := await lines.readline():
                group.create_task(one(json.loads(line)))


def say(answer: dict[str, Any]) -> None:
    """Write one line."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1]), sys.argv[2]))
