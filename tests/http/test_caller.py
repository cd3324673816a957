"""Who calls: keys, rights and tenants."""

from __future__ import annotations

import re
from typing import Any

import pytest
from cascade import SQUASH
from clock import Clock
from described import described

from router.http.api import Api
from router.http.caller import Callers
from router.http.endpoints import ENDPOINTS
from router.http.keys import KeyFile, Right
from router.http.problems import Refused

Connect = Any
ENVIRONMENT_KEY = "from-the-environment"


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


async def test_unknown_keys_are_logged_once_a_minute_and_never_shown(
    keys: KeyFile, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock(0.0)
    callers = Callers(keys, secret=ENVIRONMENT_KEY, required=True, clock=clock)
    for _ in range(3):
        with pytest.raises(Refused, match="may have been revoked"):
            callers.of_key("a-wrong-key")
    clock.now = 60.0
    with pytest.raises(Refused):
        callers.of_key("a-wrong-key")
    assert [record.getMessage() for record in caplog.records] == [
        "unknown keys were shown: 1",
        "unknown keys were shown: 3",
    ]


async def test_an_answer_and_a_problem_have_the_id_of_their_request(
    guarded: Api, connect: Connect
) -> None:
    headers = {"X-Request-Id": "7f3a"}
    known = await connect(guarded, ENVIRONMENT_KEY).get("/v1/skills", headers=headers)
    refused = await connect(guarded).get("/v1/skills", headers=headers)
    assert known.headers["x-request-id"] == refused.headers["x-request-id"] == "7f3a"
    assert refused.json()["request_id"] == "7f3a"
    await connect(guarded, ENVIRONMENT_KEY).get("/v1/skills/git")
    told = guarded.metrics.text().decode()
    assert 'router_http_requests_total{method="GET",path="/v1/skills/{name}",status="200"}' in told
    assert 'router_http_requests_total{method="GET",path="/v1/skills",status="401"} 1.0' in told


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
    assert (await bank.post(f"{decision}/feedback", json=correction)).status_code == 404
    widened = await bank.post(f"{decision}/feedback", json={**correction, "scope": "shop"})
    assert widened.status_code == 403
    assert (await shop.post(f"{decision}/feedback", json=correction)).status_code == 200
    corrected = (await shop.post("/v1/route", json={"request": SQUASH})).json()
    assert corrected["selected_skills"] == ["testing"]
    unmoved = (await bank.post("/v1/route", json={"request": SQUASH})).json()
    assert unmoved["selected_skills"] == ["git"]


async def test_while_the_keys_cannot_be_read_nobody_is_let_in_or_told_where_they_are(
    api: Api,
    guarded: Api,
    connect: Connect,
    keys: KeyFile,
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = keys.make("agents", rights=[Right.ROUTE])
    whole = keys.path.read_text(encoding="utf-8")
    keys.path.write_text("{", encoding="utf-8")
    for served, key in ((api, None), (api, secret), (guarded, secret)):
        answer = await connect(served, key).post("/v1/route", json={"request": SQUASH})
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert keys.path.name not in answer.text
    known = connect(guarded, "from-the-environment")
    assert (await known.post("/v1/route", json={"request": SQUASH})).status_code == 200
    states = [(await connect(served).get("/readyz")).status_code for served in (api, guarded)]
    assert states == [503, 200]

    def told() -> int:
        return sum("is not a file of API keys" in record.message for record in caplog.records)

    client, before = connect(guarded, secret), told()
    for _ in range(3):
        await client.post("/v1/route", json={"request": SQUASH})
    assert told() == before
    for text, status in ((whole, 200), ("{", 503)):
        keys.path.write_text(text, encoding="utf-8")
        answer = await client.post("/v1/route", json={"request": SQUASH})
        assert answer.status_code == status
    assert told() == before + 1
