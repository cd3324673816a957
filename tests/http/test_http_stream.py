"""Server-sent events: who listens hears what happens, without users' words, and holds nobody up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, get_args

import pytest
import uvicorn
from cascade import SQUASH, WAIT_SECONDS
from clusters import until

from router.events import (
    CacheLookup,
    CacheOutcome,
    Degraded,
    Event,
    Learned,
    LLMCalled,
    Recalled,
    Recovered,
    Reloaded,
    Routed,
)
from router.http.api import Api
from router.http.app import http_app
from router.http.keys import KeyFile, Right
from router.http.siblings import Siblings, make_ready
from router.http.stream import EventStream, as_text
from router.result import Decision, RoutingResult, Stage
from router.skills.catalog import load_catalog
from router.skills.changes import CatalogChange

Connect = Any
LISTENING = b": listening\n\n"
ALIVE = b": alive\n\n"
NOTHING = load_catalog([])
ROUTE = RoutingResult(
    decision=Decision.ROUTE,
    selected_skills=("git",),
    reasoning=SQUASH,
    confidence=0.9,
    stage=Stage.EXACT,
)
EVENTS = (
    Routed(SQUASH, "ada", ROUTE, 0.01),
    CacheLookup(Stage.FUZZY, CacheOutcome.MISS, SQUASH),
    LLMCalled("openai", "small", "route", 0.5, error=SQUASH),
    Reloaded(CatalogChange.between(NOTHING, NOTHING), 0.2),
    Learned(SQUASH, ("git",), "feedback"),
    Recalled(SQUASH, ("project",), 1, 0.7, partial=False, seconds=0.01),
    Degraded("llm", "over\nlines\n\nevent: made up"),
    Recovered("llm"),
)
"""One of each kind."""


async def test_events_are_told_without_the_words(api: Api, connect: Connect) -> None:
    pieces = api.events.listen()
    assert await anext(pieces) == LISTENING
    routed = (await connect(api).post("/v1/route", json={"request": SQUASH})).json()
    seen = ""
    while "event: routed" not in seen:
        seen += (await anext(pieces)).decode()
    assert routed["id"] in seen
    assert SQUASH not in seen
    api.events.close()
    assert [piece async for piece in pieces if b"alive" not in piece] == []


async def test_a_key_that_is_revoked_hears_nothing_from_then_on(
    guarded: Api, connect: Connect, keys: KeyFile
) -> None:
    listening = connect(guarded, keys.make("watcher", rights=[Right.MANAGE]))
    async with asyncio.timeout(WAIT_SECONDS):
        heard = asyncio.create_task(listening.get("/v1/events"))
        await until(lambda: bool(guarded.events._listeners))
        assert keys.revoke(keys.all()[0].id)
        client = connect(guarded, "from-the-environment")
        routed = (await client.post("/v1/route", json={"request": SQUASH})).json()
        assert routed["id"] not in (await heard).text  # which has ended
    assert not guarded.events._listeners


async def test_a_key_that_is_revoked_while_other_workers_are_waited_for_is_no_internal_error(
    guarded: Api, connect: Connect, keys: KeyFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_ready(tmp_path)
    monkeypatch.setattr("router.http.stream.JOIN_SECONDS", 0.2)
    guarded.events = EventStream(Siblings(tmp_path, 0, workers=2))  # the other does not answer
    client = connect(guarded, keys.make("watcher", rights=[Right.MANAGE]))
    async with asyncio.timeout(WAIT_SECONDS):
        heard = asyncio.create_task(client.get("/v1/events"))
        await until(lambda: bool(guarded.events._listeners))
        assert keys.revoke(keys.all()[0].id)
        guarded.events(Degraded("llm", "after it was revoked"))
        answer = await heard
    assert (answer.status_code, answer.content) == (200, LISTENING)


async def test_a_worker_that_begins_later_than_a_stream_is_heard_in_it(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.http.stream.JOIN_SECONDS", 0.05)
    monkeypatch.setattr("router.http.siblings.RETRY_SECONDS", 0.01)
    make_ready(tmp_path)
    heard = EventStream(Siblings(tmp_path, 0, workers=2)).listen()
    assert await anext(heard) == LISTENING
    other = api.siblings = Siblings(tmp_path, 1, workers=2)
    app = http_app(api, names=["localhost"], mcp=None)
    running = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
    with other.listen() as listening:
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        async with asyncio.timeout(WAIT_SECONDS):
            await until(lambda: bool(api.events._listeners))
            api.events(Degraded("llm", "in the later worker"))
            assert b"in the later worker" in await anext(heard)
        await heard.aclose()
        api.stop()
        running.should_exit = True
        await serving


def test_there_is_an_event_of_each_kind_to_be_told() -> None:
    assert [type(event) for event in EVENTS] == list(get_args(Event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_one_piece_of_json_without_the_words(event: Event) -> None:
    name, data, *rest = as_text(event).split("\n")
    assert name == f"event: {type(event).__name__.lower()}"
    assert isinstance(json.loads(data.removeprefix("data: ")), dict)
    assert rest == ["", ""]
    assert SQUASH not in data


async def test_a_slow_listener_is_told_what_it_missed_and_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.http.stream.MAX_QUEUED", 2)
    stream = EventStream()
    slow, quick = stream.listen(), stream.listen()
    assert [await anext(slow), await anext(quick)] == [LISTENING, LISTENING]
    for number in range(5):
        stream(Degraded("llm", str(number)))
        assert f'"{number}"'.encode() in await anext(quick)
    assert [json.loads((await anext(slow)).split(b"data: ")[1]) for _ in range(3)] == [
        {"part": "llm", "reason": "0"},
        {"part": "llm", "reason": "1"},
        {"events": 3},
    ]
    await slow.aclose()
    await quick.aclose()


async def test_a_quiet_stream_is_kept_open_by_comments_and_loses_no_event(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("router.http.stream.ALIVE_SECONDS", 0)
    stream = EventStream()
    pieces = stream.listen()
    assert [await anext(pieces) for _ in range(3)] == [LISTENING, ALIVE, ALIVE]
    stream(Degraded("llm", "down"))
    while (piece := await anext(pieces)) == ALIVE:
        pass
    assert piece.startswith(b"event: degraded")
    await pieces.aclose()


async def test_no_more_than_so_many_may_listen(
    api: Api, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.http.stream.MAX_LISTENERS", 1)
    pieces = api.events.listen()
    await anext(pieces)
    refused = await connect(api).get("/v1/events")
    assert (refused.status_code, refused.json()["title"]) == (503, "too many listeners")
    await pieces.aclose()
    second = api.events.listen()
    assert await anext(second) == LISTENING
    await second.aclose()
