"""Spans of OpenTelemetry: a sink of the router's events, usable from the library alone.

    from router.tracing import Spans
    router.events.subscribe(Spans())

Each answer is a span ``route`` inside whatever span is current where ``route`` was called, with a
child for every stage that ran. After the conventions for generative AI, the LLM stage is a span
``chat``, as are the LLM's calls for other purposes, and a look into memory is a span ``retrieval``.
Only the API package is needed; without a configured SDK nothing is recorded. Nothing that users say
becomes an attribute unless it is asked for.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from router.events import Degraded, Event, LLMCalled, Recalled, Recovered, Reloaded, Routed
from router.result import Outcome, Stage
from router.version import package_version
from router.web.exchanges import request_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import TracerProvider

# Written out, because the constants of the conventions still move between packages.
_OPERATION: Final = "gen_ai.operation.name"
_PROVIDER: Final = "gen_ai.provider.name"
_MODEL: Final = "gen_ai.request.model"
_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
_QUERY: Final = "gen_ai.retrieval.query.text"
_ERROR: Final = "error.type"


_OPERATIONS: Final = {Stage.VECTOR: "retrieval", Stage.LLM: "chat"}
"""What stages do in the words of the conventions."""
_OF_THE_LLM: Final = {
    "provider": _PROVIDER,
    "model": _MODEL,
    "input_tokens": _INPUT_TOKENS,
    "output_tokens": _OUTPUT_TOKENS,
}
"""How the conventions call what the trace of the LLM stage tells."""


class Spans:
    """Makes spans of events."""

    def __init__(self, provider: TracerProvider | None = None, *, words: bool = False) -> None:
        """
        Args:
            provider: makes the spans; None: the one of the process.
            words: whether spans may hold the texts of requests and queries.
        """
        self._tracer = trace.get_tracer("router", package_version(), tracer_provider=provider)
        self._words = words

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        match event:
            case Routed():
                self._route(event)
            case LLMCalled(purpose=purpose) if purpose != "route":  # else the stage is the span
                self._chat(event)
            case Recalled():
                self._retrieval(event)
            case Reloaded(change=change, seconds=seconds):
                self._span("reload", seconds, {"router.catalog.changed": len(tuple(change.names))})
            case Degraded(part=part):
                trace.get_current_span().add_event("degraded", {"router.part": part})
            case Recovered(part=part):
                trace.get_current_span().add_event("recovered", {"router.part": part})
            case _:
                pass

    def _route(self, event: Routed) -> None:
        result = event.result
        attributes = {
            "router.decision": result.decision.value,
            "router.stage": result.stage.value,
            "router.skills": result.selected_skills,
            "router.confidence": result.confidence,
            "router.from_cache": result.from_cache,
            "router.catalog.version": result.catalog_version,
            "router.decision.id": result.id,
        }
        if self._words:
            attributes[_QUERY] = event.request
        end = time.time_ns()
        start = end - round(event.seconds * 1e9)
        attributes |= _of_request()
        span = self._tracer.start_span("route", start_time=start, attributes=attributes)
        inside = trace.set_span_in_context(span)
        for entry in result.trace:
            if entry.outcome is Outcome.SKIPPED:
                continue
            took = round(entry.microseconds * 1000)
            name, kind = f"route.{entry.stage.value}", SpanKind.INTERNAL
            told: dict[str, Any] = {"router.outcome": entry.outcome.value}
            if entry.stage in _OPERATIONS:
                told[_OPERATION] = _OPERATIONS[entry.stage]
            if entry.stage is Stage.LLM:
                name, kind = f"chat {entry.evidence.get('model', '')}".rstrip(), SpanKind.CLIENT
                told |= {
                    key: entry.evidence[ours]
                    for ours, key in _OF_THE_LLM.items()
                    if ours in entry.evidence
                }
            child = self._tracer.start_span(
                name, context=inside, kind=kind, start_time=start, attributes=told
            )
            if entry.outcome is Outcome.FAILED:
                child.set_attribute(_ERROR, entry.stage.value)
                child.set_status(Status(StatusCode.ERROR))
            start = min(start + took, end)
            child.end(start)
        span.end(end)

    def _chat(self, call: LLMCalled) -> None:
        attributes: dict[str, Any] = {
            _OPERATION: "chat",
            _PROVIDER: call.provider,
            _MODEL: call.model,
            "router.llm.purpose": call.purpose,
        }
        if call.input_tokens is not None:
            attributes[_INPUT_TOKENS] = call.input_tokens
        if call.output_tokens is not None:
            attributes[_OUTPUT_TOKENS] = call.output_tokens
        if call.error is not None:
            attributes[_ERROR] = "llm"
        self._span(
            f"chat {call.model}",
            call.seconds,
            attributes,
            kind=SpanKind.CLIENT,
            failed=call.error is not None,
        )

    def _retrieval(self, event: Recalled) -> None:
        attributes: dict[str, Any] = {
            _OPERATION: "retrieval",
            "router.memory.layers": event.layers,
            "router.memory.items": event.items,
            "router.confidence": event.confidence,
            "router.memory.partial": event.partial,
        }
        if self._words:
            attributes[_QUERY] = event.query
        self._span("retrieval memory", event.seconds, attributes)

    def _span(
        self,
        name: str,
        seconds: float,
        attributes: Mapping[str, Any],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        failed: bool = False,
    ) -> None:
        """A span that ends now."""
        end = time.time_ns()
        told = {**attributes, **_of_request()}
        span = self._tracer.start_span(
            name, kind=kind, start_time=end - round(seconds * 1e9), attributes=told
        )
        if failed:
            span.set_status(Status(StatusCode.ERROR))
        span.end(end)


def _of_request() -> dict[str, str]:
    """The id of the request over HTTP that is being answered, if there is one."""
    own = request_id.get()
    return {"router.request.id": own} if own else {}
