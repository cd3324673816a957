"""The cascade from end to end without an LLM: real skills, real Chroma, encoder and SQLite."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from cascade import (
    NONSENSE,
    SHIPPED,
    SQUASH,
    SQUASH_PARAPHRASED,
    CountingEncoder,
    HeldModel,
    answer,
    happened,
    outcomes,
    router_over,
    settings_for,
    shipped_router,
    some_skills,
    summary,
    write_skill,
)
from clusters import until

from router import (
    ConfigurationError,
    Decision,
    InvalidRequest,
    Outcome,
    RouterError,
    RoutingResult,
    SemanticRouter,
    Stage,
    ToolSource,
)
from router.request import Request
from router.router import CHECKED_AT_ONCE
from router.stages.answers import LocalAnswers

EMAIL = "write an email to my boss"
VAGUE = "improve the page for the users"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def open_router(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[SemanticRouter]:
    """One router for the tests that ask each request once, or do not mind the caches."""
    async with shipped_router(tmp_path_factory.mktemp("state")) as router:
        yield router


# --- decisions and traces


@pytest.mark.asyncio(loop_scope="module")
async def test_each_stage_accounts_for_itself_from_a_first_request_to_its_repetition(
    open_router: SemanticRouter,
) -> None:
    first = await open_router.route(SQUASH)
    assert summary(first) == (Decision.ROUTE, ("git",))
    assert (first.stage, first.from_cache) == (Stage.VECTOR, False)
    assert [entry.stage for entry in first.trace] == list(Stage)
    assert outcomes(first) == [
        Outcome.DECLINED,
        Outcome.DECLINED,
        Outcome.SKIPPED,
        Outcome.ANSWERED,
    ]
    assert [entry.reason for entry in first.trace[:3]] == [
        "no similar request is stored",
        "no identical request is stored",
        "no LLM is configured",
    ]
    assert first.trace[3].candidates[0].name == "git"
    ran = [entry for entry in first.trace if entry.outcome is not Outcome.SKIPPED]
    assert all(entry.microseconds > 0 for entry in ran)

    again = await open_router.route(SQUASH)
    assert (again.stage, again.from_cache) == (Stage.EXACT, True)
    assert outcomes(again) == [
        Outcome.SKIPPED,
        Outcome.ANSWERED,
        Outcome.SKIPPED,
        Outcome.SKIPPED,
    ]
    assert again.trace[1].reason == "an identical request"
    assert again.trace[1].microseconds > 0

    close = await open_router.route(SQUASH_PARAPHRASED)
    assert (close.stage, close.from_cache) == (Stage.FUZZY, True)
    assert outcomes(close) == [
        Outcome.ANSWERED,
        Outcome.DECLINED,
        Outcome.SKIPPED,
        Outcome.SKIPPED,
    ]
    assert close.trace[0].evidence["matched"] == SQUASH
    assert close.trace[0].microseconds > 0

    own = {"id", "stage", "from_cache", "trace"}
    kept = [
        {key: value for key, value in result.to_dict().items() if key not in own}
        for result in (first, again, close)
    ]
    assert kept[1] == kept[0]
    assert kept[2] == kept[0]


@pytest.mark.asyncio(loop_scope="module")
async def test_nonsense_is_refused_by_every_stage(open_router: SemanticRouter) -> None:
    result = await open_router.route(NONSENSE)
    assert summary(result) == (Decision.ABSTAIN, ())
    assert len(result.suggested_skills) == 3  # a refusal brings the nearest all the same
    assert outcomes(result)[-1] is Outcome.DECLINED
    assert result.trace[-1].reason.startswith("no skill fits")


@pytest.mark.asyncio(loop_scope="module")
async def test_a_vague_request_is_answered_with_a_question(open_router: SemanticRouter) -> None:
    result = await open_router.route(VAGUE)
    assert summary(result) == (Decision.CLARIFY, ())
    assert result.suggested_skills[0] == "documentation"
    assert len(result.suggested_skills) == 3
    assert outcomes(result)[-1] is Outcome.DECLINED


@pytest.mark.asyncio(loop_scope="module")
async def test_results_survive_json_and_name_only_skills_of_their_catalog(
    open_router: SemanticRouter,
) -> None:
    undo = "undo my last commit but keep the changes"
    requests = [undo, undo, f"please {undo}!", EMAIL, NONSENSE, VAGUE]
    results = [await open_router.route(request) for request in requests]
    assert [result.stage for result in results[:3]] == [Stage.VECTOR, Stage.EXACT, Stage.FUZZY]
    for result in results:
        assert RoutingResult.from_json(result.to_json()) == result
        assert result.catalog_version == open_router.catalog.version
        named = {*result.selected_skills, *result.suggested_skills}
        named |= {candidate.name for entry in result.trace for candidate in entry.candidates}
        assert named <= set(open_router.catalog.skills)
    assert len({result.id for result in results}) == len(results)


@pytest.mark.asyncio(loop_scope="module")
async def test_without_available_skills_nothing_is_routed(open_router: SemanticRouter) -> None:
    result = await open_router.route("rebase my branch onto main", available_skills=[])
    assert summary(result) == (Decision.ABSTAIN, ())
    assert result.trace[-1].reason == "there is no skill to choose from"


@pytest.mark.asyncio(loop_scope="module")
async def test_only_available_skills_are_chosen_and_names_not_installed_are_ignored(
    open_router: SemanticRouter,
) -> None:
    both = await open_router.route(SQUASH, available_skills=["git", "no-such-skill"])
    assert summary(both) == (Decision.ROUTE, ("git",))
    assert both.suggested_skills == ()
    unknown = await open_router.route(SQUASH, available_skills=["no-such-skill"])
    assert summary(unknown) == (Decision.ABSTAIN, ())
    other = await open_router.route(SQUASH, available_skills=["testing"])
    assert [candidate.name for candidate in other.trace[-1].candidates] == ["testing"]


async def test_a_skill_that_models_may_not_invoke_is_never_chosen(tmp_path: Path) -> None:
    skills = some_skills(tmp_path / "skills", "git", "testing")
    hidden = "Squashes commits on a branch. Use to squash the last commits into one."
    write_skill(skills, "hidden", hidden, "disable-model-invocation: true")
    async with router_over(skills, tmp_path / "state") as router:
        result = await router.route(SQUASH)
        assert summary(result) == (Decision.ROUTE, ("git",))
        assert result.suggested_skills == ("testing",)
        asked_for = await router.route(SQUASH, available_skills=["hidden"])
    assert summary(asked_for) == (Decision.ABSTAIN, ())


# --- errors


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"request": " "}, "request: empty"),
        ({"request": "a", "available_skills": "git"}, "available skills: expected a list"),
        ({"request": "a", "history": ["b", 5]}, "history.1: a turn is"),
        ({"request": "a", "scope": ""}, "scope: empty"),
        (
            {"request": "a", "use_semantic_cache": "no"},
            "use_semantic_cache: expected bool, not str",
        ),
    ],
)
async def test_a_request_that_cannot_be_routed_is_refused_by_the_name_of_its_part(
    open_router: SemanticRouter, arguments: dict[str, Any], part: str
) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(part)) as caught:
        await open_router.route(**arguments)
    assert isinstance(caught.value, RouterError)


async def test_a_missing_folder_of_skills_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="gone does not exist") as caught:
        async with router_over(tmp_path / "gone", tmp_path / "state"):
            pytest.fail("it was opened")
    assert isinstance(caught.value, RouterError)


def test_a_router_over_no_folder_at_all_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="name at least one folder"):
        SemanticRouter.from_skills()
    with pytest.raises(ConfigurationError, match="NoneType is neither a folder nor a source"):
        SemanticRouter.from_skills(None)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"settings": [{"name": "refund"}]}, "settings: expected Settings, not list; from_tools"),
        ({"settings": "skills"}, "settings: expected Settings, not str"),
        ({"sources": [{"name": "refund"}]}, "sources: dict is neither a folder nor a source"),
        ({"sources": ToolSource()}, "sources: expected a list, not one ToolSource"),
        ({"roots": "skills"}, "roots: expected a list, not one str"),
        ({"roots": SHIPPED}, "roots: expected a list, not one .*Path"),
        ({"roots": [None]}, "roots: NoneType is neither a folder nor a source"),
        ({"roots": [SHIPPED], "sources": []}, "roots and sources: give one of them"),
        ({"models": "gpt"}, "models: expected a list, not one str; the setting llm.providers"),
        ({"models": ["gpt"]}, "models: str is no ChatModel; it lacks provider, model, complete"),
        ({"encoder": "minilm"}, "encoder: str is no Encoder; .* the setting encoder.kind"),
        ({"cache": "redis"}, "cache: str is no AnswerCache; .* the setting cluster.url"),
        ({"observers": ["x"]}, "observers: str is no CatalogObserver; it lacks name, on_catalog"),
        ({"observers": 5}, "observers: expected a list, not one int"),
        ({"enrichment": 5}, "enrichment: expected str or Path, not int"),
        ({"use_semantic_cache": "no"}, "use_semantic_cache: expected bool, not str"),
    ],
)
def test_what_is_given_in_a_wrong_place_is_told_the_right_one(
    given: dict[str, Any], said: str
) -> None:
    # An AttributeError of ours was raised, for lists of tools above all.
    with pytest.raises(ConfigurationError, match=said):
        SemanticRouter(**given)


async def test_a_folder_may_be_named_by_text(tmp_path: Path) -> None:
    async with SemanticRouter(settings_for(tmp_path), roots=[str(SHIPPED)]) as router:
        assert (await router.route(SQUASH)).selected_skills == ("git",)


async def test_from_skills_takes_exactly_its_folders_strongest_first(tmp_path: Path) -> None:
    write_skill(tmp_path / "strong", "git", "The strong one.")
    weak = some_skills(tmp_path / "weak", "git", "testing")
    settings = settings_for(tmp_path / "state")
    async with SemanticRouter.from_skills(tmp_path / "strong", str(weak), settings=settings) as own:
        skills = own.catalog.skills
    assert list(skills) == ["git", "testing"]
    assert skills["git"].description == "The strong one."


async def test_the_catalog_of_a_router_that_is_not_open_cannot_be_asked_for(tmp_path: Path) -> None:
    router = shipped_router(tmp_path)
    with pytest.raises(RuntimeError, match="not open"):
        _ = router.catalog
    await router.aclose()


# --- many requests


@pytest.mark.parametrize("static", [True, False])
async def test_many_requests_are_answered_in_order_and_encoded_in_batches(
    tmp_path: Path, static: bool
) -> None:
    """But not by an encoder that works on the event loop, which a batch would hold."""
    encoder = CountingEncoder()
    encoder.static = static
    requests = [f"qwzx{number}" for number in range(300)]
    requests[7], requests[290] = SQUASH, EMAIL
    quiet = {"enabled": False}  # examples are encoded too
    async with router_over(SHIPPED, tmp_path, encoder=encoder, learning=quiet) as router:
        await router.open()
        encoder.batches.clear()  # the examples of the skills
        results = await router.route_many(iter(requests))
        if static:
            assert len(encoder.batches) == 300
            assert max(encoder.batches) < 4  # the clauses of one request
        else:
            assert encoder.batches == [256, 44]
        assert await router.route_many([]) == []
        again = await router.route_many([EMAIL, SQUASH])
    assert [result.selected_skills for result in again] == [("writer",), ("git",)]
    assert len(results) == 300
    routed = [number for number, result in enumerate(results) if result.selected_skills]
    assert routed == [7, 290]
    assert (results[7].selected_skills, results[290].selected_skills) == (("git",), ("writer",))


async def test_others_are_let_in_while_many_requests_are_checked(tmp_path: Path) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with shipped_router(tmp_path) as router:
        others = asyncio.create_task(count())
        with pytest.raises(InvalidRequest, match="request 2001 of 2001"):
            await router.route_many([*(f"qwzx{number}" for number in range(2_000)), " "])
        others.cancel()
    assert turns > 2_000 // CHECKED_AT_ONCE


async def test_many_requests_share_their_available_skills_and_scope(tmp_path: Path) -> None:
    async with shipped_router(tmp_path) as router:
        (alone,) = await router.route_many([SQUASH], available_skills=iter(["git"]), scope="me")
        assert alone.suggested_skills == ()
        own = await router.route(SQUASH, available_skills=["git"], scope="me")
        others = await router.route(SQUASH, available_skills=["git"], scope="you")
    assert (own.stage, others.stage) == (Stage.EXACT, Stage.VECTOR)


async def test_no_more_requests_run_at_a_time_than_the_settings_allow(tmp_path: Path) -> None:
    model = HeldModel(answer("git"))
    async with router_over(SHIPPED, tmp_path, models=[model], max_concurrency=3) as router:
        work = asyncio.create_task(router.route_many([f"request {n}" for n in range(10)]))
        await until(lambda: model.running == 3)
        for _ in range(100):  # turns of the loop, in which a fourth could begin
            await asyncio.sleep(0)
        model.release()
        results = await work
    assert model.most_running == 3
    assert model.calls == 10
    assert [result.selected_skills for result in results] == [("git",)] * 10


async def test_many_requests_never_overload_the_router_by_themselves(tmp_path: Path) -> None:
    """Though more of them could run at a time than may be under way."""
    model = HeldModel(answer("git"))
    async with router_over(SHIPPED, tmp_path, models=[model], max_pending=5) as router:
        work = asyncio.create_task(router.route_many([f"request {n}" for n in range(20)]))
        await until(lambda: model.running == 5)
        model.release()
        assert [result.selected_skills for result in await work] == [("git",)] * 20


async def test_each_of_many_requests_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, parse = [], Request.parse

    def counted(text: str, **parts: Any) -> Request:
        read.append(text)
        return parse(text, **parts)

    monkeypatch.setattr(Request, "parse", counted)
    async with shipped_router(tmp_path) as router:
        results = await router.route_many([f"\x1b[1m{SQUASH}", EMAIL], scope="me")
    assert [result.selected_skills for result in results] == [("git",), ("writer",)]
    assert read == [f"\x1b[1m{SQUASH}", EMAIL]


async def test_a_bad_one_among_many_is_named_and_nothing_is_routed(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    async with router_over(SHIPPED, tmp_path, encoder=encoder) as router:
        await router.open()
        encoder.batches.clear()  # the examples of the skills
        with pytest.raises(InvalidRequest, match=r"request 2 of 3: request: empty"):
            await router.route_many([SQUASH, " ", EMAIL])
        with pytest.raises(InvalidRequest, match="available skills: expected a list"):
            await router.route_many([SQUASH], available_skills="git")
        with pytest.raises(InvalidRequest, match="requests: expected a list, not NoneType"):
            await router.route_many(None)  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest, match="available skills: expected a list, not int"):
            await router.route_many([SQUASH], available_skills=5)  # type: ignore[arg-type]
        assert encoder.batches == []
        assert (await router.route(SQUASH)).from_cache is False


# --- opening and closing


async def test_opening_that_is_cancelled_is_finished_by_the_next_caller(tmp_path: Path) -> None:
    encoder = CountingEncoder()
    encoder.release.clear()
    router = router_over(some_skills(tmp_path / "skills", "git"), tmp_path, encoder=encoder)
    opening = asyncio.create_task(router.open())
    await happened(encoder.encoding)
    opening.cancel()
    asking = asyncio.create_task(router.route(SQUASH))
    encoder.release.set()
    with pytest.raises(asyncio.CancelledError):
        await opening
    result = await asking
    await router.aclose()
    assert result.selected_skills == ("git",)
    assert encoder.documents == [1]


async def test_a_closed_router_refuses_and_can_be_closed_again(tmp_path: Path) -> None:
    router = shipped_router(tmp_path)
    async with router:
        await router.route(SQUASH)
    await router.aclose()
    for use in (router.route(SQUASH), router.route_many([SQUASH]), router.reload(), router.open()):
        with pytest.raises(RuntimeError, match="this router is closed"):
            await use


async def test_what_cannot_be_closed_leaves_nothing_else_open(tmp_path: Path) -> None:
    closed: list[str] = []

    class Stuck(HeldModel):
        async def aclose(self) -> None:
            closed.append("model")
            raise ConnectionError("it cannot be closed")

    class Answers(LocalAnswers):
        async def aclose(self) -> None:
            await super().aclose()
            closed.append("answers")

    models = [Stuck(answer("git")), Stuck(answer("git"))]
    settings = settings_for(tmp_path)
    router = SemanticRouter(settings, roots=[SHIPPED], models=models, cache=Answers())
    await router.open()
    with pytest.raises(ConnectionError, match="it cannot be closed"):
        await router.aclose()
    assert closed == ["model", "model", "answers"]


async def test_closing_that_is_cancelled_while_it_waits_for_a_request_leaves_nothing_open(
    tmp_path: Path,
) -> None:
    closed: list[str] = []

    class Held(HeldModel):
        async def aclose(self) -> None:
            closed.append("model")

    model = Held(answer("git"))
    router = SemanticRouter(settings_for(tmp_path), roots=[SHIPPED], models=[model])
    await router.open()
    asked = asyncio.create_task(router.route(SQUASH))
    await happened(model.asked)
    closing = asyncio.create_task(router.aclose())
    await asyncio.sleep(0)  # it waits for the request by now
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert closed == ["model"]
    model.release()
    assert (await asked).selected_skills == ("git",)


async def test_closing_answers_what_is_under_way_and_refuses_what_comes_later(
    tmp_path: Path,
) -> None:
    model = HeldModel(answer("git", confidence=0.1))  # weak, so that the index is needed too
    router = router_over(SHIPPED, tmp_path, models=[model])
    under_way = asyncio.create_task(router.route(SQUASH))
    many = asyncio.create_task(router.route_many([EMAIL] * 20))
    await happened(model.asked)
    closing = asyncio.create_task(router.aclose())
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="closed"):
        await router.route("something else")
    model.release()
    await closing
    assert (await under_way).trace[-1].outcome is Outcome.SUPPORTED
    with pytest.raises(RuntimeError, match="closed"):  # as itself, not in an exception group
        await many


def test_nothing_is_left_of_a_closed_router(tmp_path: Path) -> None:
    kept = []  # so that nothing is closed because it is forgotten

    async def live(state: Path) -> set[str]:
        async with shipped_router(state) as router:
            await router.route_many([SQUASH, EMAIL])
            await router.reload()
        gone = router_over(tmp_path / "gone", state)
        with pytest.raises(ConfigurationError):
            await gone.__aenter__()
        kept.extend([router, gone])
        return {
            task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()
        }

    def handles() -> list[str]:
        gc.collect()
        found = []
        for handle in Path("/dev/fd").iterdir():
            with suppress(OSError):  # the handle of the listing itself
                found.append(str(handle.readlink()))
        return sorted(place for place in found if str(tmp_path) in place)

    asyncio.run(live(tmp_path / "warm"))  # libraries keep a few threads of their own
    threads = set(threading.enumerate())
    assert asyncio.run(live(tmp_path / "state")) == set()
    assert set(threading.enumerate()) == threads
    assert handles() == []


def test_one_loop_after_another_is_served_by_fresh_routers_on_the_same_state(
    tmp_path: Path,
) -> None:
    async def ask() -> Stage:
        async with shipped_router(tmp_path) as router:
            return (await router.route(SQUASH)).stage

    assert [asyncio.run(ask()), asyncio.run(ask())] == [Stage.VECTOR, Stage.FUZZY]
