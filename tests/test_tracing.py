"""Spans of answers: inside the caller's own, a child a stage, and none of the users' words."""

from __future__ import annotations

from pathlib import Path

from cascade import SQUASH, answer, router_over, some_skills
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from servers.loopback import Reply
from servers.openai_server import OpenAIServer, completion

from router.events import LLMCalled, Recalled
from router.tracing import Spans


def provider_and_spans() -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


async def test_an_answer_is_a_span_inside_the_caller_s(tmp_path: Path) -> None:
    provider, exporter = provider_and_spans()
    skills = some_skills(tmp_path / "skills", "git", "testing")
    async with router_over(skills, tmp_path / "state") as router:
        router.events.subscribe(Spans(provider))
        with provider.get_tracer("host").start_as_current_span("host") as host:
            await router.route(SQUASH)
            await router.route(SQUASH)
    spans = [span for span in exporter.get_finished_spans() if span.name.startswith("route")]
    first, second = (span for span in spans if span.name == "route")
    assert first.parent is not None
    assert first.parent.span_id == host.get_span_context().span_id
    children = [s.name for s in spans if s.parent and s.parent.span_id == first.context.span_id]
    assert children == ["route.fuzzy", "route.exact", "route.vector"]
    assert first.attributes is not None and second.attributes is not None
    assert first.attributes["router.skills"] == ("git",)
    assert (first.attributes["router.from_cache"], second.attributes["router.from_cache"]) == (
        False,
        True,
    )
    assert first.start_time is not None and first.end_time is not None
    for span in spans:
        assert span.start_time is not None and span.end_time is not None
        assert span.start_time <= span.end_time
        assert SQUASH not in str(dict(span.attributes or {}))


async def test_the_call_of_the_llm_is_a_child_of_its_route_and_tells_no_words(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    provider, exporter = provider_and_spans()
    skills = some_skills(tmp_path / "skills", "git", "testing")
    openai_server.queue(completion(answer("git", mission_brief=SQUASH)), Reply(b"", 500))
    async with router_over(skills, tmp_path / "state", openai_server) as router:
        router.events.subscribe(Spans(provider))
        await router.route(SQUASH)
        await router.route("write unit tests for the parser")
    spans = exporter.get_finished_spans()
    first, second = (span for span in spans if span.name == "route")
    good, bad = (span for span in spans if span.name.startswith("chat"))
    assert good.parent is not None and good.parent.span_id == first.context.span_id
    assert bad.parent is not None and bad.parent.span_id == second.context.span_id
    assert good.kind is SpanKind.CLIENT
    assert dict(good.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-test",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 40,
        "router.outcome": "answered",
    }
    assert (bad.name, bad.status.status_code) == ("chat gpt-test", StatusCode.ERROR)
    assert dict(bad.attributes or {})["gen_ai.provider.name"] == "openai"
    assert all(SQUASH not in str(dict(span.attributes or {})) for span in spans)


def test_other_llm_calls_and_recalls_follow_the_conventions() -> None:
    provider, exporter = provider_and_spans()
    spans = Spans(provider)
    spans(LLMCalled("openai", "small", "enrich", 0.5, input_tokens=7, output_tokens=3))
    spans(LLMCalled("openai", "small", "audit", 0.5, error="late"))
    spans(Recalled("why Postgres?", ("project",), 1, 0.7, partial=False, seconds=0.01))
    good, bad, recall = exporter.get_finished_spans()
    assert good.attributes is not None
    assert (good.name, good.kind) == ("chat small", SpanKind.CLIENT)
    assert good.attributes["gen_ai.operation.name"] == "chat"
    assert good.attributes["gen_ai.usage.input_tokens"] == 7
    assert bad.status.status_code is StatusCode.ERROR
    assert recall.attributes is not None
    assert recall.attributes["gen_ai.operation.name"] == "retrieval"
    assert "gen_ai.retrieval.query.text" not in recall.attributes


def test_words_are_told_where_it_is_asked_for() -> None:
    provider, exporter = provider_and_spans()
    Spans(provider, words=True)(Recalled("why?", (), 0, 0.0, partial=False, seconds=0.01))
    [recall] = exporter.get_finished_spans()
    assert recall.attributes is not None
    assert recall.attributes["gen_ai.retrieval.query.text"] == "why?"
