"""The endpoints: answers as described, problems that say what is wrong, nothing across scopes."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from cascade import SQUASH
from described import check, described
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from servers.forgetful_server import ForgetfulServer
from servers.postgres_server import PostgresServer

from router.http.api import Api
from router.http.caller import Callers
from router.http.keys import KeyFile
from router.memory.memory import Memory
from router.memory.services.forgetful import client as client_of_services
from router.router import SemanticRouter
from router.settings.settings import Settings
from router.web.problems import MAX_DETAIL_CHARACTERS

Connect = Any
PATIENT = {"deadline_seconds": 60, "layer_deadline_seconds": 30}
TOOL = {"name": "refund", "description": "Pays the money of an order back."}


def ranking(tool: dict[str, Any]) -> str:
    return json.dumps({"request": "x", "tools": [tool]})


async def test_a_cache_says_whether_it_would_answer_and_forgets(api: Api, connect: Connect) -> None:
    client, asked = connect(api), {"request": SQUASH, "scope": "shop"}

    async def test() -> Any:
        answer = await client.post("/v1/cache/test", json=asked)
        return check(answer, "post", "/v1/cache/test")

    assert not (await test())["hit"]
    await client.post("/v1/route", json=asked)
    hit = await test()
    assert (hit["hit"], hit["skills"]) == (True, ["git"])
    assert {said["cache"]: said["outcome"] for said in hit["caches"]}["exact"] == "answered"
    other = await client.post("/v1/cache/test", json={"request": SQUASH, "scope": "bank"})
    assert not other.json()["hit"]
    forgotten = await client.post("/v1/cache/forget", json=asked)
    check(forgotten, "post", "/v1/cache/forget")
    assert not (await test())["hit"]


async def test_memory_answers_as_described(api: Api, connect: Connect) -> None:
    client = connect(api)
    text = {"content": "We chose Postgres for its JSON support", "layer": "project"}
    scope = {"user": "ada", "project": "shop"}
    saved = await client.post("/v1/memory/save", json={**text, **scope})
    check(saved, "post", "/v1/memory/save")
    asked = {"query": "Why did we choose Postgres?", **scope}
    recalled = await client.post("/v1/memory/recall", json=asked)
    found = check(recalled, "post", "/v1/memory/recall")
    assert [item["content"] for item in found["items"]] == [text["content"]]
    context = await client.post("/v1/memory/context", json={**asked, "token_budget": 100})
    assert text["content"] in check(context, "post", "/v1/memory/context")["text"]
    check(await client.get("/v1/memory/status"), "get", "/v1/memory/status")


async def test_memories_whose_database_is_away_are_named_until_it_is_back(
    router: SemanticRouter,
    keys: KeyFile,
    connect: Connect,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("router.memory.stores.postgres_database.WAIT_SECONDS", 0.5)
    database = PostgresServer()
    url = database.url().replace("postgres@", "postgres:secret@")
    told = {"directory": tmp_path / "memory", "url": url, **PATIENT}
    settings = Settings(state_dir=tmp_path / "state", llm={"enabled": False}, memory=told)
    memory, later = Memory(settings), Memory(settings)
    callers = Callers(keys, secret=None, required=False)
    client, opens_later = (connect(Api(router, one, callers)) for one in (memory, later))
    text = {"content": "We chose Postgres for its JSON support", "layer": "semantic"}
    asked = {"query": "Why did we choose Postgres?"}
    calls = [("recall", asked), ("save", text), ("context", asked)]

    async def degraded(client: Any) -> Any:
        return (await client.get("/readyz")).json()["degraded"]

    async def recalled(client: Any) -> Any:
        answer = await client.post("/v1/memory/recall", json=asked)
        return [item["content"] for item in check(answer, "post", "/v1/memory/recall")["items"]]

    try:
        await client.post("/v1/memory/save", json=text)
        assert await recalled(client) == [text["content"]]
        assert await degraded(client) == {}
        database.crash()
        try:
            assert await degraded(client) == {}  # it asks nobody
            answers = [await client.post(f"/v1/memory/{name}", json=given) for name, given in calls]
            answers.append(await opens_later.get("/v1/memory/status"))
            for answer in answers:
                assert answer.status_code == 503, answer.text
                assert answer.headers["Retry-After"] == "1"
                assert answer.json()["title"] == "memory is away"
                assert not any(each in answer.text for each in ("secret", "postgres", "/pg-"))
            for one in (client, opens_later):
                assert list(await degraded(one)) == ["memory"]
            assert "secret" not in caplog.text
            assert "GET /v1/memory/status failed: postgresql://" in caplog.text
        finally:
            database.start()
        for one in (client, opens_later):
            assert await recalled(one) == [text["content"]]
            assert await degraded(one) == {}
    finally:
        await memory.aclose()
        await later.aclose()
        database.close()


async def test_a_memory_service_that_does_not_answer_is_named_until_it_does(
    router: SemanticRouter,
    keys: KeyFile,
    connect: Connect,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_of_services, "FRESH_SECONDS", 0.0)  # it is asked again at once
    service = ForgetfulServer()
    told = {"directory": tmp_path / "memory", "service": {"url": service.url}, **PATIENT}
    memory = Memory(Settings(state_dir=tmp_path / "state", llm={"enabled": False}, memory=told))
    client = connect(Api(router, memory, Callers(keys, secret=None, required=False)))

    async def degraded() -> Any:
        await client.post("/v1/memory/recall", json={"query": "Why did we choose Postgres?"})
        return (await client.get("/readyz")).json()["degraded"]

    try:
        assert await degraded() == {}
        service.fault = "broken"
        for _ in range(2):
            assert list(await degraded()) == ["memory service"]
        service.fault = None
        assert await degraded() == {}
    finally:
        await memory.aclose()
        service.close()


async def test_a_batch_is_answered_line_by_line_in_its_order(api: Api, connect: Connect) -> None:
    requests: list[Any] = [
        {"request": SQUASH},
        {"request": "\t"},
        {"request": "write unit tests"},
        {"wrong": 1},
        5,
        {"request": SQUASH, "w" * 100_000: 1},
    ]
    answer = await connect(api).post("/v1/route/batch", json={"requests": requests})
    assert answer.status_code == 200
    kind, schema = described("post", "/v1/route/batch", 200)
    assert answer.headers["content-type"].startswith(kind)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    for line in lines:
        jsonschema.validate(line, schema)
    assert [line["index"] for line in lines] == [0, 1, 2, 3, 4, 5]
    assert lines[0]["result"]["selected_skills"] == ["git"]
    assert lines[1]["error"] == "request: empty"
    assert lines[2]["result"]["selected_skills"] == ["testing"]
    assert lines[3]["error"] == "request: Field required; wrong: Extra inputs are not permitted"
    assert "result" not in lines[3]
    assert lines[4]["error"] == "request: Input should be an object"
    assert lines[5]["error"] == f"{'w' * 200}: Extra inputs are not permitted"


async def test_messages_of_a_chat_api_are_a_history(api: Api, connect: Connect) -> None:
    client = connect(api)
    asked = {"request": "and now push it", "use_semantic_cache": False}
    turns = {**asked, "history": [{"role": "user", "text": SQUASH}]}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": SQUASH}]},
        {"role": "assistant", "content": None, "tool_calls": []},
    ]
    first = await client.post("/v1/route", json=turns)
    again = await client.post("/v1/route", json={**asked, "history": messages})
    assert (first.status_code, again.status_code) == (200, 200), again.text
    assert again.json()["stage"] == "exact"  # the same question
    log = ["x" * 200_000, *["\x1b[1mx"] * 500, f"\x1b[32m{SQUASH}\x1b[0m"]
    pasted = await client.post("/v1/route", json={**asked, "history": log})
    assert pasted.json()["selected_skills"] == ["git"], pasted.text


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "where"),
    [
        ("POST", "/v1/route", {"json": {}}, 422, "request"),
        ("POST", "/v1/route", {"json": {"request": "x", "wrong": 1}}, 422, "wrong"),
        ("POST", "/v1/route", {"json": {"request": "x", "history": [{}]}}, 422, "history.0"),
        ("POST", "/v1/route", {"json": {"request": "x", "history": ["y", 5]}}, 422, "history.1"),
        ("POST", "/v1/route", {"json": {"request": "x", "history": ["y"] * 1001}}, 422, "history"),
        ("POST", "/v1/route", {"json": {"request": "\x00"}}, 422, None),
        ("POST", "/v1/route", {"json": []}, 400, None),
        ("POST", "/v1/route", {"content": b"{"}, 400, None),
        ("POST", "/v1/route", {"content": b"\xff"}, 400, None),
        ("POST", "/v1/route", {"content": b"[" * 100_000}, 400, None),
        ("POST", "/v1/route", {"content": b" " * 5_000_000}, 413, None),
        ("POST", "/v1/route", {"content": b"x", "headers": {"content-type": "text/a"}}, 415, None),
        ("POST", "/v1/route/batch", {"json": {"requests": []}}, 422, "requests"),
        ("POST", "/v1/route/batch", {"json": {"requests": [{}] * 1001}}, 422, "requests"),
        ("POST", "/v1/rank", {"content": ranking({**TOOL, "x": "\ud800"})}, 422, None),
        ("POST", "/v1/rank", {"content": ranking({**TOOL, "x": math.inf})}, 422, None),
        ("GET", "/v1/skills", {}, 422, "query"),
        ("GET", "/v1/skills", {"params": {"query": "x", "limit": "many"}}, 422, "limit"),
        ("GET", "/v1/skills/nothing", {}, 404, None),
        ("GET", "/v1/skills/nothing", {"headers": {"If-None-Match": "*"}}, 404, None),
        ("GET", "/v1/decisions/nothing", {}, 404, None),
        ("POST", "/v1/decisions/nothing/feedback", {"json": {"right": True}}, 404, None),
        ("POST", "/v1/decisions/a/feedback", {"json": {"right": True, "id": "b"}}, 400, None),
        ("POST", "/v1/memory/save", {"json": {"content": "x", "layer": "y" * 9_999}}, 422, None),
        ("GET", "/v1/route", {}, 405, None),
        ("GET", "/nothing", {}, 404, None),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_a_problem_that_says_where(
    api: Api,
    connect: Connect,
    method: str,
    path: str,
    sent: dict[str, Any],
    status: int,
    where: str | None,
) -> None:
    answer = await connect(api).request(method, path, **sent)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    _, schema = described("post", "/v1/route", 422)
    jsonschema.validate(told, schema)
    assert told["status"] == status
    assert 0 < len(told["detail"]) <= MAX_DETAIL_CHARACTERS
    if where is not None:
        assert told["faults"][0]["where"].startswith(where)


async def test_a_method_that_is_not_allowed_is_told_those_that_are(
    api: Api, connect: Connect
) -> None:
    answer = await connect(api).post("/v1/catalogs/shop/tools/refund")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"DELETE", "PUT"}


async def test_an_unchanged_catalog_is_not_sent_again(
    api: Api, connect: Connect, router: SemanticRouter
) -> None:
    client = connect(api)
    first = await client.get("/v1/skills", params={"query": "commit"})
    tag = first.headers["etag"]
    assert tag == f'"{router.catalog.version}"'
    again = await client.get(
        "/v1/skills", params={"query": "commit"}, headers={"If-None-Match": tag}
    )
    assert (again.status_code, again.content) == (304, b"")
    other = await client.get(
        "/v1/skills", params={"query": "commit"}, headers={"If-None-Match": '"other"'}
    )
    assert other.status_code == 200


async def test_a_request_is_a_part_of_its_caller_s_trace(
    router: SemanticRouter, memory: Memory, keys: KeyFile, connect: Connect
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    callers = Callers(keys, secret=None, required=False)
    api = Api(router, memory, callers, spans=provider)
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await connect(api).post("/v1/route", json={"request": SQUASH}, headers={"traceparent": parent})
    [span] = [span for span in exporter.get_finished_spans() if span.name == "route"]
    assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"


async def test_the_metrics_count_requests_and_caches(
    api: Api, connect: Connect, router: SemanticRouter
) -> None:
    client = connect(api)
    for _ in range(2):
        await client.post("/v1/route", json={"request": SQUASH})
    await asyncio.sleep(0)  # events are counted once the answer is written
    text = (await client.get("/metrics")).text
    assert 'router_requests_total{decision="route",from_cache="true",stage="exact"} 1.0' in text
    assert 'router_cache_lookups_total{cache="exact",outcome="hit"} 1.0' in text
    assert 'router_skills{kind="routable"} 2.0' in text
    assert "router_error_bound 0.01" in text
    assert SQUASH not in text
