"""Who may open the playground, and from where: sessions, other sites' pages, headers."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from cascade import SQUASH, WAIT_SECONDS
from clusters import until

from router.events import Reloaded
from router.http.api import Api
from router.http.caller import Callers
from router.http.keys import KeyFile, Right
from router.http.playground.session import COOKIE, SESSION_SECONDS, Sessions
from router.http.problems import Refused
from router.memory.memory import Memory
from router.router import SemanticRouter
from router.settings.settings import Settings
from router.skills.catalog import load_catalog
from router.skills.changes import CatalogChange
from router.stages.answers import LocalAnswers

Connect = Any
OWN = {"Origin": "http://localhost"}
KEY = "from-the-environment"


async def sign_in(client: httpx.AsyncClient, key: str) -> httpx.Response:
    return await client.post("/sign-in", data={"key": key}, headers=OWN)


async def test_a_key_in_the_form_opens_the_pages_and_signing_out_closes_them(
    connect: Connect, guarded: Api
) -> None:
    client = connect(guarded)
    asked = await client.get("/")
    assert (asked.status_code, asked.headers["location"]) == (303, "/sign-in")
    by_htmx = await client.post("/try", headers={**OWN, "HX-Request": "true"})
    assert (by_htmx.status_code, by_htmx.headers["hx-redirect"]) == (401, "/sign-in")
    wrong = await sign_in(client, "crk_wrong")
    assert wrong.status_code == 401
    assert "this key is not known" in wrong.text
    right = await sign_in(client, KEY)
    assert (right.status_code, right.headers["location"]) == (303, "/")
    cookie = right.headers["set-cookie"]
    assert KEY not in cookie
    assert re.search(r"HttpOnly; Max-Age=43200; Path=/; SameSite=strict$", cookie)
    assert "<h1>Try</h1>" in (await client.get("/")).text
    # The API takes keys only: no page of another server on this host can use the cookie there.
    assert (await client.post("/v1/route", json={"request": SQUASH})).status_code == 401
    await client.post("/sign-out", headers=OWN)
    assert (await client.get("/")).status_code == 303


async def test_a_revoked_key_ends_its_session_and_a_scoped_key_sees_its_own_only(
    connect: Connect, guarded: Api, keys: KeyFile
) -> None:
    secret = keys.make("shop", rights=[Right.ROUTE], scopes=["shop"])
    client, other = connect(guarded), connect(guarded, KEY)
    await sign_in(client, secret)
    await other.post("/v1/route", json={"request": "of somebody else", "scope": "bank"})
    done = await client.post("/try", data={"request": SQUASH}, headers=OWN)
    assert done.status_code == 200
    page = (await client.get("/")).text
    assert SQUASH in page
    assert "of somebody else" not in page
    wide = await client.post("/try", data={"request": SQUASH, "scope": "bank"}, headers=OWN)
    assert wide.status_code == 403
    found = re.search(r"/decisions/(\w+)/feedback", done.text)
    assert found is None  # it may not say what was right
    [key] = keys.all()
    keys.revoke(key.id)
    assert (await client.get("/")).status_code == 303


async def test_a_page_whose_key_is_revoked_hears_of_no_further_change(
    connect: Connect, guarded: Api, keys: KeyFile
) -> None:
    client = connect(guarded)
    await sign_in(client, keys.make("watcher", rights=[Right.ROUTE]))
    async with asyncio.timeout(WAIT_SECONDS):
        heard = asyncio.create_task(client.get("/skills/live"))
        await until(lambda: bool(guarded.events._listeners))
        assert keys.revoke(keys.all()[0].id)
        catalog = load_catalog([])
        guarded.events(Reloaded(CatalogChange.between(catalog, catalog), 0.0))
        answer = await heard  # which has ended
    assert (answer.status_code, answer.content) == (200, b": listening\n\n")
    assert not guarded.events._listeners


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
    ],
    ids=str,
)
async def test_nothing_is_done_for_another_sites_page(
    connect: Connect, api: Api, headers: dict[str, str]
) -> None:
    client = connect(api)
    for path in ("/try", "/sign-in"):
        refused = await client.post(path, data={"request": SQUASH, "key": KEY}, headers=headers)
        assert refused.status_code == 403
        assert "set-cookie" not in refused.headers
    assert "Nothing was asked yet" in (await client.get("/")).text


async def test_every_page_forbids_what_is_not_its_own(connect: Connect, api: Api) -> None:
    client = connect(api)
    for path in ("/", "/sign-in", "/decisions/unknown"):
        page = await client.get(path)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"""<script(?! src="/)|\sstyle=|\son\w+=|https?://""", page.text)
    for name in ("htmx.min.js", "playground.js", "playground.css", "icon.svg"):
        file = await client.get(f"/playground/{name}")
        assert file.status_code == 200
        again = await client.get(
            f"/playground/{name}", headers={"If-None-Match": file.headers["etag"]}
        )
        assert again.status_code == 304
    assert (await client.get("/playground/page.html")).status_code == 404


async def test_a_memory_layer_that_works_is_not_shown_as_left_alone(
    connect: Connect, api: Api
) -> None:
    page = (await connect(api).get("/memory")).text
    assert "procedural" in page
    assert "left alone" not in page


async def test_a_cache_that_is_shared_is_tested_and_forgotten_and_not_listed(
    connect: Connect, skills: Path, tmp_path: Path, memory: Memory, keys: KeyFile
) -> None:
    class Elsewhere:
        """A cache that is none of this machine's."""

        def __init__(self, settings: Settings) -> None:
            self._kept = LocalAnswers.configured(settings)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._kept, name)

    settings = Settings(state_dir=tmp_path / "state", llm={"enabled": False})
    cache: Any = Elsewhere(settings)
    async with SemanticRouter(settings, sources=[skills], cache=cache) as router:
        client = connect(Api(router, memory, Callers(keys, secret=None, required=False)))
        await client.post("/v1/route", json={"request": SQUASH})
        page = await client.get("/caches")
        assert page.status_code == 200
        assert "a cache that several servers share" in page.text
        asked = {"data": {"request": SQUASH}, "headers": OWN}
        assert "badge hit" in (await client.post("/caches/test", **asked)).text
        assert "forgotten" in (await client.post("/caches/forget-request", **asked)).text
        assert "no hit" in (await client.post("/caches/test", **asked)).text


def test_a_session_ends_and_cannot_be_made_up(keys: KeyFile) -> None:
    from starlette.requests import Request
    from starlette.responses import Response

    now = 1_000.0
    callers = Callers(keys, secret=KEY, required=True)
    sessions = Sessions(callers, secret=b"a", clock=lambda: now)
    response = Response()
    sessions.sign_in(response, KEY, secure=True)
    given = response.headers["set-cookie"]
    assert "; Secure" in given
    session = given.partition(";")[0].removeprefix(f"{COOKIE}=")

    def shown(cookie: str) -> Request:
        return Request(
            {"type": "http", "headers": [(b"cookie", f"{COOKIE}={cookie}".encode("latin-1"))]}
        )

    assert sessions.identify(shown(session)).id == "environment"
    name, ends, signature = session.split(".")
    longer = f"{name}.{int(ends) + 1}.{signature}"
    for made_up in (longer, f"x.{ends}.{signature}", f"{name}.{ends}.", "..", "", "\xe9.\xe9.\xe9"):
        with pytest.raises(Refused):
            sessions.identify(shown(made_up))
    with pytest.raises(Refused):
        Sessions(callers, secret=b"b", clock=lambda: now).identify(shown(session))
    now += SESSION_SECONDS + 1
    with pytest.raises(Refused):
        sessions.identify(shown(session))
