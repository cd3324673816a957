"""The synchronous face: in plain code, inside a running loop, and from several threads."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cascade import (
    SHIPPED,
    SQUASH,
    WAIT_SECONDS,
    settings_for,
    some_skills,
    write_skill,
)

from router import (
    Decision,
    InvalidRequest,
    RoutingResult,
    SemanticRouter,
    Stage,
    SyncSemanticRouter,
)
from router.events import CacheLookup, CacheOutcome, Event, Routed
from router.memory.memory import Memory
from router.memory.sync_memory import SyncMemory
from router.skills.manager import SkillManager
from router.sync_parts import SyncSkillManager

EMAIL = "write an email to my boss"


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncSemanticRouter]:
    settings = settings_for(tmp_path_factory.mktemp("state"))
    with SyncSemanticRouter.from_skills(SHIPPED, settings=settings) as router:
        yield router


def test_plain_code_routes_without_a_loop(router: SyncSemanticRouter) -> None:
    result = router.route(
        SQUASH, available_skills=["git", "testing"], history=["hello"], scope="me"
    )
    assert (result.decision, result.selected_skills) == (Decision.ROUTE, ("git",))
    again = router.route(SQUASH, available_skills=["git", "testing"], history=["hello"], scope="me")
    assert again.stage is Stage.EXACT
    left_out = router.route(SQUASH, use_semantic_cache=False)
    assert left_out.trace[0].reason == "the caller left the fuzzy cache out"


def test_many_are_answered_in_order(router: SyncSemanticRouter) -> None:
    results = router.route_many([EMAIL, SQUASH], available_skills=["git", "writer"], scope="many")
    assert [result.selected_skills for result in results] == [("writer",), ("git",)]
    assert (
        router.route(SQUASH, available_skills=["git", "writer"], scope="many").stage is Stage.EXACT
    )


def test_the_caches_are_those_that_answer(router: SyncSemanticRouter) -> None:
    router.route(SQUASH, scope="caches")
    hits = router.exact.stats.hits
    assert router.route(SQUASH, scope="caches").stage is Stage.EXACT
    assert router.exact.stats.hits == hits + 1
    assert len(router.fuzzy) > 0


def test_the_catalog_is_the_one_that_is_routed_over(router: SyncSemanticRouter) -> None:
    assert router.catalog.version == router.route(SQUASH).catalog_version


async def test_it_works_inside_a_running_loop(router: SyncSemanticRouter) -> None:
    assert router.route(SQUASH, scope="notebook").selected_skills == ("git",)


def test_several_threads_share_one_router(router: SyncSemanticRouter) -> None:
    start = threading.Barrier(4)

    def ask(number: int) -> RoutingResult:
        start.wait(WAIT_SECONDS)
        return router.route(SQUASH, scope=f"thread {number}")

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(ask, range(4)))
    assert [result.selected_skills for result in results] == [("git",)] * 4
    assert len({result.id for result in results}) == 4


def test_errors_come_as_they_are(router: SyncSemanticRouter) -> None:
    with pytest.raises(InvalidRequest, match="request: empty"):
        router.route(" ")


def test_a_reload_shows_what_changed(tmp_path: Path) -> None:
    skills = some_skills(tmp_path / "skills", "git")
    settings = settings_for(tmp_path / "state")
    with SyncSemanticRouter.from_skills(skills, settings=settings) as router:
        write_skill(skills, "quilting", "Sews patchwork quilts.")
        assert router.reload().added == ("quilting",)
        assert list(router.catalog.skills) == ["git", "quilting"]


# --- ending


def test_it_serves_a_script_that_runs_a_loop_of_its_own(tmp_path: Path) -> None:
    async def notebook() -> tuple[str, ...]:
        with SyncSemanticRouter.from_skills(SHIPPED, settings=settings_for(tmp_path)) as router:
            return router.route(SQUASH).selected_skills

    assert asyncio.run(notebook()) == ("git",)


# --- derived from the asynchronous one


@pytest.mark.parametrize(
    ("face", "of", "otherwise"),
    [
        (SyncSemanticRouter, SemanticRouter, {"aclose"}),
        (SyncMemory, Memory, {"aclose"}),
        (SyncSkillManager, SkillManager, {"aclose", "use_enrichments"}),
    ],
)
def test_a_face_has_all_that_the_asynchronous_one_has(
    face: type, of: type, otherwise: set[str]
) -> None:
    def public(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    assert public(of) - public(face) == otherwise & public(of)
    for name in public(of) & public(face):
        wanted = getattr(of, name)
        if inspect.iscoroutinefunction(wanted):
            assert inspect.signature(getattr(face, name)) == inspect.signature(wanted), name


@pytest.mark.parametrize(
    ("face", "of"),
    [
        (SyncSemanticRouter, SemanticRouter),
        (SyncSemanticRouter.from_skills, SemanticRouter.from_skills),
        (SyncSemanticRouter.from_tools, SemanticRouter.from_tools),
        (SyncMemory, Memory),
    ],
)
def test_a_face_is_made_with_the_arguments_of_the_asynchronous_one(
    face: Callable[..., object], of: Callable[..., object]
) -> None:
    assert inspect.signature(face).parameters == inspect.signature(of).parameters


def test_skills_are_loaded_watched_and_learnt_about_without_await(tmp_path: Path) -> None:
    skills = some_skills(tmp_path / "skills", "git")
    more = some_skills(tmp_path / "more", "testing")
    with SyncSemanticRouter.from_skills(skills, settings=settings_for(tmp_path)) as router:
        assert router.manager.load(more).added == ("testing",)
        with router.manager.watch() as manager:
            assert manager.report().watch.reason == ""
        assert router.models == ()
        router.learner.calibrate([(f"request {n}", "vector", 0.5, True) for n in range(30)])
        assert router.learner.status()["calibrations"]["vector"]["calibrated"]
        router.learned()


def test_events_are_told_to_the_sinks_of_a_synchronous_router(tmp_path: Path) -> None:
    told: list[Event] = []
    with SyncSemanticRouter.from_skills(SHIPPED, settings=settings_for(tmp_path)) as router:
        router.events.subscribe(told.append)
        result = router.route(SQUASH)
        router.route(SQUASH)
    routed = [event for event in told if isinstance(event, Routed)]
    assert [(event.request, event.result.stage) for event in routed] == [
        (SQUASH, Stage.VECTOR),
        (SQUASH, Stage.EXACT),
    ]
    assert routed[0].result == result
    lookups = [(event.stage, event.outcome) for event in told if isinstance(event, CacheLookup)]
    assert lookups == [
        (Stage.EXACT, CacheOutcome.MISS),
        (Stage.FUZZY, CacheOutcome.MISS),
        (Stage.EXACT, CacheOutcome.HIT),
    ]
