"""Fixtures for the whole suite: loopback servers, and an environment without the machine's own."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from servers.ollama_server import OllamaServer
from servers.openai_server import OpenAIServer

# Machines are shared and noisy: how long an example takes is no reason to fail.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


def pytest_configure() -> None:
    """Let Ctrl-C be tested under a runner that was started in a shell's background.

    Such a process ignores the signal, and so would every command that a test starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    """A scripted OpenAI-compatible server; at the end it must have seen valid requests only."""
    server = OpenAIServer()
    yield server
    server.close()
    assert server.violations == []


@pytest.fixture
def ollama_server() -> Iterator[OllamaServer]:
    """A scripted Ollama server; at the end it must have seen valid requests only."""
    server = OllamaServer()
    yield server
    server.close()
    assert server.violations == []


@pytest.fixture(autouse=True)
def _no_llm_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own key must never be used, or found, by a test."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST", "OLLAMA_API_KEY"):
        monkeypatch.delenv(name, raising=False)
