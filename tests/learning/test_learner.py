"""The router learns: from the LLM, from feedback, inside the bound."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import openai  # noqa: F401 - on a busy machine its import takes longer than an LLM may
import pytest
from cascade import (
    SHIPPED,
    SQUASH,
    CountingEncoder,
    answer,
    happened,
    router_over,
    settings_for,
    some_skills,
    write_skill,
)
from clusters import until
from labelled_topics import labelled, remember
from servers.openai_server import HeldServer, OpenAIServer, completion

from router import (
    ConfigurationError,
    InvalidRequest,
    SemanticRouter,
    StoreError,
    UnknownAnswer,
)
from router.components import DECISION_VERSION
from router.learning.evidence import EvidenceStore, Example, Source
from router.learning.learner import Learner
from router.request import Request
from router.result import Decision, Outcome, Stage
from router.skills.registry import SkillRegistry
from router.stages.answers import LocalAnswers

NONSENSE = "qwzx vrrk plumf"


async def test_an_answer_of_the_llm_is_evidence(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git")))
    async with router_over(SHIPPED, tmp_path, openai_server) as router:
        await router.route("put my work away")
        assert router.learner.status()["examples"]["llm"] == 1


async def test_a_request_with_a_history_is_no_evidence(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git")))
    async with router_over(SHIPPED, tmp_path, openai_server) as router:
        await router.route("do it again", history=["put my work away"])
        assert router.learner.status()["examples"]["llm"] == 0


async def test_a_scoped_request_is_no_evidence_unless_scopes_share(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git")))
    openai_server.queue(completion(answer("git")))
    async with router_over(SHIPPED, tmp_path / "a", openai_server) as router:
        await router.route("put my work away", scope="ann")
        assert router.learner.status()["examples"]["llm"] == 0
    shared = {"share_scopes": True}
    async with router_over(SHIPPED, tmp_path / "b", openai_server, learning=shared) as router:
        await router.route("put my work away", scope="ann")
        assert router.learner.status()["examples"]["llm"] == 1


async def test_a_full_disk_costs_neither_the_answer_nor_the_closing(
    tmp_path: Path, openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    openai_server.queue(completion(answer("git")))
    async with router_over(SHIPPED, tmp_path, openai_server) as router:
        database = router.learner._store._file._connection
        database.execute("PRAGMA max_page_count = 1")  # raised to what the file has already
        asked = "put my work away " * 1_000  # takes pages of its own
        assert (await router.route(asked)).selected_skills == ("git",)
    assert "feedback on the latest answers" in caplog.text
    with pytest.raises(sqlite3.ProgrammingError):  # it is closed
        database.execute("SELECT 1")


async def test_the_trace_says_why_the_llm_was_asked(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git")))
    async with router_over(SHIPPED, tmp_path, openai_server) as router:
        await router.learned()
        result = await router.route("put my work away")
        status = router.learner.status()
    evidence = next(entry for entry in result.trace if entry.stage is Stage.LLM).evidence
    assert "of 150 outcomes" in str(evidence["bound"])
    assert evidence["outcomes"] == 0
    assert status["model"]["serves"] is False


async def test_what_was_written_for_the_skills_is_learnt_where_an_llm_judges(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    """Without an LLM, retrieval reads the same requests already."""

    async def learnt_of(router: SemanticRouter) -> int:
        await router.learned()
        return int(router.learner.status()["model"]["examples"])

    async with router_over(SHIPPED, tmp_path / "judged", openai_server) as router:
        skills = router.catalog.skills.values()
        judged = await learnt_of(router)
    async with router_over(SHIPPED, tmp_path / "alone") as router:
        alone = await learnt_of(router)
    assert judged - alone == sum(
        len(skill.enrichment.requests) for skill in skills if skill.enrichment is not None
    )


@pytest.mark.parametrize("right", [["git"], []])
async def test_a_correction_outlives_the_caches(tmp_path: Path, right: list[str]) -> None:
    for text in (NONSENSE, SQUASH):
        async with router_over(SHIPPED, tmp_path) as router:
            first = await router.route(text)
            await router.feedback(first.id, right)
            router.fuzzy.clear()
        async with router_over(SHIPPED, tmp_path) as router:
            again = await router.route(text)
            same = await router.route(text)
        assert (again.selected_skills, again.from_cache) == (tuple(right), False)
        assert again.decision is (Decision.ROUTE if right else Decision.ABSTAIN)
        assert (same.selected_skills, same.from_cache) == (tuple(right), True)


async def test_a_correction_in_another_process_outlives_the_caches_they_share(
    tmp_path: Path,
) -> None:
    async with router_over(SHIPPED, tmp_path) as here, router_over(SHIPPED, tmp_path) as there:
        await there.route("hello there")  # it has read the evidence before the correction
        for text, right in ((SQUASH, ["writer"]), (NONSENSE, ["git"])):
            await here.feedback((await here.route(text)).id, right)
            here.fuzzy.clear()
            assert (await there.route(text)).selected_skills == tuple(right)
    async with router_over(SHIPPED, tmp_path) as later:
        assert (await later.route(SQUASH)).selected_skills == ("writer",)


async def test_a_correction_that_arrives_while_a_request_is_decided_is_not_replaced(
    tmp_path: Path, held_server: HeldServer
) -> None:
    held_server.queue(completion(answer("git")))
    async with (
        router_over(SHIPPED, tmp_path) as here,
        router_over(SHIPPED, tmp_path, held_server) as there,
    ):
        under_way = asyncio.create_task(there.route(SQUASH))
        await happened(held_server.arrived)
        await here.feedback((await here.route(SQUASH)).id, ["writer"])
        held_server.release.set()
        assert (await under_way).selected_skills == ("git",)
        assert (await there.route(SQUASH)).selected_skills == ("writer",)


@pytest.mark.parametrize(
    ("text", "right", "before"), [(NONSENSE, ["git"], ()), (SQUASH, [], ("git",))]
)
async def test_a_correction_that_is_called_wrong_is_given_no_more(
    tmp_path: Path, text: str, right: list[str], before: tuple[str, ...]
) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        await router.feedback((await router.route(text)).id, right)
        await router.feedback((await router.route(text)).id, right=False)
        assert (await router.route(text)).selected_skills == before
    async with router_over(SHIPPED, tmp_path) as router:
        router.fuzzy.clear()
        assert (await router.route(text)).selected_skills == before
        await router.feedback((await router.route(text)).id, right)  # and can be said again
        assert (await router.route(text)).selected_skills == tuple(right)


async def test_that_the_router_finds_no_skill_can_be_called_wrong_without_a_label(
    tmp_path: Path,
) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        await router.feedback((await router.route(NONSENSE)).id, right=False)
        assert await router.learner.labels() == []


async def test_a_correction_is_of_the_request_that_stands_alone(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        await router.feedback((await router.route(NONSENSE)).id, ["git"])
        assert (await router.route(NONSENSE, scope="me")).selected_skills == ("git",)
        assert (await router.route(NONSENSE, available_skills=["git"])).selected_skills == ()
        assert (await router.route(NONSENSE, history=["hello"])).selected_skills == ()


async def test_a_correction_waits_for_a_skill_that_is_gone_or_has_changed(tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    copytree(SHIPPED, skills)
    async with router_over(skills, tmp_path) as router:
        await router.feedback((await router.route(NONSENSE)).id, ["git"])
        rmtree(skills / "git")
        await router.reload()
        gone = await router.route(NONSENSE)
        write_skill(skills, "git", "Does something else now.")
        await router.reload()
        changed = await router.route(NONSENSE)
    assert (gone.selected_skills, changed.selected_skills) == ((), ())


async def test_that_a_question_was_right_is_no_label(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        was_question = await router.route("tidy up")
        assert was_question.decision is Decision.CLARIFY
        await router.feedback(was_question.id, right=True)
        assert router.learner.status()["examples"]["feedback"] == 0
        assert (await router.route("tidy up")).decision is Decision.CLARIFY


async def test_a_correction_can_be_given_by_another_process(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        first = await router.route(NONSENSE)
    async with router_over(SHIPPED, tmp_path) as router:
        await router.feedback(first.id, ["git"])
        assert (await router.route(NONSENSE)).selected_skills == ("git",)


async def test_that_no_skill_fits_is_what_the_same_request_gets_from_then_on(
    tmp_path: Path,
) -> None:
    skills = tmp_path / "skills"
    copytree(SHIPPED, skills)
    text = "Squash my last three commits into one"
    async with router_over(skills, tmp_path) as router:
        first = await router.route(text)
        await router.feedback(first.id, [])
        again = await router.route(text)
        rmtree(skills / "writer")
        await router.reload()
        later = await router.route(text)
        write_skill(skills, "squash", "Squashes the last commits into one.")
        await router.reload()
        new = await router.route(text)
    assert first.decision is Decision.ROUTE
    assert [(r.decision, r.from_cache) for r in (again, later)] == [(Decision.ABSTAIN, True)] * 2
    assert (new.decision, new.from_cache) == (Decision.ROUTE, False)


def tool(name: str, description: str) -> dict[str, object]:
    return {"name": name, "description": description, "input_schema": {"type": "object"}}


async def test_that_no_skill_fits_is_said_of_the_skills_that_there_are(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)
    text = "what will the weather be in Oslo tomorrow"
    commits = tool("commit", "Commits changes to the Git repository.")
    weather = tool("weather", "Gives the weather forecast of a city for tomorrow.")
    async with SemanticRouter.from_tools([commits], settings) as router:
        await router.feedback((await router.route(text)).id, [])
        assert (await router.route(text)).selected_skills == ()
    for tools in ([weather], [commits, weather]):
        async with SemanticRouter.from_tools(tools, settings) as router:
            assert (await router.route(text)).selected_skills == ("weather",)


async def test_a_skill_that_is_named_twice_is_loaded_once(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        first = await router.route(NONSENSE)
        await router.feedback(first.id, ["terminal", "git", "terminal"])
        again = await router.route(NONSENSE)
    assert (again.from_cache, again.selected_skills) == (True, ("terminal", "git"))


async def test_feedback_teaches_no_fuzzy_cache_that_is_left_out(tmp_path: Path) -> None:
    router = SemanticRouter(settings_for(tmp_path), roots=[SHIPPED], use_semantic_cache=False)
    async with router:
        first = await router.route(NONSENSE)
        await router.feedback(first.id, ["git"])
        assert (await router.route(NONSENSE)).from_cache
        assert router.fuzzy.latest(1) == []


async def test_a_skill_may_go_while_feedback_on_it_is_kept(tmp_path: Path) -> None:
    skills = some_skills(tmp_path / "skills", "git", "terminal")

    class Slow(LocalAnswers):
        async def forget(self, text: str, context: str) -> None:
            rmtree(skills / "git")
            await router.reload()
            await super().forget(text, context)

    router = SemanticRouter(settings_for(tmp_path), roots=[skills], cache=Slow())
    async with router:
        first = await router.route(NONSENSE)
        await router.feedback(first.id, ["git"])
        assert (await router.route(NONSENSE)).selected_skills == ()


async def test_an_answer_that_was_wrong_is_not_given_again(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        first = await router.route("Squash my last three commits into one")
        assert first.decision is Decision.ROUTE
        await router.feedback(first.id, right=False)
        again = await router.route("Squash my last three commits into one")
    assert again.from_cache is False


@pytest.mark.parametrize(
    "arguments", [{}, {"skills": ["git"], "right": True}, {"skills": ["no-such-skill"]}]
)
async def test_feedback_that_says_nothing_usable_is_refused(
    tmp_path: Path, arguments: dict[str, object]
) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        first = await router.route(NONSENSE)
        with pytest.raises(InvalidRequest, match="feedback"):
            await router.feedback(first.id, **arguments)  # type: ignore[arg-type]


async def test_feedback_is_valid_in_the_scope_of_its_answer_only(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        theirs = await router.route(SQUASH, scope="tenant-a")
        own = await router.route(SQUASH)
        for result, scope in ((theirs, None), (theirs, "tenant-b"), (own, "tenant-a")):
            with pytest.raises(UnknownAnswer, match=r"no answer .* is remembered"):
                await router.feedback(result.id, ["testing"], scope=scope)
        await router.feedback(theirs.id, ["testing"], scope="tenant-a")
        assert (await router.route(SQUASH, scope="tenant-a")).selected_skills == ("testing",)
        assert (await router.route(SQUASH)).selected_skills == ("git",)
        kept = await router.route("write an email to my boss", scope="tenant-a")
    async with router_over(SHIPPED, tmp_path) as later:
        with pytest.raises(UnknownAnswer, match=r"no answer .* is remembered"):
            await later.feedback(kept.id, right=True)
        await later.feedback(kept.id, right=True, scope="tenant-a")


async def test_the_id_of_an_answer_says_nothing_of_another(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        ids = {(await router.route(SQUASH)).id for _ in range(200)}
    assert len(ids) == 200
    # Ids of 96 random bits that share their first 32 would be a counter behind a prefix.
    assert len({answer_id[:8] for answer_id in ids}) == 200


@pytest.mark.parametrize(
    ("answer_id", "skills"),
    [(7, ["git"]), ("x", 7), ("x", [7]), ("x", [None]), ("\ud800", ["git"]), (10**400, None)],
)
async def test_feedback_of_the_wrong_type_is_refused(
    tmp_path: Path, answer_id: Any, skills: Any
) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        with pytest.raises(InvalidRequest, match="feedback"):
            await router.feedback(answer_id, skills, right=None if skills else True)


async def test_learning_can_be_switched_off(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.queue(completion(answer("git")))
    off = {"enabled": False}
    async with router_over(SHIPPED, tmp_path, openai_server, learning=off) as router:
        await router.route("put my work away")
        with pytest.raises(ConfigurationError, match="switched off"):
            _ = router.learner
    assert not (tmp_path / "evidence.sqlite3").exists()


async def test_evidence_that_cannot_be_opened_stops_no_request(tmp_path: Path) -> None:
    (tmp_path / "evidence.sqlite3").mkdir()
    async with router_over(SHIPPED, tmp_path) as router:
        result = await router.route("Squash my last three commits into one")
        with pytest.raises(StoreError, match=r"evidence\.sqlite3"):
            _ = router.learner
    assert result.selected_skills == ("git",)


async def taught(router: SemanticRouter, rows: list[tuple[str, tuple[str, ...]]]) -> None:
    """What the router hears when an LLM answers each of the requests."""
    installed = await router.open()
    learner = router.learner
    await router.learned()
    for text, skills in rows:
        asked = Request.parse(text)
        check = await learner.check(asked, installed.index)
        await learner.learn(asked, skills, source=Source.LLM, check=check)


async def test_with_enough_evidence_the_llm_is_not_asked(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    rows = labelled()
    store = EvidenceStore(tmp_path / "evidence.sqlite3", clock=lambda: 0.0)
    earlier = [Example(text, skills, True, Source.FILE) for text, skills in rows[:200]]
    store.add_many(earlier, catalog=SkillRegistry([SHIPPED]).catalog.skills)
    store.close()
    bound = {"max_error": 0.05}
    async with router_over(SHIPPED, tmp_path, openai_server, learning=bound) as router:
        await taught(router, rows[200:])
        learner: Learner = router.learner
        await router.learned()
        learner.bound.refit()
        result = await router.route("stash my edits 2 if you would")
    llm = next(entry for entry in result.trace if entry.stage is Stage.LLM)
    assert (result.selected_skills, llm.outcome) == (("git",), Outcome.SKIPPED)
    assert result.calibrated
    assert result.evidence_count >= 150
    assert set(llm.evidence) >= {"risk", "error_bound", "outcomes", "bound"}


async def test_processes_that_share_the_evidence_hear_of_each_others_outcomes(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    rows = labelled()[:60]

    def outcomes(router: SemanticRouter) -> int:
        return int(router.learner.status()["bound"]["outcomes"])

    async with (
        router_over(SHIPPED, tmp_path, openai_server) as one,
        router_over(SHIPPED, tmp_path, openai_server) as other,
    ):
        await taught(one, rows[:20])
        await taught(other, rows[20:40])
        await taught(one, rows[40:])
        await until(lambda: outcomes(one) == len(rows))
        await until(lambda: outcomes(other) == 40)  # of the rest when it has something to tell


async def test_without_an_llm_the_examples_answer_what_they_cover(tmp_path: Path) -> None:
    remember(tmp_path, labelled())
    async with router_over(SHIPPED, tmp_path) as router:
        await router.learned()
        result = await router.route("would you stash my edits 7", use_semantic_cache=False)
    assert (result.decision, result.selected_skills) == (Decision.ROUTE, ("git",))
    assert result.calibrated
    assert result.evidence_count > len(labelled())  # with what the skills' files say
    assert set(result.trace[-1].evidence) == {"examples", "examples_of_answer", "coverage"}


async def test_without_an_llm_examples_of_no_skill_refuse(tmp_path: Path) -> None:
    remember(tmp_path, labelled())
    async with router_over(SHIPPED, tmp_path) as router:
        await router.learned()
        result = await router.route("could you sing me a song 9", use_semantic_cache=False)
    assert (result.decision, result.suggested_skills) == (Decision.ABSTAIN, ())
    assert result.calibrated


async def test_a_skill_without_examples_is_still_found(tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    copytree(SHIPPED, skills)
    (skills / "translation").mkdir()
    (skills / "translation" / "SKILL.md").write_text(
        "---\nname: translation\ndescription: Translates pages and manuals into French, German or"
        " Polish. Use when the user wants a translation.\n---\n\nTranslate it.\n"
    )
    remember(tmp_path, labelled())
    text = "translate this page of the manual into French"
    async with router_over(skills, tmp_path / "plain") as router:
        plain = await router.route(text)
    async with router_over(skills, tmp_path) as router:
        await router.learned()
        result = await router.route(text)
    assert plain.decision is Decision.ROUTE
    assert result.selected_skills == plain.selected_skills
    assert result.confidence == pytest.approx(plain.confidence, abs=0.01)


async def test_what_nothing_is_sure_of_is_offered_from_both_sides(tmp_path: Path) -> None:
    remember(tmp_path, labelled())
    async with router_over(SHIPPED, tmp_path) as router:
        await router.learned()
        result = await router.route("look at the image and the branch of the novel")
    assert result.selected_skills == ()
    assert result.trace[-1].outcome is Outcome.DECLINED


async def test_what_examples_answered_does_not_calibrate_retrieval(tmp_path: Path) -> None:
    remember(tmp_path, labelled())
    async with router_over(SHIPPED, tmp_path) as router:
        await router.learned()
        result = await router.route("would you stash my edits 7", use_semantic_cache=False)
        await router.feedback(result.id, right=True)
        assert "vector" not in router.learner.status()["calibrations"]


@pytest.mark.parametrize(
    ("version", "encoder"), [(1_000, None), (DECISION_VERSION, CountingEncoder())]
)
async def test_another_decision_or_encoder_begins_its_calibration_and_its_account_anew(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    openai_server: OpenAIServer,
    version: int,
    encoder: CountingEncoder | None,
) -> None:
    """Outcomes of confidences that meant something else would bend those of today."""
    openai_server.queue(completion(answer("git")))
    async with router_over(SHIPPED, tmp_path, openai_server) as router:
        result = await router.route("squash the last four commits on this branch")
        await router.feedback(result.id, right=True)
        told = router.learner.status()
    async with router_over(SHIPPED, tmp_path, openai_server) as router:
        await router.open()
        again = router.learner.status()
    assert again["calibrations"] == told["calibrations"] != {}
    assert again["bound"]["requests"] == told["bound"]["requests"] == 1
    monkeypatch.setattr("router.components.DECISION_VERSION", version)
    async with router_over(SHIPPED, tmp_path, openai_server, encoder=encoder) as router:
        await router.open()
        anew = router.learner.status()
    assert (anew["calibrations"], anew["bound"]["requests"]) == ({}, 0)
    assert anew["examples"] == again["examples"]


async def test_feedback_on_an_answer_of_another_decision_calibrates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The label counts; the confidence meant something else when the answer was given."""
    async with router_over(SHIPPED, tmp_path) as router:
        earlier = await router.route("squash the last four commits on this branch")
    monkeypatch.setattr("router.components.DECISION_VERSION", 1_000)
    async with router_over(SHIPPED, tmp_path) as router:
        await router.feedback(earlier.id, right=True)
        told = router.learner.status()
    assert (told["examples"]["feedback"], told["calibrations"]) == (1, {})


async def test_a_skill_that_is_gone_is_not_offered_by_what_was_learnt_of_it(
    tmp_path: Path,
) -> None:
    skills = tmp_path / "skills"
    copytree(SHIPPED, skills)
    remember(tmp_path, labelled())
    text = "stash my edits and kill the process"
    async with router_over(skills, tmp_path) as router:
        await router.learned()
        before = await router.route(text, use_semantic_cache=False)
        rmtree(skills / "terminal")
        await router.reload()
        after = await router.route(text, use_semantic_cache=False)
        named = {*after.selected_skills, *after.suggested_skills}
        named |= {one.name for entry in after.trace for one in entry.candidates} - {"none"}
        assert named <= router.catalog.skills.keys()
    assert "terminal" in {one.name for entry in before.trace for one in entry.candidates}
    assert after.calibrated
