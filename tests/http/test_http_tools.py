"""Tools over HTTP: brought along by a request, or kept in namespaces that keys are bound to."""

from __future__ import annotations

import gc
import json
import math
import tracemalloc
import weakref
from typing import Any

import pytest
from cascade import SQUASH

from router.http.api import Api
from router.http.keys import KeyFile, Right
from router.retrieval.index import SkillIndex
from router.router import SemanticRouter
from router.service import service
from router.service.shapes import RankArguments
from router.skills.catalog import Catalog

Connect = Any
REFUND = {
    "type": "function",
    "function": {"name": "refund", "description": "Pays a customer's money back."},
}
LOAN = {"name": "loan", "description": "Lends a customer money.", "input_schema": {}}
ASKED = {"request": "pay the customer's money back"}


async def test_the_tools_of_a_request_come_back_as_they_were(api: Api, connect: Connect) -> None:
    client = connect(api)
    sent = {**ASKED, "tools": [LOAN, REFUND], "limit": 1}
    for _ in range(2):
        ranked = (await client.post("/v1/rank", json=sent)).json()
        assert [skill["tool"] for skill in ranked["skills"]] == [REFUND]
        assert ranked["selected"] == ["refund"]
    doubled = await client.post("/v1/rank", json={**ASKED, "tools": [LOAN, LOAN]})
    assert doubled.status_code == 422
    assert "'loan'" in doubled.json()["detail"]


async def test_many_sets_of_tools_take_little_memory(api: Api, connect: Connect) -> None:
    client = connect(api)

    async def rank(number: int) -> None:
        tool = LOAN | {"description": f"Lends a customer {number} pounds."}
        assert (await client.post("/v1/rank", json={**ASKED, "tools": [tool]})).status_code == 200

    await rank(0)
    tracemalloc.start()
    try:
        for number in range(1, 21):
            await rank(number)
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 20 * 100_000
    finally:
        tracemalloc.stop()


async def test_only_so_many_sets_of_tools_are_kept(
    router: SemanticRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_CACHED_TOOLS", 3 * service.MIN_SET_SIZE)
    served = service.Service(router)
    indexes: weakref.WeakSet[SkillIndex] = weakref.WeakSet()
    over = SkillIndex.over

    def noted(self: SkillIndex, catalog: Catalog) -> SkillIndex:
        index = over(self, catalog)
        indexes.add(index)
        return index

    monkeypatch.setattr(SkillIndex, "over", noted)
    for number in range(5):
        tool = LOAN | {"description": f"Lends a customer {number} pounds."}
        await served.rank(RankArguments(request=ASKED["request"], tools=[tool]))
    gc.collect()
    assert len(indexes) == 3


async def test_a_tool_is_routable_when_it_was_put_and_not_when_it_was_deleted(
    api: Api, connect: Connect
) -> None:
    client = connect(api)
    place = "/v1/catalogs/shop/tools/refund"
    first = await client.put(place, json=REFUND)
    assert (first.status_code, first.json()["new"]) == (200, True)
    assert not (await client.put(place, json=REFUND)).json()["new"]
    routed = (await client.post("/v1/route", json=ASKED)).json()
    assert routed["selected_skills"] == ["shop__refund"]
    ranked = (await client.post("/v1/rank", json=ASKED)).json()
    assert ranked["skills"][0]["tool"] == REFUND
    loaded = (await client.get("/v1/skills/shop__refund")).json()
    assert loaded["tool"] == REFUND  # with what an agent needs to call it
    gone = await client.delete(place)
    assert gone.json()["skill"] == "shop__refund"
    assert (await client.delete(place)).status_code == 404
    again = (await client.post("/v1/route", json=ASKED)).json()
    assert again["selected_skills"] != ["shop__refund"]


async def test_a_tool_that_cannot_be_used_is_named(api: Api, connect: Connect) -> None:
    client = connect(api)
    for place, definition in (
        ("shop/tools/other", REFUND),
        ("Shop/tools/refund", REFUND),
        ("shop/tools/refund", {"description": "no name"}),
        ("shop/tools/refund", {**REFUND, "cost": math.inf}),
    ):
        answer = await client.put(f"/v1/catalogs/{place}", content=json.dumps(definition))
        assert answer.status_code == 422
        assert answer.json()["title"] == "a tool cannot be used"


async def test_a_definition_that_no_answer_could_hold_is_refused(
    api: Api, connect: Connect
) -> None:
    client = connect(api)
    deep: Any = {}
    for _ in range(240):
        deep = [deep]
    put = await client.put("/v1/catalogs/shop/tools/loan", json={**LOAN, "examples": deep})
    ranked = await client.post("/v1/rank", json={**ASKED, "tools": [{**LOAN, "x": deep}]})
    for answer in (put, ranked):
        assert (answer.status_code, answer.json()["title"]) == (422, "a tool cannot be used")
        assert "'loan': the definition is nested more than 200 deep" in answer.json()["detail"]
    assert (await client.post("/v1/rank", json=ASKED)).status_code == 200


async def test_a_key_sees_its_namespaces_and_nothing_else(
    guarded: Api, connect: Connect, keys: KeyFile, router: SemanticRouter
) -> None:
    rights = [Right.ROUTE, Right.FEEDBACK, Right.MANAGE]
    shop = connect(guarded, keys.make("shop", rights=rights, namespaces=["shop"]))
    bank = connect(guarded, keys.make("bank", rights=rights, namespaces=["bank", "skills"]))
    everyone = connect(guarded, "from-the-environment")

    assert (await shop.put("/v1/catalogs/shop/tools/refund", json=REFUND)).status_code == 200
    assert (await shop.put("/v1/catalogs/bank/tools/loan", json=LOAN)).status_code == 403
    assert (await bank.put("/v1/catalogs/bank/tools/loan", json=LOAN)).status_code == 200
    assert (await bank.delete("/v1/catalogs/shop/tools/refund")).status_code == 403

    routed = (await shop.post("/v1/route", json=ASKED)).json()
    assert routed["selected_skills"] == ["shop__refund"]
    other = await bank.post("/v1/route", json={**ASKED, "available_skills": ["shop__refund"]})
    assert other.json()["selected_skills"] == other.json()["suggested_skills"] == []
    ranked = (
        await bank.post("/v1/rank", json={**ASKED, "always_include": ["shop__refund"]})
    ).json()
    assert {skill["name"] for skill in ranked["skills"]} <= {"bank__loan", "git", "testing"}
    found = (await shop.get("/v1/skills", params={"query": SQUASH})).json()
    assert [skill["name"] for skill in found["skills"]] == ["shop__refund"]
    assert (await shop.get("/v1/skills/git")).status_code == 404
    assert (await bank.get("/v1/skills/git")).status_code == 200
    assert (await bank.post("/v1/route", json={"request": SQUASH})).json()["selected_skills"] == [
        "git"
    ]

    unseen = await bank.get(f"/v1/decisions/{routed['id']}")
    assert unseen.status_code == 404
    assert (await shop.get(f"/v1/decisions/{routed['id']}")).status_code == 200
    whole = (await everyone.post("/v1/route", json=ASKED)).json()
    assert (await shop.get(f"/v1/decisions/{whole['id']}")).status_code == 404
    wrong = await shop.post(f"/v1/decisions/{routed['id']}/feedback", json={"skills": ["git"]})
    assert wrong.status_code == 422
    for path in ("/v1/status", "/v1/learning", "/v1/events", "/metrics"):
        assert (await shop.get(path)).status_code == 403


async def test_answers_of_a_key_are_kept_while_its_namespace_changes(
    guarded: Api, connect: Connect, keys: KeyFile
) -> None:
    rights = [Right.ROUTE, Right.FEEDBACK, Right.MANAGE]
    shop = connect(guarded, keys.make("shop", rights=rights, namespaces=["shop"]))

    async def put(definition: dict[str, Any]) -> None:
        name = definition.get("name", "refund")
        done = await shop.put(f"/v1/catalogs/shop/tools/{name}", json=definition)
        assert done.status_code == 200

    async def routed() -> dict[str, Any]:
        answer: dict[str, Any] = (await shop.post("/v1/route", json=ASKED)).json()
        return answer

    await put(REFUND)
    await put(LOAN)
    sent = {"skills": ["shop__loan"]}
    first = await routed()
    assert first["selected_skills"] == ["shop__refund"]
    assert (await shop.post(f"/v1/decisions/{first['id']}/feedback", json=sent)).status_code == 200
    await put({"name": "greet", "description": "Says hello.", "input_schema": {}})
    corrected = await routed()
    assert (corrected["selected_skills"], corrected["from_cache"]) == (["shop__loan"], True)
    await shop.delete("/v1/catalogs/shop/tools/loan")
    assert (await routed())["selected_skills"] == ["shop__refund"]
