"""Metrics for Prometheus. A sink of the router's events, and figures read when they are asked for.

Labels have few values, all of them the router's own words or names from the settings: nothing that
a request says becomes a label.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from router.concurrency.breaker import BreakerState
from router.events import (
    CacheLookup,
    Degraded,
    Event,
    Learned,
    LLMCalled,
    Recalled,
    Recovered,
    Reloaded,
    Routed,
)
from router.result import Outcome
from router.service.service import Service

MULTIPROCESS: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable by which ``prometheus_client`` knows, when it is imported, that several processes
count together."""
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
_SECONDS: Final = (
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1,
    2.5, 5, 10, 30,
)  # fmt: skip


_OPEN: Final = {BreakerState.OPEN: 1.0, BreakerState.HALF_OPEN: 0.5, BreakerState.CLOSED: 0.0}


class Metrics:
    """Counts what happens in one router."""

    def __init__(self, service: Service) -> None:
        self._registry = registry = CollectorRegistry()

        # Each is a function from labels to a counter. It remembers, because prometheus_client takes
        # a lock and converts every label at each look-up.
        def counter(name: str, text: str, *labels: str) -> Callable[..., Counter]:
            return cache(Counter(name, text, labels, registry=registry).labels)

        def seconds(name: str, text: str, *labels: str) -> Callable[..., Histogram]:
            return cache(Histogram(name, text, labels, buckets=_SECONDS, registry=registry).labels)

        who = ("provider", "model")
        self._requests = counter(
            "router_requests", "Requests answered.", "decision", "stage", "from_cache"
        )
        self._seconds = seconds(
            "router_request_seconds",
            "From a request to its answer, by the stage that answered.",
            "stage",
        )
        self._stage_seconds = seconds(
            "router_stage_seconds", "Time spent in a stage that ran.", "stage"
        )
        self._lookups = counter(
            "router_cache_lookups", "Looks into a cache, by how they ended.", "cache", "outcome"
        )
        self._refusals = counter(
            "router_cache_refusals",
            "Kept answers that were not given again, by what held them back.",
            "cache",
            "reason",
        )
        self._llm_calls = counter("router_llm_calls", "Calls of an LLM.", *who, "purpose", "failed")
        self._llm_seconds = seconds("router_llm_seconds", "Time of one call of an LLM.", *who)
        self._tokens = counter(
            "router_llm_tokens", "Tokens, as providers count them.", *who, "direction"
        )
        self._cost = counter(
            "router_llm_cost_usd", "Cost in US dollars, where the price is known.", *who
        )
        self._exchanges = counter(
            "router_http_requests",
            "Requests over HTTP, by the path as the API describes it.",
            *("path", "method", "status"),
        )
        self._exchange_seconds = seconds(
            "router_http_seconds", "From a request over HTTP to the end of its answer.", "path"
        )
        self._reloads = Histogram(
            "router_reload_seconds",
            "From the beginning of work on a changed catalog until requests see it.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._learned = counter("router_labels_learned", "Labels taken in as evidence.", "source")
        self._recalls = counter("router_recalls", "Queries that memory answered.", "partial")
        self._recall_seconds = Histogram(
            "router_recall_seconds", "Time of one recall.", buckets=_SECONDS, registry=registry
        )
        self._layers = counter(
            "router_memory_layers", "Reads of memory layers, by how they went.", "layer", "status"
        )
        self._degraded = counter(
            "router_degraded", "Times that the router went on without a part.", "part"
        )
        self._degraded_now = Gauge(
            "router_degraded_now",
            "Whether the router goes on without a part that can come back.",
            ("part",),
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._now = _Now(service)
        registry.register(self._now)

    def __call__(self, event: Event) -> None:
        match event:
            case Routed(result=result, seconds=seconds):
                cached = str(result.from_cache).lower()
                self._requests(result.decision, result.stage, cached).inc()
                self._seconds(result.stage).observe(seconds)
                for entry in result.trace:
                    if entry.outcome is not Outcome.SKIPPED:
                        self._stage_seconds(entry.stage).observe(entry.microseconds / 1e6)
            case CacheLookup(stage=stage, outcome=outcome, refused_by=reason):
                self._lookups(stage, outcome).inc()
                if reason:
                    self._refusals(stage, reason).inc()
            case LLMCalled():
                self._count_call(event)
            case Reloaded(seconds=seconds):
                self._reloads.observe(seconds)
            case Learned(source=source):
                self._learned(source).inc()
            case Recalled(partial=partial, seconds=seconds):
                self._recalls(str(partial).lower()).inc()
                self._recall_seconds.observe(seconds)
                for layer, status in zip(event.layers, event.statuses, strict=False):
                    self._layers(layer, status).inc()
            case Degraded(part=part):
                self._degraded(part).inc()
                self._degraded_now.labels(part).set(1)
            case Recovered(part=part):
                self._degraded_now.labels(part).set(0)

    def _count_call(self, call: LLMCalled) -> None:
        who = (call.provider, call.model)
        self._llm_calls(*who, call.purpose, str(call.error is not None).lower()).inc()
        self._llm_seconds(*who).observe(call.seconds)
        for direction, tokens in (("input", call.input_tokens), ("output", call.output_tokens)):
            if tokens is not None:
                self._tokens(*who, direction).inc(tokens)
        if call.cost_usd is not None:
            self._cost(*who).inc(call.cost_usd)

    def count_exchange(self, path: str, method: str, status: int, seconds: float) -> None:
        """Count a request over HTTP and its answer."""
        self._exchanges(path, method, str(status)).inc()
        self._exchange_seconds(path).observe(seconds)

    def text(self) -> bytes:
        """The figures as they are now, of all workers where the server has several."""
        registry = self._registry
        if MULTIPROCESS in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
            registry.register(self._now)
        return generate_latest(registry)


class _Now:
    """Figures that are there at any time and need not be counted."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing is asked of the router before somebody wants the figures."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The figures of an open router; none before."""
        catalog = self._service.catalog
        if catalog is None:
            return
        skills = GaugeMetricFamily("router_skills", "Skills, by what they are.", labels=["kind"])
        skills.add_metric(["routable"], len(catalog.routable))
        skills.add_metric(["hidden"], len(catalog.skills) - len(catalog.routable))
        skills.add_metric(["shadowed"], len(catalog.shadowed))
        skills.add_metric(["left_out"], len(catalog.left_out))
        yield skills
        breakers = GaugeMetricFamily(
            "router_breaker_open",
            "Whether a provider is left alone: 1 yes, 0.5 until a trial call has ended, 0 no.",
            labels=["provider", "model"],
        )
        for model, state in self._service.router.breakers:
            breakers.add_metric([model.provider, model.model], _OPEN[state])
        yield breakers
        learning = self._service.learning_now()
        if learning is None:
            return
        bound = learning["bound"]
        for name, key, text in (
            ("router_local_answers", "local", "Requests answered without the LLM."),
            ("router_judged_requests", "requests", "Requests that the error bound has judged."),
            ("router_error_bound", "max_error", "Share of wrong answers that is allowed."),
            ("router_error_limit", "error_limit", "Upper limit of the share that is wrong."),
        ):
            yield GaugeMetricFamily(name, text, value=float(bound[key]))
        yield GaugeMetricFamily(
            "router_error_left",
            "What of the allowed share of wrong answers is not used up.",
            value=float(bound["max_error"] - bound["error_limit"]),
        )
        examples = GaugeMetricFamily("router_examples", "Labels kept.", labels=["source"])
        for source, number in learning["examples"].items():
            examples.add_metric([source], number)
        yield examples
