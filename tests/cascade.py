"""What the tests of the whole cascade share: routers over real skills, and plug-ins that wait."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray
from servers.openai_server import OpenAIServer

import router
from router import Decision, Outcome, RoutingResult, SemanticRouter, Settings
from router.llm.protocol import ChatModel, Completion, OutputMode, Prompt
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.encoders import Encoder
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import load_catalog

SHIPPED: Final = Path(__file__).parents[1] / "skills"
SQUASH: Final = "squash the last four commits on this branch into one"
SQUASH_PARAPHRASED: Final = "Please squash the last four commits on this branch into one!"
NONSENSE: Final = "colourless green ideas sleep furiously qwzx"
WAIT_SECONDS: Final = 120.0
"""Longest that a test waits for an event; reached only when it fails."""


def answer(*skills: str, confidence: float = 0.9, **fields: Any) -> str:
    """An LLM's answer, as text."""
    return json.dumps(
        {
            "skills": list(skills),
            "memory_layers": ["project"],
            "mission_brief": "Do what is asked.",
            "reasoning": "It is what was asked.",
            "confidence": confidence,
            **fields,
        }
    )


def settings_for(
    state: Path,
    server: OpenAIServer | None = None,
    *,
    llm: dict[str, Any] | None = None,
    **more: Any,
) -> Settings:
    """Settings with their state in a folder, and with ``server`` as the only LLM or none."""
    section: dict[str, Any] = {"enabled": False}
    if server is not None:
        openai = {"base_url": server.url, "api_key": "sk-test", "model": "gpt-test"}
        section = {"providers": ["openai"], "openai": openai, "max_retries": 0, **(llm or {})}
    return Settings(state_dir=state, llm=section, **more)


def router_over(
    skills: Path,
    state: Path,
    server: OpenAIServer | None = None,
    *,
    llm: dict[str, Any] | None = None,
    models: Sequence[ChatModel] | None = None,
    encoder: Encoder | None = None,
    **more: Any,
) -> SemanticRouter:
    """A router over one folder of skills, not open yet."""
    settings = settings_for(state, server, llm=llm, **more)
    return SemanticRouter(
        settings, roots=[skills], models=models, encoder=encoder or bundled_encoder()
    )


@cache
def bundled_encoder() -> BundledEncoder:
    """Loaded once: that is a third of the time that opening a router takes."""
    return BundledEncoder()


def shipped_router(state: Path, server: OpenAIServer | None = None, **more: Any) -> SemanticRouter:
    """A router over the shipped skills, not open yet."""
    return router_over(SHIPPED, state, server, **more)


def shipped_index(folder: Path) -> SkillIndex:
    """The index over the shipped skills, with its vectors in a folder; to be closed."""
    encoder = bundled_encoder()
    store = VectorStore(folder, identity=encoder.identity)
    return SkillIndex.build(load_catalog([SHIPPED]), encoder=encoder, store=store)


def some_skills(folder: Path, *names: str) -> Path:
    """A folder with copies of some shipped skills, to be changed by a test."""
    for name in names:
        shutil.copytree(SHIPPED / name, folder / name)
    return folder


def write_skill(root: Path, name: str, description: str, *more: str) -> None:
    """Write a skill of a few lines; ``more`` are lines of its frontmatter."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["---", f"name: {name}", f"description: {description}", *more, "---", "", f"# {name}"]
    (folder / "SKILL.md").write_text("\n".join(lines), encoding="utf-8")


def outcomes(result: RoutingResult) -> list[Outcome]:
    """How the four stages ended, in the order of the trace."""
    return [entry.outcome for entry in result.trace]


def summary(result: RoutingResult) -> tuple[Decision, tuple[str, ...]]:
    return result.decision, result.selected_skills


def sent_documents(server: OpenAIServer) -> list[dict[str, Any]]:
    """The documents that the server was sent; a reminder of the form may stand behind them."""
    read = json.JSONDecoder().raw_decode
    return [read(request.body["messages"][1]["content"])[0] for request in server.requests]


def offered_names(server: OpenAIServer) -> list[list[str]]:
    """The names of the skills that each request to the server offered."""
    return [
        [skill["name"] for skill in (*sent["skills"], *sent.get("likeliest", ()))]
        for sent in sent_documents(server)
    ]


async def happened(event: threading.Event) -> None:
    """Wait for what another thread does."""
    assert await asyncio.to_thread(event.wait, WAIT_SECONDS)


class HeldModel:
    """A plug-in model that answers when the test lets it, and counts what it is asked."""

    provider = "held"
    model = "held-1"

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked = threading.Event()
        self.stopped = threading.Event()
        self.calls = self.running = self.most_running = 0
        self._released = False
        self._gates: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def release(self) -> None:
        """Let it answer, from now on; may be called in any thread."""
        self._released = True
        for loop, gate in self._gates:
            loop.call_soon_threadsafe(gate.set)

    async def complete(self, prompt: Prompt, *, timeout_seconds: float) -> Completion:
        gate = asyncio.Event()
        self._gates.append((asyncio.get_running_loop(), gate))
        self.calls += 1
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.asked.set()
        try:
            if not self._released:
                await gate.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        finally:
            self.running -= 1
        return Completion(self.text, OutputMode.JSON_SCHEMA)

    async def aclose(self) -> None:
        """There is nothing to close."""


class CountingEncoder:
    """The bundled encoder, with a count of its batches; clear ``release`` to make it wait."""

    identity = "counting/bundled"
    static = True

    def __init__(self) -> None:
        self._encoder = BundledEncoder()
        self.batches: list[int] = []
        self.documents: list[int] = []
        self.release = threading.Event()
        self.release.set()
        self.encoding = threading.Event()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(len(texts))
        return self._encoder.encode(texts)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.documents.append(len(documents))
        self.encoding.set()
        self.release.wait(WAIT_SECONDS)
        return self._encoder.encode_documents(documents)


def own_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home, a state folder and an empty working directory of the test's own, in this process and
    in those that it starts: no skill of the machine is found."""
    (folder / "work").mkdir()
    monkeypatch.chdir(folder / "work")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("ROUTER_STATE_DIR", str(folder / "state"))
    monkeypatch.setenv("PYTHONPATH", str(Path(router.__file__).parents[1]))
