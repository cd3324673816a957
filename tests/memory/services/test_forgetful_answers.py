"""What the service's answers are worth: order, scores, parts, and when it is asked at all."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from clock import Clock
from servers.forgetful_server import ForgetfulServer

from router.errors import EncoderError, MemoryServiceError
from router.memory.model import ScoreKind
from router.memory.services.forgetful.client import (
    FRESH_SECONDS,
    Forgetful,
    connect_service,
    new_memories,
)
from router.memory.services.forgetful.wire import ServiceResting
from router.memory.texts.contents import content_key
from router.retrieval.bundled_encoder import BundledEncoder


@pytest.fixture
async def forgetful(server: ForgetfulServer, clock: Clock) -> AsyncIterator[Forgetful]:
    made = Forgetful(connect_service(server.url), clock=clock, probe_seconds=120)
    yield made
    await made.aclose()


@pytest.fixture
async def with_encoder(
    server: ForgetfulServer, encoder: BundledEncoder
) -> AsyncIterator[Forgetful]:
    made = Forgetful(connect_service(server.url), encoder=encoder, probe_seconds=120)
    yield made
    await made.aclose()


async def ask(forgetful: Forgetful, query: str, k: int = 10) -> list[str]:
    return [item.content for item in await forgetful.search(query, k=k)]


async def test_importance_does_not_decide_what_comes_first(
    server: ForgetfulServer, forgetful: Forgetful
) -> None:
    server.add("Lunch is at noon.", importance=10)
    server.add("Tokens are refreshed hourly.", importance=5)
    assert (await ask(forgetful, "tokens refreshed"))[0] == "Tokens are refreshed hourly."


async def test_the_local_encoder_finds_the_meaning_where_no_word_agrees(
    server: ForgetfulServer, with_encoder: Forgetful
) -> None:
    server.add("Lunch is served at noon.", importance=10)
    server.add("The database schema migration failed.", importance=5)
    items = await with_encoder.search("SQL tables upgrade error", k=5)
    assert [item.id for item in items] == ["2", "1"]
    assert [item.score_kind for item in items] == [ScoreKind.FUSED] * 2


async def test_an_encoder_that_fails_leaves_the_words(
    server: ForgetfulServer,
    with_encoder: Forgetful,
    monkeypatch: pytest.MonkeyPatch,
    encoder: BundledEncoder,
) -> None:
    def fail(texts: object) -> None:
        raise EncoderError("gone")

    monkeypatch.setattr(encoder, "encode", fail)
    server.add("Lunch", importance=10)
    server.add("Tokens", importance=5)
    assert await ask(with_encoder, "tokens") == ["Tokens", "Lunch"]


async def test_parts_of_a_file_come_back_as_one(
    server: ForgetfulServer, forgetful: Forgetful
) -> None:
    content = "\n\n".join(f"Paragraph {n} about tokens. " + "word " * 150 for n in range(9))
    for part in new_memories("big", store="ab", digest="cd", content=content, tags=["t"]):
        await forgetful.create(part)
    assert len(server.memories) > 2
    (item,) = await forgetful.search("tokens", k=10)
    assert content_key(item.content) == content_key(content)
    assert item.provenance == tuple(f"forgetful:{number}" for number in server.memories)
    assert item.attributes["file"] == "big"


async def test_an_answer_is_not_asked_for_while_the_service_rests(
    server: ForgetfulServer, forgetful: Forgetful, clock: Clock
) -> None:
    server.fault = "broken"
    with pytest.raises(MemoryServiceError):
        await ask(forgetful, "x")
    server.fault = None
    with pytest.raises(ServiceResting, match="500"):
        await ask(forgetful, "x")
    clock.now += FRESH_SECONDS
    assert await ask(forgetful, "x") == []


async def test_a_probe_is_a_real_query_and_remembered(
    server: ForgetfulServer, forgetful: Forgetful, clock: Clock
) -> None:
    assert await forgetful.probe() is None
    assert await forgetful.probe() is None
    assert [name for name, _ in server.calls] == ["query_memory"]
    clock.now += FRESH_SECONDS
    assert await forgetful.probe() is None
    assert len(server.calls) == 2


async def test_any_answer_is_as_good_as_a_probe(
    server: ForgetfulServer, forgetful: Forgetful
) -> None:
    await ask(forgetful, "x")
    assert await forgetful.probe() is None
    assert len(server.calls) == 1


async def test_a_port_that_accepts_but_never_answers_is_down(
    server: ForgetfulServer, clock: Clock
) -> None:
    server.fault = "hang"
    impatient = Forgetful(connect_service(server.url), clock=clock, probe_seconds=0.5)
    for _ in range(2):
        assert "0.5 s" in str(await impatient.probe())
    await impatient.aclose()


async def test_what_is_gone_over_there_is_as_good_as_deleted(forgetful: Forgetful) -> None:
    of = ("0a", "auth")
    gone = await forgetful.obsolete(99, of=of, reason="deleted", superseded_by=None)
    assert not gone
    assert await forgetful.probe() is None


async def test_what_is_not_made_from_our_file_is_never_changed(
    server: ForgetfulServer, forgetful: Forgetful
) -> None:
    foreign = server.add("Written by somebody else")
    of = ("0a", "auth")
    await forgetful.obsolete(foreign, of=of, reason="deleted", superseded_by=None)
    assert server.held() == ["Written by somebody else"]
