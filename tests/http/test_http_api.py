"""The endpoints: answers as described, problems that say what is wrong, nothing across scopes."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx
import jsonschema
import pytest
from cascade import SQUASH
from openapi_spec_validator import validate
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from router.http.api import Api
from router.http.app import http_app
from router.http.caller import Callers
from router.http.endpoints import ENDPOINTS
from router.http.keys import KeyFile, Right
from router.http.openapi import openapi
from router.mcp.http import mcp_app
from router.mcp.server import SkillServer
from router.memory.memory import Memory
from router.router import SemanticRouter

Connect = Any


def described(method: str, path: str, status: int) -> tuple[str, dict[str, Any]]:
    """Media type and schema that /openapi.json gives for an answer."""
    whole = openapi()
    [(kind, content)] = whole["paths"][path][method]["responses"][str(status)]["content"].items()
    return kind, {**content["schema"], "components": whole["components"]}


def check(answer: httpx.Response, method: str, path: str) -> Any:
    """The answer's content, if it is as it is described."""
    kind, schema = described(method, path, answer.status_code)
    assert answer.headers["content-type"].startswith(kind)
    jsonschema.validate(answer.json(), schema)
    return answer.json()


def test_the_description_is_openapi() -> None:
    validate(openapi())
    assert len({(e.method, e.path) for e in ENDPOINTS}) == len(ENDPOINTS)


async def test_every_endpoint_answers_as_described(api: Api, connect: Connect) -> None:
    client = connect(api)
    assert (await client.get("/openapi.json")).json() == openapi()
    routed = check(await client.post("/v1/route", json={"request": SQUASH}), "post", "/v1/route")
    assert routed["selected_skills"] == ["git"]
    traced = check(
        await client.post("/v1/route", json={"request": SQUASH, "trace": True}), "post", "/v1/route"
    )
    assert len(traced["trace"]) == 4
    ranked = check(await client.post("/v1/rank", json={"request": SQUASH}), "post", "/v1/rank")
    assert ranked["skills"][0]["name"] == "git"
    found = await client.get("/v1/skills", params={"query": "commit", "limit": 1})
    assert check(found, "get", "/v1/skills")["skills"][0]["name"] == "git"
    among = {"query": "commit", "available_skills": ["testing", "git"], "always_include": "testing"}
    both = check(await client.get("/v1/skills", params=among), "get", "/v1/skills")
    assert {skill["name"] for skill in both["skills"]} == {"git", "testing"}
    check(await client.get("/v1/skills/git"), "get", "/v1/skills/{name}")
    decision = check(await client.get(f"/v1/decisions/{routed['id']}"), "get", "/v1/decisions/{id}")
    assert (decision["request"], len(decision["result"]["trace"])) == (SQUASH, 4)
    noted = await client.post(f"/v1/decisions/{routed['id']}/feedback", json={"right": True})
    check(noted, "post", "/v1/decisions/{id}/feedback")
    check(await client.get("/v1/status"), "get", "/v1/status")
    learning = check(await client.get("/v1/learning"), "get", "/v1/learning")
    assert learning["examples"]["feedback"] == 1


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


async def test_a_batch_is_answered_line_by_line_in_its_order(api: Api, connect: Connect) -> None:
    requests = [{"request": SQUASH}, {"request": "\t"}, {"request": "write unit tests"}]
    answer = await connect(api).post("/v1/route/batch", json={"requests": requests})
    assert answer.status_code == 200
    kind, schema = described("post", "/v1/route/batch", 200)
    assert answer.headers["content-type"].startswith(kind)
    lines = [json.loads(line) for line in answer.text.splitlines()]
    for line in lines:
        jsonschema.validate(line, schema)
    assert [line["index"] for line in lines] == [0, 1, 2]
    assert lines[0]["result"]["selected_skills"] == ["git"]
    assert lines[1]["error"] == "request: empty"
    assert lines[2]["result"]["selected_skills"] == ["testing"]


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "where"),
    [
        ("POST", "/v1/route", {"json": {}}, 422, "request"),
        ("POST", "/v1/route", {"json": {"request": "x", "wrong": 1}}, 422, "wrong"),
        ("POST", "/v1/route", {"json": {"request": "x", "history": [{}]}}, 422, "history.0"),
        ("POST", "/v1/route", {"json": {"request": "a\x00b"}}, 422, None),
        ("POST", "/v1/route", {"json": []}, 400, None),
        ("POST", "/v1/route", {"content": b"{"}, 400, None),
        ("POST", "/v1/route", {"content": b"\xff"}, 400, None),
        ("POST", "/v1/route", {"content": b"[" * 100_000}, 400, None),
        ("POST", "/v1/route", {"content": b" " * 5_000_000}, 413, None),
        ("POST", "/v1/route", {"content": b"x", "headers": {"content-type": "text/a"}}, 415, None),
        ("POST", "/v1/route/batch", {"json": {"requests": []}}, 422, "requests"),
        ("POST", "/v1/route/batch", {"json": {"requests": [{}] * 1001}}, 422, "requests"),
        ("GET", "/v1/skills", {}, 422, "query"),
        ("GET", "/v1/skills", {"params": {"query": "x", "limit": "many"}}, 422, "limit"),
        ("GET", "/v1/skills/nothing", {}, 404, None),
        ("GET", "/v1/decisions/nothing", {}, 404, None),
        ("POST", "/v1/decisions/nothing/feedback", {"json": {"right": True}}, 422, None),
        ("POST", "/v1/decisions/a/feedback", {"json": {"right": True, "id": "b"}}, 400, None),
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
    assert told["detail"]
    if where is not None:
        assert told["faults"][0]["where"].startswith(where)


async def test_a_bug_is_told_without_its_details(
    api: Api, connect: Connect, router: SemanticRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise ValueError("password=1234")

    monkeypatch.setattr(router, "discover", fail)
    answer = await connect(api).get("/v1/skills", params={"query": "x"})
    assert answer.status_code == 500
    assert "1234" not in answer.text


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


@pytest.mark.parametrize(
    ("key", "status"), [(None, 401), ("wrong", 401), ("from-the-environment", 200)]
)
async def test_a_key_is_required_where_it_is_said(
    guarded: Api, connect: Connect, key: str | None, status: int
) -> None:
    answer = await connect(guarded, key).post("/v1/route", json={"request": SQUASH})
    assert answer.status_code == status
    assert ("www-authenticate" in answer.headers) is (status == 401)
    metrics = await connect(guarded, key).get("/metrics")
    assert metrics.status_code == status
    assert metrics.headers["content-type"].startswith(described("get", "/metrics", status)[0])


async def test_health_needs_no_key(guarded: Api, connect: Connect) -> None:
    client = connect(guarded)
    assert (await client.get("/healthz")).json() == {"status": "ok"}
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    guarded.stop()
    assert (await client.get("/readyz")).status_code == 503
    assert (await client.get("/healthz")).status_code == 200


async def test_every_endpoint_asks_for_its_right(
    guarded: Api, connect: Connect, keys: KeyFile
) -> None:
    for endpoint in ENDPOINTS:
        others = [right for right in Right if right is not endpoint.right]
        client = connect(guarded, keys.make("x", rights=others))
        path = re.sub(r"\{\w+\}", "x", endpoint.path)
        answer = await client.request(endpoint.method, path)
        assert answer.status_code == 403, path
        assert endpoint.right.value in answer.json()["detail"]


async def test_what_one_tenant_asks_no_other_sees(
    guarded: Api, connect: Connect, keys: KeyFile
) -> None:
    rights = [Right.ROUTE, Right.FEEDBACK]
    shop = connect(guarded, keys.make("shop", rights=rights, scopes=["shop"]))
    bank = connect(guarded, keys.make("bank", rights=rights, scopes=["bank"]))
    first = (await shop.post("/v1/route", json={"request": SQUASH})).json()
    own = (await bank.post("/v1/route", json={"request": SQUASH})).json()
    assert (first["from_cache"], own["from_cache"]) == (False, False)
    assert (await shop.post("/v1/route", json={"request": SQUASH})).json()["from_cache"]
    for asked in ("shop", "bankers", "*"):
        refused = await bank.post("/v1/route", json={"request": SQUASH, "scope": asked})
        assert refused.status_code == 403
        batch = {"requests": [{"request": SQUASH, "scope": asked}]}
        line = (await bank.post("/v1/route/batch", json=batch)).json()
        assert "result" not in line
    decision = f"/v1/decisions/{first['id']}"
    assert (await shop.get(decision)).status_code == 200
    assert (await bank.get(decision)).status_code == 404
    correction = {"skills": ["testing"]}
    assert (await bank.post(f"{decision}/feedback", json=correction)).status_code == 422
    widened = await bank.post(f"{decision}/feedback", json={**correction, "scope": "shop"})
    assert widened.status_code == 403
    assert (await shop.post(f"{decision}/feedback", json=correction)).status_code == 200
    corrected = (await shop.post("/v1/route", json={"request": SQUASH})).json()
    assert corrected["selected_skills"] == ["testing"]
    unmoved = (await bank.post("/v1/route", json={"request": SQUASH})).json()
    assert unmoved["selected_skills"] == ["git"]


async def test_other_names_are_refused(api: Api, connect: Connect) -> None:
    answer = await connect(api).get("/healthz", headers={"Host": "localhost:evil.com"})
    assert answer.status_code == 421
    _, schema = described("post", "/v1/route", 421)
    jsonschema.validate(answer.json(), schema)
    assert answer.headers["content-type"] == "application/problem+json"
    origin = await connect(api).get("/healthz", headers={"Origin": "http://evil.com"})
    assert (origin.status_code, origin.json()["status"]) == (403, 403)
    assert "access-control-allow-origin" not in origin.headers


async def test_a_full_server_says_so_at_once(
    api: Api, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(api)
    api.places._most, api.places._share = 4, 2
    async with api.places.take("local"), api.places.take("local"):
        answer = await client.post("/v1/route", json={"request": SQUASH})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        async with api.places.take("a"), api.places.take("b"):
            answer = await client.post("/v1/route", json={"request": SQUASH})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert (await client.post("/v1/route", json={"request": SQUASH})).status_code == 200
    assert api.places.taken == 0


@pytest.mark.parametrize(("path", "status"), [("/nothing", 404), ("/v1/route", 405)])
async def test_a_path_that_is_not_there_is_a_problem_with_mcp_beside_it_too(
    api: Api, router: SemanticRouter, path: str, status: int
) -> None:
    app = http_app(api, names=["localhost"], mcp=mcp_app(SkillServer(router)))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (
        status,
        "application/problem+json",
    )


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
    text = (await client.get("/metrics")).text
    assert 'router_requests_total{decision="route",from_cache="true",stage="exact"} 1.0' in text
    assert 'router_cache_lookups_total{cache="exact",outcome="hit"} 1.0' in text
    assert 'router_skills{kind="routable"} 2.0' in text
    assert "router_error_bound 0.01" in text
    assert SQUASH not in text


async def test_a_client_that_goes_in_the_middle_of_its_body_is_no_fault(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/route",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    messages = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Any:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        pass

    await http_app(api, names=["localhost"], mcp=None)(scope, receive, send)
    assert caplog.records == []
