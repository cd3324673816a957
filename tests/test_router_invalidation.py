"""Invalidation in the cascade: what a change of the skills takes from the caches, and what not."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cascade import (
    SHIPPED,
    SQUASH,
    SQUASH_PARAPHRASED,
    WAIT_SECONDS,
    CountingEncoder,
    HeldServer,
    answer,
    happened,
    router_over,
    some_skills,
    write_skill,
)
from numpy.typing import NDArray
from servers.openai_server import OpenAIServer, completion

from router import SemanticRouter, Stage
from router.retrieval.encoders import WordLlamaEncoder
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import load_catalog
from router.stages.invalidation import CachedAnswers, Key

QUILTS = "sew a patchwork quilt from old shirts"
FLAKY = "this test fails only sometimes, find out why it is flaky"
BENCH_DATA = os.environ.get("ROUTER_BENCH_DATA")


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
        '  routing-keywords: "squash, squash the last four commits on this branch into one"',
    )


def held_answers(router: SemanticRouter) -> dict[Key, tuple[str, ...]]:
    base = router._runtime.current.base
    answers = CachedAnswers(router.exact, router.fuzzy, base).all()
    return {key: result.selected_skills for key, result in answers.items()}


async def made_wrong(
    held: dict[Key, tuple[str, ...]], skills: Path, edited: set[str], state: Path
) -> set[Key]:
    """By ranking every cached request over an index that is made from nothing."""
    encoder = WordLlamaEncoder()
    store = VectorStore.open(state, identity=encoder.identity)
    index = SkillIndex.build(load_catalog([skills]), encoder=encoder, store=store)
    wrong = set()
    for key, selected in held.items():
        ranking = await index.rank(key[0], limit=10_000)
        ranked = [match.name for match in ranking.matches]
        first = min(ranked.index(name) for name in selected)
        if edited & {*selected, *ranked[:first]}:
            wrong.add(key)
    store.close()
    return wrong


# --- both directions, against ranking everything anew


async def test_each_edit_of_a_shipped_skill_drops_what_a_new_ranking_says_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    names = sorted(path.name for path in SHIPPED.iterdir() if path.is_dir())
    skills = some_skills(tmp_path / "skills", *names)
    kept = []
    async with router_over(skills, tmp_path / "state") as router:
        requests = [
            example for skill in router.catalog.skills.values() for example in skill.examples
        ]
        for name in names[::3]:
            await router.route_many(requests)
            held = held_answers(router)
            assert len(held) >= 2 * len(names)
            edit(skills, name)
            assert (await router.reload()).changed == (name,)
            wrong = await made_wrong(held, skills, {name}, tmp_path / name)
            assert held_answers(router).keys() == held.keys() - wrong
            assert {key for key, selected in held.items() if name in selected} <= wrong
            kept.append(1 - len(wrong) / len(held))
    assert min(kept) > 0.8


@pytest.mark.skipif(BENCH_DATA is None, reason="ROUTER_BENCH_DATA names no benchmark data")
async def test_editing_one_of_574_real_skills_keeps_nearly_every_answer(tmp_path: Path) -> None:
    data = Path(BENCH_DATA or "")
    skills = tmp_path / "skills"
    shutil.copytree(data / "skills" / "pool", skills, copy_function=shutil.copyfile)
    for folder in (skills, *(path for path in skills.rglob("*") if path.is_dir())):
        folder.chmod(0o755)  # the data is read-only
    with (data / "skill_requests" / "dev.jsonl").open(encoding="utf-8") as file:
        requests = [json.loads(line)["request"] for line in file]
    async with router_over(skills, tmp_path / "state") as router:
        await router.route_many(requests)
        held = held_answers(router)
        assert len(held) > 100
        name = max(held.values(), key=list(held.values()).count)[0]
        edit(router.catalog.skills[name].path.parents[1], name)
        assert (await router.reload()).changed == (name,)
        wrong = await made_wrong(held, skills, {name}, tmp_path / "fresh")
        assert held_answers(router).keys() == held.keys() - wrong
        assert {key for key, selected in held.items() if name in selected} <= wrong
        assert len(wrong) < len(held) / 20


async def test_an_added_skill_takes_only_the_requests_that_it_wins(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        for request in (SQUASH, FLAKY):
            assert (await router.route(request)).stage is Stage.VECTOR
        write_squashing(skills)
        await router.reload()
        assert (await router.route(FLAKY)).stage is Stage.EXACT
        won = await router.route(SQUASH_PARAPHRASED)
        assert (won.stage, won.selected_skills) == (Stage.VECTOR, ("squashing",))
        assert (await router.route(SQUASH)).selected_skills == ("squashing",)


async def test_a_removed_skill_takes_the_answers_that_suggest_it(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        assert "testing" in (await router.route(SQUASH)).suggested_skills
        shutil.rmtree(skills / "testing")
        await router.reload()
        again = await router.route(SQUASH)
    assert (again.stage, again.selected_skills) == (Stage.VECTOR, ("git",))
    assert "testing" not in again.suggested_skills


async def test_a_skill_that_is_withdrawn_from_routing_is_suggested_no_more(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        assert "testing" in (await router.route(SQUASH)).suggested_skills
        write_skill(skills, "testing", "Tests.", "disable-model-invocation: true")
        await router.reload()
        assert "testing" not in (await router.route(SQUASH)).suggested_skills


async def test_an_edit_that_changes_no_order_leaves_answers_that_only_suggest_the_skill(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        first = await router.route(SQUASH)
        assert "testing" in first.suggested_skills
        edit(skills, "testing")
        change = await router.reload()
        again = await router.route(SQUASH)
    assert again.stage is Stage.EXACT
    assert again.catalog_version == change.after.version != first.catalog_version


async def test_an_answer_of_an_llm_is_dropped_with_its_skill_and_kept_with_others(
    skills: Path, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(completion(answer("git")), completion(answer("debugging")))
    async with router_over(skills, tmp_path / "state", openai_server) as router:
        await router.route(SQUASH)
        await router.route(FLAKY)
        edit(skills, "git")
        await router.reload()
        openai_server.queue(completion(answer("testing")))
        assert (await router.route(SQUASH)).selected_skills == ("testing",)
        assert (await router.route(FLAKY)).stage is Stage.EXACT


CONTEXTS: list[dict[str, Any]] = [
    {},
    {"available_skills": ["debugging", "git", "squashing", "testing"]},
    {"scope": "me"},
    {"scope": "me", "available_skills": ["git", "squashing", "testing"]},
    {"history": ["which branch?"]},
]


async def test_every_scope_history_and_set_of_skills_is_mended(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        for context in CONTEXTS:
            assert (await router.route(SQUASH, **context)).selected_skills == ("git",)
            assert (await router.route(FLAKY, **context)).selected_skills == ("testing",)
        write_squashing(skills)
        await router.reload()
        for context in CONTEXTS:
            won = await router.route(SQUASH, **context)
            assert (won.stage, won.selected_skills) == (Stage.VECTOR, ("squashing",))
            assert (await router.route(FLAKY, **context)).stage is Stage.EXACT


async def test_a_skill_that_was_not_to_be_chosen_takes_nothing(
    skills: Path, tmp_path: Path
) -> None:
    restricted = ["debugging", "git", "testing"]
    async with router_over(skills, tmp_path / "state") as router:
        await router.route(SQUASH, available_skills=restricted)
        write_squashing(skills)
        await router.reload()
        kept = await router.route(SQUASH, available_skills=restricted)
    assert (kept.stage, kept.selected_skills) == (Stage.EXACT, ("git",))


async def test_an_answer_that_only_the_fuzzy_cache_still_holds_is_dropped_too(
    skills: Path, tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.queue(*(completion(answer(name)) for name in ("git", "debugging", "testing")))
    async with router_over(skills, tmp_path / "state", openai_server) as router:
        await router.route(SQUASH)
        router.exact.clear()
        await router.route(SQUASH, use_semantic_cache=False)  # now the caches differ
        shutil.rmtree(skills / "git")
        await router.reload()
        again = await router.route(SQUASH_PARAPHRASED)
    assert (again.stage, again.selected_skills) == (Stage.LLM, ("testing",))


# --- requests that meet a change


async def test_a_request_after_the_change_does_not_join_one_from_before(
    skills: Path, tmp_path: Path
) -> None:
    server = HeldServer()
    server.queue(completion(answer("git")), completion(answer("debugging")))
    async with router_over(skills, tmp_path / "state", server) as router:
        before = asyncio.create_task(router.route(SQUASH))
        await happened(server.arrived)
        shutil.rmtree(skills / "git")
        change = await router.reload()
        after = asyncio.create_task(router.route(SQUASH))
        await asyncio.sleep(0)
        server.release.set()
        old, new = await before, await after
        assert (old.selected_skills, old.catalog_version) == (("git",), change.before.version)
        assert (new.selected_skills, new.catalog_version) == (("debugging",), change.after.version)
        # Only the second one was learnt, and it arrived first or last.
        assert (await router.route(SQUASH)).selected_skills == ("debugging",)
        assert (await router.route(SQUASH_PARAPHRASED)).selected_skills == ("debugging",)
    server.close()
    assert server.violations == []


class HoldingEncoder(CountingEncoder):
    """Works in a thread, and waits there while it is to encode ``held``."""

    static = False

    def __init__(self) -> None:
        super().__init__()
        self.held: str | None = None
        self.holding = threading.Event()
        self.let_go = threading.Event()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.held in texts:
            self.holding.set()
            self.let_go.wait(WAIT_SECONDS)
        return super().encode(texts)


async def test_what_is_learnt_while_the_answers_are_looked_through_is_dropped(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state", encoder=HoldingEncoder()) as router:
        await router.route(SQUASH)
    encoder = HoldingEncoder()
    async with router_over(skills, tmp_path / "state", encoder=encoder) as router:
        encoder.held = SQUASH  # asked for when the cached requests are ranked
        write_skill(skills, "quilting", "Sews patchwork quilts.")
        reloading = asyncio.create_task(router.reload())
        await happened(encoder.holding)
        meanwhile = await router.route(FLAKY)
        assert (await router.route(FLAKY)).stage is Stage.EXACT
        encoder.let_go.set()
        change = await reloading
        again = await router.route(FLAKY)
        kept = await router.route(SQUASH)
    assert meanwhile.catalog_version == change.before.version
    assert (again.stage, again.catalog_version) == (Stage.VECTOR, change.after.version)
    assert kept.stage is Stage.FUZZY


# --- across a restart


async def learn(skills: Path, state: Path, **more: Any) -> None:
    async with router_over(skills, state, **more) as router:
        for request in (SQUASH, FLAKY):
            assert (await router.route(request)).stage is Stage.VECTOR


async def stages(skills: Path, state: Path, **more: Any) -> list[Stage]:
    async with router_over(skills, state, **more) as router:
        return [(await router.route(request)).stage for request in (SQUASH, FLAKY)]


async def test_what_changed_while_no_router_ran_is_found_at_the_next_start(
    skills: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    await learn(skills, state)
    edit(skills, "git")
    assert await stages(skills, state) == [Stage.VECTOR, Stage.FUZZY]
    write_squashing(skills)
    assert await stages(skills, state) == [Stage.VECTOR, Stage.FUZZY]
    shutil.rmtree(skills / "squashing")
    assert await stages(skills, state) == [Stage.VECTOR, Stage.FUZZY]
    assert await stages(skills, state) == [Stage.FUZZY, Stage.FUZZY]


@pytest.mark.parametrize("damage", [None, b"", b"[1]", b'{"git": '])
async def test_without_a_record_no_answer_of_that_router_is_trusted_and_others_keep_theirs(
    skills: Path, tmp_path: Path, damage: bytes | None
) -> None:
    state = tmp_path / "state"
    other = some_skills(tmp_path / "other", "git", "testing", "debugging")
    await learn(skills, state)
    (record,) = (state / "index").glob("*/catalog-*.json")
    await learn(other, state)
    if damage is None:
        record.unlink()
    else:
        record.write_bytes(damage)
    assert await stages(skills, state) == [Stage.VECTOR, Stage.VECTOR]
    assert await stages(other, state) == [Stage.FUZZY, Stage.FUZZY]
    assert await stages(skills, state) == [Stage.FUZZY, Stage.FUZZY]


async def test_what_cannot_be_dropped_from_the_file_now_is_found_wrong_at_the_next_start(
    skills: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    async with router_over(skills, state) as router:
        for request in (SQUASH, FLAKY):
            await router.route(request)
        edit(skills, "git")
        other = sqlite3.connect(state / "fuzzy.sqlite3", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")  # nobody else can write now
        await router.reload()
        assert (await router.route(SQUASH, use_semantic_cache=False)).stage is Stage.VECTOR
        other.execute("ROLLBACK")
        other.close()
        # The first router gets no chance to try again, as if it had been killed.
        assert await stages(skills, state) == [Stage.VECTOR, Stage.FUZZY]


async def test_a_router_that_cannot_open_the_file_does_not_vouch_for_what_is_in_it(
    skills: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    await learn(skills, state)
    edit(skills, "git")
    file = state / "fuzzy.sqlite3"
    aside = file.rename(state / "aside")
    file.mkdir()  # no database can be opened there
    await learn(skills, state)
    file.rmdir()
    aside.rename(file)
    assert await stages(skills, state) == [Stage.VECTOR, Stage.FUZZY]


async def test_an_answer_of_a_process_with_older_skills_is_not_given(
    skills: Path, tmp_path: Path
) -> None:
    write_skill(skills, "quilting", "Sews patchwork quilts from old shirts. Use to sew a quilt.")
    state = tmp_path / "state"
    async with router_over(skills, state) as behind, router_over(skills, state) as ahead:
        shutil.rmtree(skills / "quilting")
        await ahead.reload()
        learnt = await behind.route(QUILTS)
        assert learnt.selected_skills == ("quilting",)
        ahead.fuzzy.answers("")  # follows the file, as a look-up does every second
        assert ahead.fuzzy.find(QUILTS, ahead._runtime.current.base).result is not None
        for request in (QUILTS, f"please {QUILTS}"):
            result = await ahead.route(request)
            assert "quilting" not in (*result.selected_skills, *result.suggested_skills)
            assert result.stage is Stage.VECTOR
            assert result.trace[0].reason == "the answer to a close request names unknown skills"


async def test_a_router_over_other_roots_is_not_disturbed(skills: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    other = some_skills(tmp_path / "other", "git", "testing", "debugging")
    async with router_over(skills, state) as one, router_over(other, state) as two:
        for request in (SQUASH, FLAKY):
            await one.route(request)
            await two.route(request)
        shutil.rmtree(skills / "git")
        edit(skills, "debugging")
        edit(skills, "testing")
        await one.reload()
        assert held_answers(one) == {}
        assert (await two.route(SQUASH)).stage is Stage.EXACT
    assert await stages(other, state) == [Stage.FUZZY, Stage.FUZZY]


async def test_routers_with_other_settings_mend_only_their_own_answers(
    skills: Path, tmp_path: Path
) -> None:
    """They share the folder of the index; were the record shared too, whoever starts first after a
    change would hide it from the other."""
    state = tmp_path / "state"
    other: dict[str, Any] = {"vector": {"max_suggestions": 1}}
    await learn(skills, state)
    await learn(skills, state, **other)
    edit(skills, "git")
    assert await stages(skills, state) == [Stage.VECTOR, Stage.FUZZY]
    assert await stages(skills, state, **other) == [Stage.VECTOR, Stage.FUZZY]


KILLED = """
import asyncio, os, signal, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from cascade import router_over
from router.retrieval.vectors import VectorStore
from router.stages.invalidation import CachedAnswers, CatalogRecord

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    skills, state = Path(sys.argv[1]), Path(sys.argv[2])
    async with router_over(skills, state) as router:
        for request in {requests!r}:
            await router.route(request)
        path = skills / "git" / "SKILL.md"
        path.write_text(path.read_text() + "Also knits woollen socks.")
        {patch}
        await router.reload()

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "patch",
    [
        "VectorStore.vectors = die",
        "CachedAnswers.all = die",  # the vectors are new, nothing else is
        "CachedAnswers.discard = die",
        "CatalogRecord.write = die",  # all is swapped, and the record is not
    ],
)
async def test_a_process_that_is_killed_in_a_change_leaves_nothing_wrong_behind(
    skills: Path, tmp_path: Path, patch: str
) -> None:
    tests = str(Path(__file__).parent)
    code = KILLED.format(tests=tests, requests=(SQUASH, FLAKY), patch=patch)
    state = tmp_path / "state"
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", code, str(skills), str(state)],
        env={**os.environ, "PYTHONPATH": str(SHIPPED.parent)},
        timeout=WAIT_SECONDS * 3,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert await stages(skills, state) == [Stage.VECTOR, Stage.FUZZY]
    assert await stages(skills, state) == [Stage.FUZZY, Stage.FUZZY]
