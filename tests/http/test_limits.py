"""Bounds of the server."""

from __future__ import annotations

from typing import Any

import pytest
from cascade import SQUASH

from router.http.api import Api

Connect = Any


async def test_a_full_server_says_so_at_once(
    api: Api, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(api)
    monkeypatch.setattr("router.http.limits.MAX_ACTIVE", 2)
    monkeypatch.setattr("router.http.limits.MAX_WAITING", 2)
    async with api.places.take("local"), api.places.take("local"):
        answer = await client.post("/v1/route", json={"request": SQUASH})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
        async with api.places.take("a"), api.places.take("b"):
            answer = await client.post("/v1/route", json={"request": SQUASH})
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert (await client.post("/v1/route", json={"request": SQUASH})).status_code == 200
    assert api.places.taken == 0
