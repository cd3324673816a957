"""Cached answers over skills that change: none is given that a router would not decide now."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from cascade import (
    SQUASH,
    SQUASH_PARAPHRASED,
    answer,
    bundled_encoder,
    happened,
    router_over,
    settings_for,
    some_skills,
    summary,
    write_skill,
)
from servers.openai_server import HeldServer, OpenAIServer, completion

from router import RoutingResult, SemanticRouter, Stage
from router.decision import Decider
from router.llm.protocol import Completion, OutputMode, Prompt
from router.request import Request
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest
from router.skills.memory_source import MemorySource

QUILTS = "sew a patchwork quilt from old shirts"
FLAKY = "this test fails only sometimes, find out why it is flaky"
CHANGES: Final = int(os.environ.get("ROUTER_ORACLE", "40"))
"""Random changes in the oracle tests; 1,000 before a release."""


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return some_skills(tmp_path / "skills", "git", "testing", "debugging")


def edit(skills: Path, name: str, line: str = "Also knits woollen socks.") -> None:
    path = skills / name / "SKILL.md"
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{line}\n", encoding="utf-8")


def write_squashing(skills: Path) -> None:
    """A skill that wins ``SQUASH`` from git, and nothing else."""
    write_skill(
        skills,
        "squashing",
        "Squashes the last commits on a branch into one. Use to squash commits.",
        "metadata:",
        "  examples: |",
        f"    {SQUASH}",
    )


# --- what the router decided by itself is decided again


async def test_after_a_change_an_answer_is_decided_again_once(skills: Path, tmp_path: Path) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        for request in (SQUASH, FLAKY):
            assert (await router.route(request)).stage is Stage.VECTOR
        write_squashing(skills)
        await router.reload()
        won = await router.route(SQUASH)
        assert (won.stage, won.selected_skills) == (Stage.VECTOR, ("squashing",))
        assert won.trace[1].reason.startswith("not given again: the skills or the examples")
        same = await router.route(FLAKY)
        assert (same.stage, same.selected_skills[0]) == (Stage.VECTOR, "testing")
        for request in (SQUASH, FLAKY):
            assert (await router.route(request)).stage is Stage.EXACT
        assert (await router.route(SQUASH_PARAPHRASED)).selected_skills == ("squashing",)


async def test_no_answer_names_a_skill_that_is_gone_or_withdrawn(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        assert "testing" in (await router.route(SQUASH)).suggested_skills
        write_skill(skills, "testing", "Tests.", "disable-model-invocation: true")
        await router.reload()
        for request in (SQUASH, SQUASH_PARAPHRASED):
            assert "testing" not in (await router.route(request)).suggested_skills


async def test_what_changed_while_no_router_ran_is_seen_at_the_first_hit(
    skills: Path, tmp_path: Path
) -> None:
    async def stages() -> list[Stage]:
        async with router_over(skills, tmp_path / "state") as router:
            return [(await router.route(request)).stage for request in (SQUASH, FLAKY)]

    assert await stages() == [Stage.VECTOR, Stage.VECTOR]
    assert await stages() == [Stage.FUZZY, Stage.FUZZY]
    edit(skills, "git")
    assert await stages() == [Stage.VECTOR, Stage.VECTOR]
    assert await stages() == [Stage.FUZZY, Stage.FUZZY]


async def test_equal_skills_at_another_path_share_answers(skills: Path, tmp_path: Path) -> None:
    other = some_skills(tmp_path / "elsewhere", "git", "testing", "debugging")
    async with router_over(skills, tmp_path / "state") as router:
        first = await router.route(SQUASH)
    async with router_over(other, tmp_path / "state") as router:
        again = await router.route(SQUASH)
    assert (again.stage, again.selected_skills) == (Stage.FUZZY, first.selected_skills)


# --- what an LLM or a person said is checked


async def test_an_answer_of_an_llm_is_dropped_with_its_skill_and_kept_with_others(
    skills: Path, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git")), completion(answer("debugging")))
    async with router_over(skills, tmp_path / "state", openai_server) as router:
        await router.route(SQUASH)
        await router.route(FLAKY)
        edit(skills, "git")
        change = await router.reload()
        openai_server.queue(completion(answer("testing")))
        assert (await router.route(SQUASH)).selected_skills == ("testing",)
        kept = await router.route(FLAKY)
        assert (kept.stage, kept.catalog_version) == (Stage.EXACT, change.after.version)


CONTEXTS: list[dict[str, Any]] = [
    {},
    {"available_skills": ["debugging", "git", "squashing", "testing"]},
    {"scope": "me"},
    {"scope": "me", "available_skills": ["git", "squashing", "testing"]},
    {"history": ["which branch?"]},
]


async def test_a_new_skill_takes_the_requests_that_it_wins_in_every_context_and_no_others(
    skills: Path, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    restricted: dict[str, Any] = {"available_skills": ["debugging", "git", "testing"]}
    async with router_over(skills, tmp_path / "state", openai_server) as router:
        for context in (*CONTEXTS, restricted):
            openai_server.queue(completion(answer("git")), completion(answer("testing")))
            await router.route(SQUASH, **context)
            await router.route(FLAKY, **context)
    write_squashing(skills)
    async with router_over(skills, tmp_path / "state", openai_server) as router:
        for context in CONTEXTS:
            openai_server.queue(completion(answer("squashing")))
            won = await router.route(SQUASH, **context)
            assert (won.stage, won.selected_skills) == (Stage.LLM, ("squashing",))
            assert (await router.route(FLAKY, **context)).stage is Stage.FUZZY
        # Where it may not be chosen it takes nothing.
        assert (await router.route(SQUASH, **restricted)).selected_skills == ("git",)


async def test_a_removed_skill_takes_similar_requests_with_it(
    skills: Path, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git")), completion(answer("testing")))
    async with router_over(skills, tmp_path / "state", openai_server) as router:
        await router.route(SQUASH)
        shutil.rmtree(skills / "git")
        await router.reload()
        again = await router.route(SQUASH_PARAPHRASED)
    assert (again.stage, again.selected_skills) == (Stage.LLM, ("testing",))
    assert again.trace[0].reason == "not given again: git is not installed"


async def test_that_no_skill_fits_holds_until_a_skill_that_may_be_chosen_is_new_or_changed(
    skills: Path, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    restricted: dict[str, Any] = {"available_skills": ["debugging", "testing"]}
    openai_server.always = completion(answer("none"))
    few = {"max_suggestions": 0}
    async with router_over(skills, tmp_path / "state", openai_server, vector=few) as router:

        async def stages() -> list[Stage]:
            return [(await router.route(QUILTS, **context)).stage for context in ({}, restricted)]

        assert await stages() == [Stage.LLM, Stage.LLM]
        assert await stages() == [Stage.EXACT, Stage.EXACT]
        edit(skills, "git")
        await router.reload()
        assert await stages() == [Stage.LLM, Stage.EXACT]
        assert await stages() == [Stage.EXACT, Stage.EXACT]
        write_skill(skills, "quilting", "Sews patchwork quilts. Use to sew a quilt.")
        await router.reload()
        openai_server.always = completion(answer("quilting"))
        again = await router.route(QUILTS)
        assert again.selected_skills == ("quilting",)
        assert again.trace[1].reason == (
            "not given again: quilting is newer than the answer that nothing fits"
        )
        assert (await router.route(QUILTS, **restricted)).stage is Stage.EXACT
        shutil.rmtree(skills / "git")
        await router.reload()
        assert (await router.route(QUILTS, **restricted)).stage is Stage.EXACT


async def test_a_generic_skill_holds_until_a_new_skill_ranks_above_it(
    skills: Path, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    some_skills(skills, "writer")
    openai_server.always = completion(answer("writer"))
    few = {"max_suggestions": 0}
    async with router_over(skills, tmp_path / "state", openai_server, vector=few) as router:
        first = await router.route("draft a letter to the landlord")
        write_squashing(skills)
        await router.reload()
        same = await router.route("draft a letter to the landlord")
        write_skill(skills, "letters", "Drafts a letter to a landlord. Use to draft a letter.")
        await router.reload()
        again = await router.route("draft a letter to the landlord")
    assert [result.stage for result in (first, same, again)] == [Stage.LLM, Stage.EXACT, Stage.LLM]
    assert again.trace[1].reason == "not given again: letters is newer and ranks above writer"


async def test_a_correction_is_kept_while_its_skill_is_what_it_was(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        await router.feedback((await router.route(SQUASH)).id, ["testing"])
        edit(skills, "debugging")
        await router.reload()
        assert (await router.route(SQUASH)).selected_skills == ("testing",)
        edit(skills, "testing")
        await router.reload()
        assert (await router.route(SQUASH)).stage is Stage.VECTOR


# --- requests that meet a change


async def test_a_request_after_the_change_does_not_join_one_from_before(
    skills: Path, tmp_path: Path, held_server: HeldServer
) -> None:
    held_server.queue(completion(answer("git")), completion(answer("debugging")))
    async with router_over(skills, tmp_path / "state", held_server) as router:
        before = asyncio.create_task(router.route(SQUASH))
        await happened(held_server.arrived)
        shutil.rmtree(skills / "git")
        change = await router.reload()
        after = asyncio.create_task(router.route(SQUASH))
        await asyncio.sleep(0)
        held_server.release.set()
        old, new = await before, await after
        assert (old.selected_skills, old.catalog_version) == (("git",), change.before.version)
        assert (new.selected_skills, new.catalog_version) == (("debugging",), change.after.version)
        # Only the second one was learnt, and it arrived first or last.
        assert (await router.route(SQUASH)).selected_skills == ("debugging",)
        assert (await router.route(SQUASH_PARAPHRASED)).selected_skills == ("debugging",)


# --- against an oracle: random changes, restarts, and two processes that share their state

TOPICS: Final = (
    "anchovies bagpipes carburettors dahlias earthquakes falconry gargoyles hammocks igloos "
    "juggling kayaks lighthouses mosaics nightingales origami pelicans quicksand rhubarb"
).split()
REQUESTS: Final = [
    *(f"help me with {topic} today" for topic in TOPICS[::2]),
    *(
        f"clean the {one} and repair the {two}"
        for one, two in zip(TOPICS, TOPICS[5:], strict=False)
    ),
]


class RuleModel:
    """An LLM that chooses by a rule of its own among what it is offered: not as retrieval would."""

    provider = "rule"
    model = "rule-1"

    async def complete(self, prompt: Prompt, *, timeout_seconds: float) -> Completion:
        asked = json.loads(prompt.user)
        names = sorted(skill["name"] for skill in asked["skills"])
        return Completion(answer(names[len(asked["request"]) % len(names)]), OutputMode.JSON_SCHEMA)

    async def aclose(self) -> None:
        """There is nothing to close."""


def random_skill(chance: random.Random, name: str) -> SkillManifest:
    about = " and ".join(chance.sample(TOPICS, 3))
    return SkillManifest.in_memory(name, f"Cleans, repairs and explains {about}. Use for {about}.")


class Process:
    """One of the programs that share a state folder, with skills of its own."""

    def __init__(self, state: Path, seed: int, skills: list[SkillManifest], **parts: Any) -> None:
        self.state = state
        self.chance = random.Random(seed)
        self.source = MemorySource(skills)
        self.parts = parts
        self.router: SemanticRouter

    async def start(self) -> None:
        quiet = {"enabled": False}
        settings = settings_for(self.state, learning=quiet)
        self.router = SemanticRouter(
            settings, sources=[self.source], encoder=bundled_encoder(), **self.parts
        )
        await self.router.open()

    async def change(self) -> None:
        """Add, change or remove a skill, or several; now and then with a restart between."""
        for _ in range(self.chance.choice((1, 1, 1, 3))):
            names = [skill.name for skill in self.source.read().skills]
            action = self.chance.choice(("add", "replace", "remove"))
            if action == "add" and len(names) < 12:
                free = [name for name in "abcdefghijklmnopqrst" if name not in names]
                self.source.add(random_skill(self.chance, self.chance.choice(free)))
            elif action == "remove" and len(names) > 4:
                self.source.remove(self.chance.choice(names))
            else:
                self.source.replace(random_skill(self.chance, self.chance.choice(names)))
        if self.chance.random() < 0.1:
            await self.router.aclose()
            await self.start()
        else:
            await self.router.reload()


@asynccontextmanager
async def two_processes(state: Path, **parts: Any) -> AsyncIterator[tuple[Process, Process]]:
    """They begin with the same skills."""
    skills = [random_skill(random.Random(number), name) for number, name in enumerate("abcdef")]
    both = Process(state, 1, skills, **parts), Process(state, 2, skills, **parts)
    for process in both:
        await process.start()
    yield both
    for process in both:
        await process.router.aclose()


async def test_no_cached_answer_differs_from_what_a_fresh_router_decides(tmp_path: Path) -> None:
    chance = random.Random(0)
    cached = 0
    async with two_processes(tmp_path) as both:
        for _ in range(CHANGES):
            await chance.choice(both).change()
            for process in both:
                router = process.router
                for text in chance.choices(REQUESTS, k=6):
                    result = await router.route(text)
                    decider = Decider(router._runtime.current, router.settings)
                    fresh = (await decider.decide(Request.parse(text), ())).result
                    assert summary(result) == (fresh.decision, fresh.selected_skills)
                    assert result.suggested_skills == fresh.suggested_skills
                    cached += result.from_cache
    assert cached > CHANGES  # else there was nothing to be wrong


async def test_no_answer_of_an_llm_is_stale_or_overtaken(tmp_path: Path) -> None:
    chance = random.Random(0)
    said: dict[str, list[tuple[tuple[str, ...], Catalog]]] = {}
    cached = 0
    async with two_processes(tmp_path, models=[RuleModel()]) as both:
        for _ in range(CHANGES):
            await chance.choice(both).change()
            for process in both:
                for text in chance.choices(REQUESTS, k=6):
                    result = await process.router.route(text)
                    now = process.router.catalog
                    if not result.from_cache:
                        said.setdefault(text, []).append((result.selected_skills, now))
                        continue
                    cached += 1
                    index = process.router._runtime.current.index
                    ranked = [match.name for match in (await index.rank(text, limit=99)).matches]
                    assert any(
                        holds(result, skills, then, now, ranked) for skills, then in said[text]
                    )
    assert cached > CHANGES


def holds(
    result: RoutingResult,
    skills: tuple[str, ...],
    then: Catalog,
    now: Catalog,
    ranked: list[str],
) -> bool:
    """Whether the LLM said so over other skills, and nothing that has changed since speaks
    against it."""

    def is_as_then(name: str) -> bool:
        return name in then.skills and then.skills[name].digest == now.skills[name].digest

    if skills != result.selected_skills or not set(skills) <= now.skills.keys():
        return False
    first = min(ranked.index(name) for name in skills)
    return (
        all(is_as_then(name) for name in skills)
        and set(result.suggested_skills) <= now.skills.keys()
        and all(is_as_then(name) for name in ranked[:first])
    )
