"""Fixtures for the whole suite: loopback servers, and an environment without the machine's own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from servers.loopback import QueuedServer, Reply
from servers.ollama_server import OllamaServer
from servers.openai_server import HeldServer, OpenAIServer

# Numpy's threads wait for each other when other programs want the cores: on a busy machine a fit
# then takes many times as long. This must be set before numpy is imported for the first time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The commands that tests start would compile all modules each time, which takes longer than most of
# what they do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

RANDOM_CASES = int(os.environ.get("ROUTER_TEST_CASES", "0"))
"""Cases that every property test tries, drawn anew on each run; 0 for the suite's own fixed cases.
``make test-random`` sets it."""

# How long a case takes is no reason to fail: machines are shared and busy. The cases of a test may
# share a fixture, where none of them changes what the next one sees.
settings.register_profile(
    "base",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
# The suite tries the same cases on every run and on every machine, so a failure is never luck.
settings.register_profile("suite", settings.get_profile("base"), derandomize=True, database=None)
settings.register_profile("random", settings.get_profile("base"), print_blob=True)
settings.load_profile("random" if RANDOM_CASES else "suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every property test the number of cases asked for, also where it states its own."""
    if not RANDOM_CASES:
        return
    for item in items:
        test: Any = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            test = getattr(test, "__func__", test)  # of a method
            # Hypothesis has no public way to change the settings of a test that has some.
            own: settings = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(own, max_examples=RANDOM_CASES)


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
def held_server() -> Iterator[HeldServer]:
    """One that keeps its replies back until ``release`` is set."""
    server = HeldServer()
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


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[QueuedServer]:
    """The proxy that the environment names for everything; what it is sent are its requests."""
    server = QueuedServer()
    server.always = Reply.json({}, status=502)
    # No client can be made with the last one where the library for its protocol is missing.
    named = {"HTTP_PROXY": "http", "HTTPS_PROXY": "http", "ALL_PROXY": "socks5"}
    for name, scheme in named.items():
        monkeypatch.delenv(name.lower(), raising=False)
        monkeypatch.setenv(name, server.address.replace("http", scheme))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _no_settings_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own key must never be used, or found, by a test, and no setting of theirs
    counts. What is for the tests themselves stays."""
    for name in list(os.environ):
        of_tests = name.upper().startswith("ROUTER_TEST_")
        if name.upper().startswith(("ROUTER_", "OPENAI_", "OLLAMA_")) and not of_tests:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _no_folders_of_the_user(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A developer's own settings, trusted folders, memories and evidence are left alone."""
    home = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
