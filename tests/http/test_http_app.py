"""The HTTP application around the endpoints: problems, host names, bounds."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import jsonschema
import pytest
from described import described

from router.errors import StoreError
from router.http.api import Api
from router.http.app import http_app
from router.http.keys import KeyFile, Right
from router.mcp.http import mcp_app
from router.mcp.server import SkillServer
from router.router import SemanticRouter

Connect = Any


async def test_a_bug_is_told_without_its_details(
    api: Api, connect: Connect, router: SemanticRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise ValueError("password=1234")

    monkeypatch.setattr(router, "discover", fail)
    answer = await connect(api).get("/v1/skills", params={"query": "x"})
    assert answer.status_code == 500
    assert "1234" not in answer.text


async def test_a_part_that_fails_is_told_to_the_client_and_in_the_log(
    api: Api,
    connect: Connect,
    router: SemanticRouter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Who ran the server did not learn of a full disk. Where its files lie is not for clients."""

    async def fail(*_: object, **__: object) -> None:
        raise StoreError("memory.db", "database or disk is full")

    monkeypatch.setattr(router, "discover", fail)
    answer = await connect(api).get("/v1/skills", params={"query": "x"})
    assert (answer.status_code, answer.json()["detail"]) == (
        500,
        "database or disk is full",
    )
    assert [record.getMessage() for record in caplog.records] == [
        "GET /v1/skills failed: memory.db: database or disk is full"
    ]


async def test_other_names_are_refused(api: Api, connect: Connect) -> None:
    answer = await connect(api).get("/healthz", headers={"Host": "localhost:evil.com"})
    assert answer.status_code == 421
    _, schema = described("post", "/v1/route", 421)
    jsonschema.validate(answer.json(), schema)
    assert answer.headers["content-type"] == "application/problem+json"
    origin = await connect(api).get("/healthz", headers={"Origin": "http://evil.com"})
    assert (origin.status_code, origin.json()["status"]) == (403, 403)
    assert "access-control-allow-origin" not in origin.headers


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/route", {"request": "stash my changes"}, 200),
        ("POST", "/v1/route", {"request": "stash my changes", "scope": "bank"}, 403),
        ("POST", "/v1/route", {"request": ""}, 422),
        ("GET", "/v1/status", None, 403),
        ("GET", "/metrics", None, 403),
        ("GET", "/", None, 200),
        ("GET", "/compare", None, 403),
    ],
)
async def test_the_log_names_the_key_also_of_a_request_that_is_refused(
    guarded: Api,
    connect: Connect,
    keys: KeyFile,
    caplog: pytest.LogCaptureFixture,
    method: str,
    path: str,
    body: dict[str, str] | None,
    status: int,
) -> None:
    secret = keys.make("shop", rights=[Right.ROUTE], scopes=["shop"])
    caplog.set_level(logging.INFO, "router.access")
    answer = await connect(guarded, key=secret).request(method, path, json=body)
    assert answer.status_code == status
    [line] = [record.getMessage() for record in caplog.records if record.name == "router.access"]
    assert line.endswith(f" ms {keys.all()[0].id}")


async def test_a_request_to_mcp_is_logged_and_counted_as_one(
    api: Api, router: SemanticRouter, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "router.access")
    mcp = mcp_app(SkillServer(router))
    transport = httpx.ASGITransport(app=http_app(api, names=["localhost"], mcp=mcp))
    async with (
        mcp.inner.router.lifespan_context(mcp.inner),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        await client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
    [line] = [record.getMessage() for record in caplog.records if record.name == "router.access"]
    assert line.startswith("POST /mcp ")
    assert line.endswith(" local")


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
    assert answer.json()["detail"] == f"GET {path}: /openapi.json lists what there is"


@pytest.mark.parametrize("path", ["/v1/route", "/try", "/sign-in"])
async def test_a_client_that_goes_in_the_middle_of_its_body_is_no_fault(
    api: Api, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    scope = {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"origin", b"http://localhost")],
    }
    messages = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Any:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        pass

    await http_app(api, names=["localhost"], mcp=None)(scope, receive, send)
    assert caplog.records == []
