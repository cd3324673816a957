"""The id of a request, its line in the log, and its count."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from router.web.exchanges import Exchanges, request_id

Counted = list[tuple[str, str, int]]


async def told(_request: Request) -> Response:
    logging.getLogger("router.test").warning("on the way")
    return JSONResponse(request_id.get())


async def fails(_request: Request) -> Response:
    raise ValueError("a bug")


@pytest.fixture
def counted() -> Counted:
    return []


@pytest.fixture
def client(counted: Counted) -> httpx.AsyncClient:
    routes = [Route("/v1/skills/{name}", told), Route("/fails", fails)]

    def count(path: str, method: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        counted.append((path, method, status))

    templates: dict[object, str] = {told: "/v1/skills/{name}", fails: "/fails"}
    app = Exchanges(Starlette(routes=routes), templates, count, lambda: "key-1")
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


@pytest.mark.parametrize("given", ["7f3a", "1-67891233-abcdef012345678912345678", "a/b+c=.:@_"])
async def test_a_callers_id_goes_through(client: httpx.AsyncClient, given: str) -> None:
    answer = await client.get("/v1/skills/git", headers={"X-Request-Id": given})
    assert (answer.headers["x-request-id"], answer.json()) == (given, given)


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, 'a"b', "caf\u00e9", "<script>"])
async def test_an_id_that_is_none_is_replaced(client: httpx.AsyncClient, given: str) -> None:
    headers: Any = {"X-Request-Id": given.encode("latin-1")}
    answer = await client.get("/v1/skills/git", headers=headers)
    own = answer.headers["x-request-id"]
    assert own == answer.json()
    assert len(own) == 16
    assert own != (await client.get("/v1/skills/git")).headers["x-request-id"]
    assert request_id.get() == ""


async def test_paths_are_counted_by_their_template(
    client: httpx.AsyncClient, counted: Counted
) -> None:
    for path in ("/v1/skills/git", "/v1/skills/a-secret", "/fails", "/nowhere/a-secret"):
        await client.get(path)
    await client.request("BREW", "/v1/skills/git")
    assert counted == [
        ("/v1/skills/{name}", "GET", 200),
        ("/v1/skills/{name}", "GET", 200),
        ("/fails", "GET", 500),
        ("other", "GET", 404),
        ("/v1/skills/{name}", "other", 405),
    ]


async def test_the_log_has_a_line_for_each_request_and_no_word_of_it(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "router.access")
    await client.get("/v1/skills/a-secret?query=a-secret")
    [line] = [record.getMessage() for record in caplog.records if record.name == "router.access"]
    assert line.startswith("GET /v1/skills/{name} 200 ")
    assert line.endswith(" ms key-1")
    assert "a-secret" not in caplog.text


async def test_what_machines_ask_every_few_seconds_is_not_logged(
    counted: Counted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "router.access")
    app = Exchanges(
        Starlette(routes=[Route("/healthz", told)]),
        {told: "/healthz"},
        lambda path, method, status, _: counted.append((path, method, status)),
        str,
    )
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://localhost"
    ) as machine:
        await machine.get("/healthz")
    assert counted == [("/healthz", "GET", 200)]
    assert not [record for record in caplog.records if record.name == "router.access"]
