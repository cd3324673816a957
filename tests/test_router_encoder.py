"""The router while the server of its encoder is down: words alone decide, and nothing is kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cascade import (
    NONSENSE,
    SHIPPED,
    SQUASH,
    HeldModel,
    answer,
    bundled_encoder,
    settings_for,
    summary,
)
from servers.loopback import HANG, Recorded, Reply
from servers.openai_server import OpenAIServer, embeddings, error

from router import Decision, SemanticRouter, Settings, Stage
from router.errors import EncoderError
from router.request import Request
from router.retrieval import guarded_encoder
from router.service.explaining import explain

FAILS = "the encoder fails"


class EmbeddingServer(OpenAIServer):
    """Encodes as the bundled encoder does, or answers ``fault`` while there is one."""

    fault: Reply | None = None

    def respond(self, request: Recorded) -> Reply:
        if self.fault is not None:
            return self.fault
        rows = bundled_encoder().encode(request.body["input"])
        return embeddings(dict(enumerate(rows.tolist())))


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    made = EmbeddingServer()
    yield made
    made.close()
    assert made.violations == []


@pytest.fixture(autouse=True)
def _tried_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The breaker has tests of its own."""
    monkeypatch.setattr(guarded_encoder, "RESET_SECONDS", 1e-9)


def settings_of(state: Path, server: OpenAIServer, **encoder: Any) -> Settings:
    """No LLM, and an encoder on the server."""
    made = settings_for(state, encoder={"kind": "openai", "model": "m", **encoder})
    openai = made.llm.openai.model_copy(update={"base_url": server.url})
    return made.model_copy(update={"llm": made.llm.model_copy(update={"openai": openai})})


@pytest.mark.parametrize("fault", [error(500, "broken"), error(429, "too many"), HANG])
async def test_while_the_encoder_is_down_words_alone_decide_and_nothing_of_it_is_kept(
    tmp_path: Path, server: EmbeddingServer, fault: Reply
) -> None:
    settings = settings_of(tmp_path, server, timeout_seconds=2 if fault is HANG else 60)
    async with SemanticRouter(settings, roots=[SHIPPED]) as router:
        server.fault = fault
        down = await router.route(SQUASH)
        assert summary(down) == (Decision.ROUTE, ("git",))
        assert down.reasoning.endswith("; by words alone, because the encoder fails")
        assert "encoder" in down.trace[3].evidence
        assert (await router.look_up(SQUASH))[0] is None
        server.fault = None
        back = await router.route(SQUASH)
        assert (back.stage, summary(back)) == (Stage.VECTOR, (Decision.ROUTE, ("git",)))
        assert FAILS not in back.reasoning
        server.fault = fault
        assert (await router.route(SQUASH)).stage is Stage.EXACT


async def test_of_a_request_without_a_word_of_any_skill_little_is_said(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    """Its words say nothing, and that is no sign that nothing fits."""
    async with SemanticRouter(settings_of(tmp_path, server), roots=[SHIPPED]) as router:
        server.fault = error(500, "broken")
        result = await router.route("qwzx vrrk")
        assert (result.decision, result.suggested_skills) == (Decision.ABSTAIN, ())
        assert result.confidence < 0.5
        assert result.reasoning.startswith("no skill has a word of the request; by words alone")
        assert (await router.route(NONSENSE)).confidence < 0.5


async def test_a_ranking_is_never_refused_and_says_that_it_goes_by_words(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    async with SemanticRouter(settings_of(tmp_path, server), roots=[SHIPPED]) as router:
        server.fault = error(500, "broken")
        ranked = await router.rank("squash my commits", limit=3, history=["fix the login bug"])
        assert len(ranked.skills) == 3
        assert ranked.skills[0].name == "git"
        assert ranked.reasoning.endswith("because the encoder fails")
        assert (await router.rank("qwzx vrrk")).skills[0].reason == "matches on nothing"
        assert (await router.discover(SQUASH))[0].name == "git"


async def test_many_requests_are_answered_by_words_too(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    async with SemanticRouter(settings_of(tmp_path, server), roots=[SHIPPED]) as router:
        server.fault = error(500, "broken")
        results = await router.route_many([SQUASH, "squash my commits"])
    assert [result.selected_skills[:1] for result in results] == [("git",), ("git",)]


async def test_an_answer_by_words_can_be_explained(tmp_path: Path, server: EmbeddingServer) -> None:
    async with SemanticRouter(settings_of(tmp_path, server), roots=[SHIPPED]) as router:
        server.fault = error(500, "broken")
        result = await router.route(SQUASH)
        index = (await router.open()).index
        why = await explain(Request.parse(SQUASH), result, index)
    assert why.winner is not None
    assert (why.winner.name, why.winner.parts[1]) == ("git", 0.0)


async def test_an_llm_that_was_offered_what_words_alone_found_is_not_kept(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    """The right skill may have been left out of what it was offered."""
    settings = settings_of(tmp_path, server)
    llm = settings.llm.model_copy(update={"enabled": True, "offered_tokens": 100})
    model = HeldModel(answer("git"))
    model.release()
    async with SemanticRouter(
        settings.model_copy(update={"llm": llm}), roots=[SHIPPED], models=[model]
    ) as router:
        server.fault = error(500, "broken")
        assert (await router.route(SQUASH)).stage is Stage.LLM
        assert (await router.look_up(SQUASH))[0] is None
        server.fault = None
        await router.route(SQUASH)
        assert (await router.look_up(SQUASH))[0] is not None


async def test_an_answer_is_not_kept_where_only_what_it_refuses_was_read_by_words(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    request = f"{SQUASH}, but don't write unit tests for the calculator"
    async with SemanticRouter(settings_of(tmp_path, server), roots=[SHIPPED]) as router:
        await router.route(SQUASH)  # the rest is encoded, and remembered
        server.fault = error(500, "broken")
        down = await router.route(request)
        assert summary(down) == (Decision.ROUTE, ("git",))
        assert "encoder" in down.trace[3].evidence
        assert (await router.look_up(request))[0] is None


async def test_what_a_request_refuses_and_its_rest_are_encoded_in_one_call(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    async with SemanticRouter(settings_of(tmp_path, server), roots=[SHIPPED]) as router:
        before = len(server.requests)
        result = await router.route(
            f"{SQUASH}. Don't write unit tests for the calculator. No code review for now."
        )
        assert "not wanted: testing" in result.reasoning
        assert len(server.requests) == before + 1


async def test_closing_waits_no_longer_for_an_encoder_that_hangs_than_a_request_does(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    """The local model was being fitted, whose examples were encoded with the limit of skills: a
    command that had its answer after 3 s ended after 65 s."""
    async with asyncio.timeout(30):
        router = SemanticRouter(settings_of(tmp_path, server, timeout_seconds=2), roots=[SHIPPED])
        async with router:
            server.fault = HANG
            await router.route(SQUASH)
            learner = (await router.open()).parts.learner
            assert learner is not None
            learner.trainer.restart()


async def test_skills_that_cannot_be_encoded_are_an_error(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    server.fault = error(400, "broken")
    with pytest.raises(EncoderError, match="broken"):
        async with SemanticRouter(settings_of(tmp_path, server), roots=[SHIPPED]):
            pass


async def test_the_log_says_why_requests_are_ranked_by_words(
    tmp_path: Path, server: EmbeddingServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with SemanticRouter(settings_of(tmp_path, server), roots=[SHIPPED]) as router:
        server.fault = error(500, "broken")
        with caplog.at_level(logging.WARNING, logger="router"):
            await router.route(SQUASH)
    assert [r.message for r in caplog.records if "words alone" in r.message]
