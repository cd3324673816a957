"""The router learns: from the LLM, from feedback, inside the bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from cascade import SHIPPED, answer, router_over
from servers.openai_server import OpenAIServer, completion

from router import InvalidRequest, SemanticRouter
from router.learning.evidence import EvidenceStore, Example, Source
from router.learning.learner import Learner
from router.request import Request
from router.result import Decision, Outcome, Stage

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


async def test_the_trace_says_why_the_llm_was_asked(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git")))
    async with router_over(SHIPPED, tmp_path, openai_server) as router:
        await router.learned()
        result = await router.route("put my work away")
    evidence = next(entry for entry in result.trace if entry.stage is Stage.LLM).evidence
    assert "of 150 outcomes" in str(evidence["bound"])
    assert evidence["outcomes"] == 0


async def test_a_correction_is_what_the_same_request_gets_from_then_on(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        first = await router.route(NONSENSE)
        assert first.selected_skills == ()
        await router.feedback(first.id, ["git"])
        again = await router.route(NONSENSE)
    assert (again.selected_skills, again.from_cache) == (("git",), True)


async def test_a_correction_can_be_given_by_another_process(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        first = await router.route(NONSENSE)
    async with router_over(SHIPPED, tmp_path) as router:
        await router.feedback(first.id, ["git"])
        assert (await router.route(NONSENSE)).selected_skills == ("git",)


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


async def test_feedback_on_an_unknown_answer_is_refused(tmp_path: Path) -> None:
    async with router_over(SHIPPED, tmp_path) as router:
        with pytest.raises(InvalidRequest, match="no answer"):
            await router.feedback("nothing", right=True)


async def test_learning_can_be_switched_off(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.queue(completion(answer("git")))
    off = {"enabled": False}
    async with router_over(SHIPPED, tmp_path, openai_server, learning=off) as router:
        await router.route("put my work away")
        with pytest.raises(RuntimeError, match="switched off"):
            _ = router.learner
    assert not (tmp_path / "evidence.sqlite3").exists()


async def test_evidence_that_cannot_be_opened_stops_no_request(tmp_path: Path) -> None:
    (tmp_path / "evidence.sqlite3").write_bytes(b"precious" * 1000)
    async with router_over(SHIPPED, tmp_path) as router:
        result = await router.route("Squash my last three commits into one")
    assert result.selected_skills == ("git",)
    assert (tmp_path / "evidence.sqlite3").read_bytes() == b"precious" * 1000


TEMPLATES = (
    "{} please",
    "could you {}",
    "i need you to {}",
    "{} now",
    "can you {} for me",
    "{} as soon as you can",
    "would you {}",
    "time to {}",
)
TOPICS = {
    "git": ["stash my edits", "push the branch", "rebase onto main", "undo the last commit"],
    "docker": ["shrink the image", "restart the container", "write a compose file"],
    "testing": ["add a unit test", "raise the coverage", "fake the clock in the tests"],
    "": ["sing me a song", "tell me a joke", "order a pizza"],
}


def labelled() -> list[tuple[str, tuple[str, ...]]]:
    """Requests of four plain answers, in a mixed order."""
    rows = [
        (template.format(f"{topic} {number}"), (skill,) if skill else ())
        for number in range(4)
        for template in TEMPLATES
        for skill, topics in TOPICS.items()
        for topic in topics
    ]
    return sorted(rows, key=lambda row: hash_of(row[0]))


def hash_of(text: str) -> int:
    value = 0
    for character in text:
        value = (value * 131 + ord(character)) % 1_000_003
    return value


async def taught(router: SemanticRouter, rows: list[tuple[str, tuple[str, ...]]]) -> None:
    """What the router hears when an LLM answers each of the requests."""
    installed = await router.open()
    learner = router.learner
    await router.learned()
    for text, skills in rows:
        asked = Request.parse(text)
        judgement = await learner.judge(asked, installed.index)
        await learner.heard(asked, skills, source=Source.LLM, judgement=judgement)


async def test_with_enough_evidence_the_llm_is_not_asked(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    rows = labelled()
    store = EvidenceStore(tmp_path / "evidence.sqlite3", clock=lambda: 0.0)
    earlier = [Example(text, skills, True, Source.FILE) for text, skills in rows[:200]]
    store.add_many(earlier, catalog={})
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


async def test_evidence_outlives_the_router(tmp_path: Path, openai_server: OpenAIServer) -> None:
    openai_server.queue(completion(answer("git")))
    async with router_over(SHIPPED, tmp_path, openai_server) as router:
        await router.route("put my work away")
    store = EvidenceStore(tmp_path / "evidence.sqlite3", clock=lambda: 0.0)
    assert [(e.text, e.skills) for e in store.all()] == [("put my work away", ("git",))]
    store.close()
