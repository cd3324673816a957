"""The two caches inside the cascade: what answers, what is learnt, and what never crosses over."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from cascade import (
    NONSENSE,
    SHIPPED,
    SQUASH,
    SQUASH_PARAPHRASED,
    answer,
    settings_for,
    shipped_router,
    summary,
)
from servers.loopback import Reply
from servers.openai_server import OpenAIServer, completion
from servers.openai_server import error as openai_error

from router import Decision, Outcome, SemanticRouter, Stage, Turn


async def test_an_identical_request_is_answered_by_its_own_entry_and_never_by_a_neighbours(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("debugging")), completion(answer("testing")))
    async with shipped_router(tmp_path, openai_server) as router:
        await router.route("fix the bug", use_semantic_cache=False)
        await router.route("fix bug")
        # The fuzzy cache holds nothing but the neighbour, and would answer with it.
        assert (await router.route("please fix the bug")).selected_skills == ("testing",)
        own = await router.route("fix the bug")
        spelled_otherwise = await router.route("  Fix   the BUG ")
    assert (own.stage, own.selected_skills) == (Stage.EXACT, ("debugging",))
    assert (spelled_otherwise.stage, spelled_otherwise.selected_skills) == (
        Stage.EXACT,
        ("debugging",),
    )


CONTEXTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one skill": {"available_skills": ["git"]},
    "two skills": {"available_skills": ["git", "testing"]},
    "scope": {"scope": "me"},
    "another scope": {"scope": "you"},
    "history": {"history": ["which branch?"]},
    "history of the other side": {"history": [Turn("assistant", "which branch?")]},
    "longer history": {"history": ["which", "branch?"]},
}


async def test_answers_do_not_cross_skills_scopes_or_histories(tmp_path: Path) -> None:
    async with shipped_router(tmp_path) as router:
        for context in CONTEXTS.values():
            assert (await router.route(SQUASH, **context)).stage is Stage.VECTOR
        for context in CONTEXTS.values():
            assert (await router.route(SQUASH, **context)).stage is Stage.EXACT
            # Here the neighbours of all contexts are in the fuzzy cache.
            close = await router.route(SQUASH_PARAPHRASED, **context)
            assert close.stage is Stage.FUZZY
        elsewhere = await router.route(SQUASH_PARAPHRASED, scope="somebody else")
    assert elsewhere.stage is Stage.VECTOR


async def test_the_order_and_repetition_of_available_skills_do_not_matter(tmp_path: Path) -> None:
    async with shipped_router(tmp_path) as router:
        await router.route(SQUASH, available_skills=["git", "testing"])
        same = await router.route(SQUASH, available_skills=iter(["testing", "git", "git"]))
    assert same.stage is Stage.EXACT


async def test_a_left_out_fuzzy_cache_is_not_taught(tmp_path: Path) -> None:
    async with shipped_router(tmp_path) as router:
        result = await router.route(SQUASH, use_semantic_cache=False)
        assert len(router.fuzzy) == 0
        assert (await router.route(SQUASH)).stage is Stage.EXACT
    assert result.trace[0].outcome is Outcome.SKIPPED
    assert result.trace[0].reason == "the caller left the fuzzy cache out"


async def test_a_left_out_fuzzy_cache_is_not_asked(tmp_path: Path) -> None:
    async with shipped_router(tmp_path) as router:
        await router.route(SQUASH)
        result = await router.route(SQUASH_PARAPHRASED, use_semantic_cache=False)
    assert result.stage is Stage.VECTOR


# --- what is learnt


async def test_a_strong_llm_answer_is_learnt_and_asked_for_only_once(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git")))
    async with shipped_router(tmp_path, openai_server) as router:
        first = await router.route(SQUASH)
        again = await router.route(SQUASH)
        close = await router.route(SQUASH_PARAPHRASED)
    assert [first.stage, again.stage, close.stage] == [Stage.LLM, Stage.EXACT, Stage.FUZZY]
    assert {result.selected_skills for result in (first, again, close)} == {("git",)}
    assert again.mission_brief == "Do what is asked."
    assert again.memory_layers == first.memory_layers
    assert len(openai_server.requests) == 1


WEAK = {
    "weak": completion(answer("git", confidence=0.2)),
    "weak and supported": completion(answer("git", confidence=0.45)),
    "weak generic": completion(answer("writer", confidence=0.45)),
    "unsure none": completion(answer("none", confidence=0.45)),
    "none without a confidence": completion(answer("none").replace("0.9", '"high"')),
    "malformed": completion("no idea"),
    "refused": completion(None, refusal="I cannot help with that."),
    "failed": openai_error(500, "broken"),
}


@pytest.mark.parametrize("reply", WEAK.values(), ids=WEAK.keys())
async def test_an_answer_that_is_not_strong_is_never_learnt(
    tmp_path: Path, openai_server: OpenAIServer, reply: Reply
) -> None:
    openai_server.always = reply
    async with shipped_router(tmp_path, openai_server) as router:
        first = await router.route(SQUASH)
        calls = len(openai_server.requests)
        again = await router.route(SQUASH)
        assert (len(router.fuzzy), len(router.exact)) == (0, 0)
    assert calls > 0
    assert len(openai_server.requests) == 2 * calls
    assert summary(again) == summary(first)
    assert (first.from_cache, again.from_cache) == (False, False)


SURE_AND_NOT_STRONG: dict[str, tuple[str, tuple[Decision, tuple[str, ...]]]] = {
    "none": ("none", (Decision.ABSTAIN, ())),
    "generic": ("writer", (Decision.ROUTE, ("writer",))),
}


@pytest.mark.parametrize(
    ("said", "expected"), SURE_AND_NOT_STRONG.values(), ids=SURE_AND_NOT_STRONG.keys()
)
async def test_a_sure_none_and_a_sure_generic_skill_are_kept_for_the_same_request_alone(
    tmp_path: Path,
    openai_server: OpenAIServer,
    said: str,
    expected: tuple[Decision, tuple[str, ...]],
) -> None:
    openai_server.always = completion(answer(said))
    async with shipped_router(tmp_path, openai_server) as router:
        results = [await router.route(SQUASH) for _ in range(5)]
        assert len(openai_server.requests) == 1
        assert (len(router.fuzzy), len(router.exact)) == (0, 1)
        assert (await router.route(SQUASH, scope="me")).stage is Stage.LLM
        assert (await router.route(SQUASH_PARAPHRASED)).stage is Stage.LLM
    assert [result.stage for result in results] == [Stage.LLM, *[Stage.EXACT] * 4]
    assert {summary(result) for result in results} == {expected}
    assert {result.suggested_skills for result in results} == {results[0].suggested_skills}
    assert len({result.id for result in results}) == 5


async def test_a_name_that_overrules_the_llm_is_not_kept_as_its_answer(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.always = completion(answer("none"))
    async with shipped_router(tmp_path, openai_server) as router:
        for _ in range(2):
            result = await router.route("code-review for the parser")
            assert (summary(result), result.stage) == (
                (Decision.ROUTE, ("code-review",)),
                Stage.VECTOR,
            )
        assert len(router.exact) == 0


@pytest.mark.parametrize("said", ["none", "writer"])
async def test_a_kept_none_or_generic_skill_can_be_forgotten_and_corrected(
    tmp_path: Path, openai_server: OpenAIServer, said: str
) -> None:
    openai_server.always = completion(answer(said))
    async with shipped_router(tmp_path, openai_server) as router:
        first = await router.route(SQUASH)
        await router.forget(SQUASH)
        assert (await router.route(SQUASH)).stage is Stage.LLM
        again = await router.route(SQUASH)
        await router.feedback(again.id, right=False)
        assert (await router.route(SQUASH)).stage is Stage.LLM
        await router.feedback(first.id, ["git"])
        assert (await router.route(SQUASH)).selected_skills == ("git",)
        assert (await router.route(SQUASH_PARAPHRASED)).selected_skills == ("git",)
    assert len(openai_server.requests) == 3


async def test_a_correction_in_another_process_replaces_a_kept_none(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    now = 1_000.0
    openai_server.always = completion(answer("none"))
    async with (
        shipped_router(tmp_path, openai_server) as here,
        shipped_router(tmp_path, openai_server) as there,
    ):
        for router in (here, there):
            router.fuzzy._clock = lambda: now
            await router.route(SQUASH)
        wrong = await there.route(SQUASH)
        await there.feedback(wrong.id, ["git"])
        assert there.fuzzy.flush()
        now += 1
        assert (await here.route(SQUASH)).selected_skills == ("git",)


@pytest.mark.parametrize(
    ("request_", "decision"),
    [
        (NONSENSE, Decision.ABSTAIN),
        ("improve the page for the users", Decision.CLARIFY),
        ("write an email to my boss", Decision.ROUTE),  # to writer alone, a generic skill
    ],
)
async def test_a_local_answer_that_is_not_strong_is_never_learnt(
    tmp_path: Path, request_: str, decision: Decision
) -> None:
    async with shipped_router(tmp_path) as router:
        for _ in range(2):
            result = await router.route(request_)
            assert (result.decision, result.stage) == (decision, Stage.VECTOR)
        assert (len(router.fuzzy), len(router.exact)) == (0, 0)


# --- restarts and changes


async def test_settings_that_change_answers_leave_earlier_answers_behind(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    async def stage(**settings: Any) -> Stage:
        async with shipped_router(tmp_path, **settings) as router:
            return (await router.route(SQUASH)).stage

    assert await stage() is Stage.VECTOR
    assert await stage(max_concurrency=3) is Stage.FUZZY
    assert await stage(vector={"max_suggestions": 1}) is Stage.VECTOR
    openai_server.queue(completion(answer("git")))
    assert await stage(server=openai_server) is Stage.LLM


async def test_what_a_caller_does_to_a_result_does_not_reach_the_caches(tmp_path: Path) -> None:
    async with shipped_router(tmp_path) as router:
        first = await router.route(SQUASH)
        with pytest.raises(dataclasses.FrozenInstanceError):
            first.selected_skills = ("writer",)  # type: ignore[misc]
        evidence: Any = first.trace[-1].evidence
        with pytest.raises(TypeError):
            evidence["fits"] = 0.0
        first.to_dict()["selected_skills"].append("writer")
        first.copy_with(selected_skills=("writer",))
        again = await router.route(SQUASH)
        close = await router.route(SQUASH_PARAPHRASED)
    assert (again.stage, close.stage) == (Stage.EXACT, Stage.FUZZY)
    assert again.selected_skills == close.selected_skills == ("git",)


async def test_what_is_kept_of_an_answer_is_not_what_else_was_considered(tmp_path: Path) -> None:
    async with shipped_router(tmp_path) as router:
        first = await router.route(SQUASH)
        assert first.trace[-1].candidates
        context = router._runtime.current.base_context
        exact, fuzzy = router.exact.get(SQUASH, context), router.fuzzy.find(SQUASH, context).kept
        assert exact is not None
        assert fuzzy is not None
        assert exact.result.trace == fuzzy.result.trace == ()
        again = await router.route(SQUASH)
        close = await router.route(SQUASH_PARAPHRASED)
        for result in (first, again, close):
            assert len(result.trace) == 4
            await router.feedback(result.id, ["git"])


async def test_a_router_can_leave_the_fuzzy_cache_out_of_every_request(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    async with SemanticRouter(settings, roots=[SHIPPED], use_semantic_cache=False) as router:
        first = await router.route(SQUASH)
        assert first.trace[0].reason == "the caller left the fuzzy cache out"
        assert (await router.route(SQUASH)).stage is Stage.EXACT
        assert (await router.route(SQUASH_PARAPHRASED)).stage is Stage.VECTOR
        assert len(router.fuzzy) == 0
