"""The OpenAPI description says what the server does."""

from __future__ import annotations

from typing import Any

from cascade import SQUASH
from described import check
from openapi_spec_validator import validate

from router.http.api import Api
from router.http.endpoints import ENDPOINTS
from router.http.openapi import openapi

Connect = Any


def test_the_description_is_openapi() -> None:
    validate(openapi())
    assert len({(e.method, e.path) for e in ENDPOINTS}) == len(ENDPOINTS)
    assert all(e.summary for e in ENDPOINTS)
    # Generated clients name their types by these.
    route = openapi()["paths"]["/v1/route"]["post"]
    body = route["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/PostRouteArguments"}
    assert "title" not in openapi()["components"]["schemas"]["PostRouteArguments"]


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


def test_an_optional_argument_may_be_null_as_the_server_takes_it() -> None:
    bodies = [e for e in ENDPOINTS if e.takes == "body" and e.body is None]
    for endpoint in bodies:
        asked = endpoint.arguments
        optional = [name for name, field in asked.model_fields.items() if not field.is_required()]
        schema = openapi()["paths"][endpoint.path][endpoint.method.lower()]["requestBody"]
        described = schema["content"]["application/json"]["schema"]
        fields = openapi()["components"]["schemas"][described["$ref"].rsplit("/", 1)[-1]]
        for name in optional:
            assert {"type": "null"} in fields["properties"][name]["anyOf"], (endpoint.path, name)
    [batch] = [e for e in bodies if e.path.endswith("/batch")]
    assert batch.arguments.model_validate({"requests": [{"request": SQUASH, "trace": None}]})
    one = openapi()["components"]["schemas"]["RouteArguments"]
    assert {"type": "null"} in one["properties"]["trace"]["anyOf"]


async def test_a_memory_to_replace_that_is_not_there_is_described(
    api: Api, connect: Connect
) -> None:
    body = {"content": "The key is under the mat.", "layer": "semantic", "supersede": ["nothing"]}
    answer = await connect(api).post("/v1/memory/save", json=body)
    assert answer.status_code == 404
    check(answer, "post", "/v1/memory/save")
