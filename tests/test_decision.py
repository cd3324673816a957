"""The cascade with an LLM: the real SDKs against loopback servers, and what the router makes of
their answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from cascade import (
    NONSENSE,
    SHIPPED,
    SQUASH,
    answer,
    offered_names,
    outcomes,
    router_over,
    sent_documents,
    settings_for,
    shipped_router,
    some_skills,
    summary,
    write_skill,
)
from servers.loopback import Reply
from servers.ollama_server import OllamaServer, chat
from servers.openai_server import OpenAIServer, completion
from servers.openai_server import error as openai_error

from router import Decision, Outcome, SemanticRouter, Settings, Stage
from router.learning.bound import BoundDecision
from router.learning.learner import CalibratedAnswer, EvidenceCheck, Learner

SHIPPED_NAMES = sorted(path.parent.name for path in SHIPPED.glob("*/SKILL.md"))


@pytest.fixture(autouse=True)
def _imported_sdks() -> None:
    """Importing an SDK takes longer than the deadlines of some tests."""
    import ollama  # noqa: F401
    import openai  # noqa: F401


# --- names


@pytest.mark.parametrize("history", [[], ["sum up this file"]])
async def test_a_skill_that_is_named_outright_is_loaded_and_no_llm_is_asked(
    tmp_path: Path, openai_server: OpenAIServer, history: list[str]
) -> None:
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route("use the terminal skill please", history=history)
    assert summary(result) == (Decision.ROUTE, ("terminal",))
    assert result.stage is Stage.VECTOR
    assert (result.trace[2].outcome, result.trace[2].reason) == (
        Outcome.SKIPPED,
        "the request names terminal",
    )
    assert openai_server.requests == []


async def test_an_llm_decides_where_the_named_skill_is_not_available(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git"), probabilities={"git": 0.9}))
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route("/terminal", available_skills=["git", "testing"])
    assert (summary(result), result.stage) == ((Decision.ROUTE, ("git",)), Stage.LLM)


async def test_a_compound_name_in_a_request_wins_where_the_llm_finds_no_skill(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer(), probabilities={}))
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route("code-review for the parser")
    assert (summary(result), result.stage) == ((Decision.ROUTE, ("code-review",)), Stage.VECTOR)
    assert len(openai_server.requests) == 1


async def test_what_retrieval_decides_against_a_sure_llm_is_not_learnt_from_the_llm(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """The local model would answer that no skill fits, where the router itself had routed."""
    openai_server.queue(completion(answer(), probabilities={}))
    async with shipped_router(tmp_path, openai_server) as router:
        await router.route("code-review for the parser")
        assert await router.learner.labels() == []


async def test_a_skill_that_is_refused_by_name_is_not_offered_to_the_llm(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("testing"), probabilities={"testing": 0.9}))
    async with shipped_router(tmp_path, openai_server) as router:
        await router.route("look at the parser, but without the code-review skill")
    (offered,) = offered_names(openai_server)
    assert sorted([*offered, "code-review"]) == SHIPPED_NAMES


async def test_a_weak_answer_of_the_llm_loads_nothing_that_the_request_refuses(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git", "testing"), probabilities={"git": 0.4}))
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route(
            "squash the last four commits, but don't write unit tests for the calculator"
        )
    assert summary(result) == (Decision.ROUTE, ("git",))


async def test_an_answer_of_the_llm_that_the_request_refuses_is_not_kept(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """It would be kept as the LLM's answer that no skill fits."""
    write_skill(tmp_path / "skills", "writer", "Writes letters, articles and blog posts.")
    write_skill(tmp_path / "skills", "git", "Commits, squashes, rebases and pushes with git.")
    openai_server.queue(completion(answer("writer"), probabilities={"writer": 0.9}))
    request = "squash the last commits, but don't write a blog post"
    async with router_over(tmp_path / "skills", tmp_path / "state", openai_server) as router:
        result = await router.route(request)
        assert result.selected_skills == ()
        assert "the request does not want writer" in result.trace[3].reason
        assert (await router.look_up(request))[0] is None
        assert await router.learner.labels() == []


async def test_the_local_model_leaves_a_request_that_refuses_a_skill_to_the_llm(
    tmp_path: Path, openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the words of what is refused as those of what is wanted."""
    bound = BoundDecision(True, False, 0.001, 0.002, 200, "so", 0.1, 1, "testing", None)
    ranked = ((("testing",), 0.999),)
    local = CalibratedAnswer(("testing",), 0.999, 1.0, 0.0, ranked, 300, 40, 200)

    async def check(*_: object) -> EvidenceCheck:
        return EvidenceCheck(bound, local)

    monkeypatch.setattr(Learner, "check", check)
    openai_server.queue(completion(answer("git"), probabilities={"git": 0.4}))
    async with shipped_router(tmp_path, openai_server) as router:
        kept = await router.route("squash the last four commits without losing one")
        asked = await router.route(
            "squash the last four commits, but don't write unit tests for the calculator"
        )
    assert (kept.selected_skills, asked.selected_skills) == (("testing",), ("git",))
    assert len(openai_server.requests) == 1
    assert "local_answer" not in asked.trace[2].evidence


async def test_a_strong_llm_reads_what_a_request_refuses_by_itself(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git"), probabilities={"git": 0.95}))
    async with shipped_router(tmp_path, openai_server) as router:
        await router.route("squash the last four commits, but don't write unit tests")
    (offered,) = offered_names(openai_server)
    assert sorted(offered) == SHIPPED_NAMES


# --- strong answers


async def test_a_strong_answer_is_the_result_and_the_vector_stage_is_left_out(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    reply = answer("git", "testing", memory_layers=["project", "user"])
    openai_server.queue(completion(reply, probabilities={"git": 0.8}))
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route(NONSENSE)  # retrieval would never choose these two
    assert summary(result) == (Decision.ROUTE, ("git", "testing"))
    assert result.stage is Stage.LLM
    assert result.confidence == pytest.approx(0.8)
    assert result.suggested_skills == ()
    assert [(layer.name, layer.weight) for layer in result.memory_layers] == [
        ("project", 1.0),
        ("user", 0.5),
    ]
    assert (result.mission_brief, result.reasoning) == (
        "Do what is asked.",
        "It is what was asked.",
    )
    assert outcomes(result) == [
        Outcome.DECLINED,
        Outcome.DECLINED,
        Outcome.ANSWERED,
        Outcome.SKIPPED,
    ]
    assert result.trace[2].microseconds > 0
    assert result.trace[3].reason == "the LLM's route is strong"


async def test_a_provider_is_found_in_the_environment(
    tmp_path: Path, ollama_server: OllamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url)
    ollama_server.queue(chat(answer("git"), probabilities={}))
    settings = Settings(state_dir=tmp_path)
    async with SemanticRouter.from_skills(SHIPPED, settings=settings) as router:
        result = await router.route(SQUASH)
    assert (result.stage, result.confidence) == (Stage.LLM, 1.0)


# --- weak answers


async def test_a_weak_answer_that_retrieval_supports_is_lifted_and_routed(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git", confidence=0.4)))
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route(SQUASH)
    assert summary(result) == (Decision.ROUTE, ("git",))
    assert result.stage is Stage.LLM
    assert result.confidence == pytest.approx(0.55)
    assert "git" not in result.suggested_skills
    assert result.trace[3].outcome is Outcome.SUPPORTED
    assert result.trace[3].reason.endswith("retrieval supports git")
    assert result.trace[3].microseconds > 0


async def test_an_llm_that_says_none_is_not_overruled_but_retrieval_may_suggest(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("none")), completion(answer("none")))
    async with shipped_router(tmp_path, openai_server) as router:
        near = await router.route(SQUASH)
        far = await router.route(NONSENSE)
    assert summary(near) == summary(far) == (Decision.ABSTAIN, ())
    assert near.suggested_skills[0] == "git"
    assert len(near.suggested_skills) == 3
    assert len(far.suggested_skills) == 3
    assert near.stage is Stage.LLM
    assert near.trace[3].outcome is Outcome.DECLINED
    assert near.confidence == pytest.approx(0.9)


async def test_an_llm_that_is_unsure_that_no_skill_fits_leaves_a_question(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.always = completion(answer("none", confidence=0.05))
    async with shipped_router(tmp_path, openai_server) as router:
        near = await router.route(SQUASH)
        far = await router.route(NONSENSE)
    assert summary(near) == (Decision.CLARIFY, ())
    assert near.suggested_skills[0] == "git"
    assert near.question.startswith("Is it about git")
    assert near.confidence < 0.05  # neither the LLM nor retrieval believes that none fits
    assert near.trace[3].reason == (
        "the LLM chose no skill, with a confidence of 0.05; retrieval would load git"
    )
    assert summary(far) == (Decision.ABSTAIN, ())


UNREADABLE = ["true", '"high"', "NaN", "null", "8"]


@pytest.mark.parametrize("stated", UNREADABLE)
async def test_a_model_that_states_no_confidence_routes_what_retrieval_alone_would_route(
    tmp_path: Path, openai_server: OpenAIServer, stated: str
) -> None:
    openai_server.always = completion(answer("git").replace("0.9", stated))
    async with shipped_router(tmp_path) as router:
        alone = await router.route(SQUASH)
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route(SQUASH)
        examples = router.learner.status()["examples"]
    assert summary(result) == summary(alone) == (Decision.ROUTE, ("git",))
    assert result.confidence == alone.confidence
    assert result.reasoning == "It is what was asked. (the LLM stated no confidence)"
    assert result.trace[2].reason == "openai chose git, and states no confidence"
    assert result.trace[3].reason == "the LLM stated no confidence; retrieval supports git"
    assert examples.get("llm", 0) == 0  # a label needs a confidence of the LLM's own


# --- answers that cannot be used

UNUSABLE: dict[str, tuple[Reply, str]] = {
    "unknown skills": (completion(answer("gti", "rm -rf")), "none of the skills in the answer"),
    "truncated": (completion(answer("git")[:30], finish_reason="length"), "cut off"),
    "server error": (openai_error(500, "it broke"), "500 it broke"),
}


@pytest.mark.parametrize(("reply", "said"), UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_after_an_unusable_answer_the_vector_stage_decides_and_the_trace_says_why(
    tmp_path: Path, openai_server: OpenAIServer, reply: Reply, said: str
) -> None:
    openai_server.always = reply
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route(SQUASH)
    assert summary(result) == (Decision.ROUTE, ("git",))
    assert result.stage is Stage.VECTOR
    assert outcomes(result)[2:] == [Outcome.FAILED, Outcome.ANSWERED]
    assert said in result.trace[2].reason


# --- what the LLM is offered and told


async def test_a_small_catalog_is_offered_whole_in_an_order_that_no_request_changes(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.always = completion(answer("none"))
    async with shipped_router(tmp_path, openai_server) as router:
        await router.route(SQUASH)
        await router.route(NONSENSE)
    assert offered_names(openai_server) == [SHIPPED_NAMES, SHIPPED_NAMES]
    schemas = [request.body["response_format"] for request in openai_server.requests]
    enum = schemas[0]["json_schema"]["schema"]["properties"]["skills"]["items"]["enum"]
    assert enum == [*SHIPPED_NAMES, "none"]


def _many_skills(root: Path, count: int) -> Path:
    for number in range(count):
        write_skill(root, f"subject-{number:02}", f"Knows all about qwz{number}x. Use for it.")
    return root


async def test_skills_are_all_offered_while_they_fit_and_else_the_likeliest(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.always = completion(answer("none"))
    skills = _many_skills(tmp_path / "skills", 40)
    llm = {"offered_tokens": 950}  # such a skill takes 23
    async with router_over(skills, tmp_path / "state", openai_server, llm=llm) as router:
        await router.route("tell me about qwz7x")
        _many_skills(tmp_path / "skills", 45)
        await router.reload()
        await router.route("tell me about qwz44x")
    whole, likeliest = offered_names(openai_server)
    assert whole == [f"subject-{number:02}" for number in range(40)]
    assert (len(likeliest), likeliest[0]) == (41, "subject-44")
    assert [sent["skills"] for sent in sent_documents(openai_server)][1] == []


async def test_the_likeliest_are_found_by_what_the_user_said_before_too(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.always = completion(answer("none"))
    skills = _many_skills(tmp_path / "skills", 8)
    llm = {"offered_tokens": 100}
    async with router_over(skills, tmp_path / "state", openai_server, llm=llm) as router:
        await router.route("do the same for the other one", history=["tell me about qwz6x"])
    assert offered_names(openai_server)[0][0] == "subject-06"


async def test_an_answer_that_stands_in_for_a_resting_llm_is_not_learnt(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(openai_error(500, "it broke"))
    openai_server.always = completion(answer("debugging"))
    settings = {"breaker_failures": 1, "breaker_reset_seconds": 1000.0}
    async with shipped_router(tmp_path, openai_server, llm=settings) as router:
        assert (await router.route(SQUASH)).trace[2].outcome is Outcome.FAILED
        rested = await router.route(SQUASH)
        assert rested.trace[2].outcome is Outcome.SKIPPED
        assert (rested.stage, rested.selected_skills) == (Stage.VECTOR, ("git",))
    async with shipped_router(tmp_path, openai_server) as router:
        again = await router.route(SQUASH)
    assert (again.stage, again.selected_skills) == (Stage.LLM, ("debugging",))


async def test_a_pinned_skill_that_there_is_not_is_told_with_those_of_similar_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_for(tmp_path / "state", pinned_skills=("testng", "elsewhere"))
    async with SemanticRouter(settings, roots=[some_skills(tmp_path / "skills", "git", "testing")]):
        pass
    told = [each.getMessage() for each in caplog.records if "pinned" in each.getMessage()]
    assert told == ["pinned_skills: no skill named 'testng'; did you mean testing?"]
    async with SemanticRouter(settings):  # all skills of the settings: the other one is none, too
        pass
    assert "pinned_skills: no skill named 'elsewhere'" in caplog.text


async def test_pinned_skills_are_always_offered_in_the_stable_block(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.always = completion(answer("none"))
    skills = _many_skills(tmp_path / "skills", 8)
    pinned = ["subject-05", "subject-03", "not-installed"]
    llm = {"offered_tokens": 100}
    async with router_over(
        skills, tmp_path / "state", openai_server, llm=llm, pinned_skills=pinned
    ) as router:
        await router.route("tell me about qwz7x")
        await router.route("tell me about qwz7x", available_skills=["subject-05", "subject-07"])
    whole, available = offered_names(openai_server)
    assert whole[:3] == ["subject-03", "subject-05", "subject-07"]
    assert len(whole) == 4
    assert available == ["subject-05", "subject-07"]
    stable = [skill["name"] for skill in sent_documents(openai_server)[0]["skills"]]
    assert stable == ["subject-03", "subject-05"]


async def test_only_available_skills_are_offered_and_accepted(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.always = completion(answer("git"))
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route(SQUASH, available_skills=["testing", "writer", "not-installed"])
        nothing = await router.route(SQUASH, available_skills=[])
    assert offered_names(openai_server) == [["testing", "writer"]] * 2  # and once more, asked again
    assert result.trace[2].outcome is Outcome.FAILED
    assert "git" not in (*result.selected_skills, *result.suggested_skills)
    assert nothing.trace[2].reason == "there is no skill to offer"
    assert nothing.decision is Decision.ABSTAIN


async def test_a_skill_that_models_may_not_invoke_is_not_offered(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    write_skill(tmp_path / "skills", "open", "May be chosen.")
    write_skill(tmp_path / "skills", "shut", "May not.", "disable-model-invocation: true")
    openai_server.always = completion(answer("none"))
    async with router_over(tmp_path / "skills", tmp_path / "state", openai_server) as router:
        await router.route(SQUASH)
        await router.route(SQUASH, available_skills=["open", "shut"])
    assert offered_names(openai_server) == [["open"], ["open"]]
