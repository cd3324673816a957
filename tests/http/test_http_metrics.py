"""The metrics by name: what the dashboard asks for is what the server tells."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from router.concurrency.breaker import CircuitBreaker
from router.events import (
    CacheLookup,
    CacheOutcome,
    Degraded,
    Learned,
    LLMCalled,
    Recalled,
    Reloaded,
)
from router.http.api import Api
from router.http.metrics import Metrics
from router.result import Stage

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "dashboards" / "router.json"
NAME = re.compile(r"\brouter_[a-z_]+\b")


def families(metrics: Metrics) -> dict[str, Any]:
    """Every sample that is told, by its name."""
    return {
        sample.name: sample
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }


def everything(metrics: Metrics) -> None:
    change: Any = SimpleNamespace(names=("git",))
    for event in (
        CacheLookup(Stage.EXACT, CacheOutcome.HIT, "an identical request"),
        LLMCalled("openai", "small", "route", 0.5, None, 7, 3, 0.001),
        Reloaded(change, 0.2),
        Learned("mow the lawn", ("git",), "feedback"),
        CacheLookup(Stage.FUZZY, CacheOutcome.REFUSED, "another number: 7", "gate"),
        Recalled("where are my keys", ("project",), 1, 0.7, False, 0.01, ("timeout",)),
        Degraded("llm", "a reason with words"),
    ):
        metrics(event)
    metrics.count_exchange("/v1/route", "POST", 200, 0.01)


async def test_every_metric_of_the_dashboard_is_told(api: Api) -> None:
    metrics = api.metrics
    await api.service.router.route("commit my changes")
    await asyncio.sleep(0)  # events are counted once the answer is written
    everything(metrics)
    asked = {
        name
        for panel in json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
        for target in panel["targets"]
        for name in NAME.findall(target["expr"])
    }
    told = set(families(metrics))
    assert len(asked) >= 15
    # Without an LLM nothing has been bounded yet.
    bounded = {"router_error_limit", "router_error_left", "router_breaker_open"}
    assert asked - told <= bounded
    # Nothing is told that the dashboard leaves out.
    ending = re.compile("_(bucket|count|sum|created|total)$")
    assert {ending.sub("", name) for name in told} <= {ending.sub("", name) for name in asked}


async def test_labels_hold_no_words_of_users(api: Api) -> None:
    await api.service.router.route("commit my secret changes", scope="tenant-7")
    await asyncio.sleep(0)
    everything(api.metrics)
    text = api.metrics.text().decode()
    for word in ("secret", "tenant-7", "lawn", "keys", "with words"):
        assert word not in text
    assert 'router_llm_tokens_total{direction="input",model="small",provider="openai"} 7.0' in text
    assert 'router_degraded_total{part="llm"} 1.0' in text
    assert 'router_cache_refusals_total{cache="fuzzy",reason="gate"} 1.0' in text
    assert 'router_memory_layers_total{layer="project",status="timeout"} 1.0' in text


async def test_a_provider_that_is_left_alone_shows(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = SimpleNamespace(provider="openai", model="small")
    stage = api.service.router._runtime.current.parts.llm
    breaker = CircuitBreaker(failures=1, reset_seconds=60, clock=lambda: 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(stage, "_guarded", [(model, breaker)])
        assert 'router_breaker_open{model="small",provider="openai"} 0.0' in told(api)
        call = breaker.try_call()
        assert call is not None
        call.failed()
        assert 'router_breaker_open{model="small",provider="openai"} 1.0' in told(api)


def told(api: Api) -> str:
    return api.metrics.text().decode()
