"""Reloading: what changes between two requests, and what stays for those under way."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from cascade import (
    SHIPPED,
    SQUASH,
    WAIT_SECONDS,
    CountingEncoder,
    answer,
    bundled_encoder,
    happened,
    offered_names,
    router_over,
    settings_for,
    some_skills,
    summary,
    write_skill,
)
from numpy.typing import NDArray
from servers.openai_server import HeldServer, completion

from router import Decision, EncoderError, SemanticRouter, Settings, Stage
from router.components import shared_embeddings
from router.events import Degraded, Event, Recovered
from router.learning.evidence import evidence_file
from router.retrieval.documents import SkillDocument
from router.retrieval.embedding_chroma import ChromaCache
from router.retrieval.vectors import embeddings_folder
from router.skills.changes import CatalogChange
from router.skills.enrichment import Enrichment

QUILTS = "sew a patchwork quilt from old shirts"


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return some_skills(tmp_path / "skills", "git", "testing", "debugging")


def write_quilting(skills: Path) -> None:
    write_skill(
        skills,
        "quilting",
        "Sews patchwork quilts from old shirts. Use to sew a quilt.",
        "metadata:",
        '  routing-keywords: "quilt, patchwork, sew"',
    )


async def reload_held_up(
    router: SemanticRouter, encoder: CountingEncoder, skills: Path
) -> asyncio.Task[CatalogChange]:
    """A reload over a new skill that has come to the encoder, which waits to be released."""
    encoder.release.clear()
    encoder.encoding.clear()
    write_quilting(skills)
    reloading = asyncio.create_task(router.reload())
    await happened(encoder.encoding)
    return reloading


async def test_an_added_a_changed_and_a_removed_skill_show_in_the_diff_and_the_next_route(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        before = router.catalog
        assert summary(await router.route(QUILTS)) == (Decision.ABSTAIN, ())

        write_quilting(skills)
        write_skill(skills, "testing", "Tastes soups.")
        shutil.rmtree(skills / "git")
        diff = await router.reload()
        assert (diff.added, diff.changed, diff.removed) == (("quilting",), ("testing",), ("git",))
        assert diff.before is before
        assert diff.after is router.catalog
        assert list(router.catalog.skills) == ["debugging", "quilting", "testing"]

        quilts = await router.route(QUILTS)
        assert summary(quilts) == (Decision.ROUTE, ("quilting",))
        assert quilts.catalog_version == diff.after.version
        everything = await router.route(SQUASH, use_semantic_cache=False)
        assert "git" not in {candidate.name for candidate in everything.trace[-1].candidates}
        soup = await router.route("taste the soups", available_skills=["testing", "debugging"])
        assert soup.trace[-1].candidates[0].name == "testing"


async def test_a_reload_without_changes_keeps_the_snapshot_and_the_caches(
    skills: Path, tmp_path: Path
) -> None:
    encoder = CountingEncoder()
    async with router_over(skills, tmp_path / "state", encoder=encoder) as router:
        version = router.catalog.version
        await router.route(SQUASH)
        diff = await router.reload()
        assert (diff.added, diff.changed, diff.removed) == ((), (), ())
        assert router.catalog.version == version
        assert (await router.route(SQUASH)).stage is Stage.EXACT
    assert encoder.documents == [3]


async def test_only_what_changed_is_encoded_again(skills: Path, tmp_path: Path) -> None:
    encoder = CountingEncoder()
    async with router_over(skills, tmp_path / "state", encoder=encoder) as router:
        write_quilting(skills)
        await router.reload()
    async with router_over(skills, tmp_path / "state", encoder=encoder) as router:
        await router.open()
    assert encoder.documents == [3, 1]


async def test_skills_that_come_back_route_as_before(skills: Path, tmp_path: Path) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        first = await router.route(SQUASH)
        (skills / "git").rename(tmp_path / "git")
        await router.reload()
        assert "git" not in (await router.route(SQUASH)).selected_skills
        (tmp_path / "git").rename(skills / "git")
        await router.reload()
        back = await router.route(SQUASH)
    # The skills are those over which the first answer was given, so it holds again.
    assert (back.stage, back.selected_skills) == (Stage.EXACT, ("git",))
    assert back.catalog_version == first.catalog_version


async def test_a_skill_that_moved_is_found_in_its_new_place(skills: Path, tmp_path: Path) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        (skills / "bundle").mkdir()
        (skills / "git").rename(skills / "bundle" / "git")
        diff = await router.reload()
        assert (diff.added, diff.changed, diff.removed) == ((), (), ())
        assert router.catalog.skills["git"].path == skills / "bundle" / "git" / "SKILL.md"


async def test_a_reload_of_a_router_that_is_not_open_opens_it(skills: Path, tmp_path: Path) -> None:
    router = router_over(skills, tmp_path / "state")
    diff = await router.reload()
    assert (diff.added, diff.changed, diff.removed) == ((), (), ())
    assert list(router.catalog.skills) == ["debugging", "git", "testing"]
    await router.aclose()


async def test_a_request_under_way_finishes_on_the_snapshot_that_it_started_with(
    skills: Path, tmp_path: Path, held_server: HeldServer
) -> None:
    # Weak, so that the answer is weighed by retrieval after the reload.
    held_server.always = completion(answer("git", confidence=0.4))
    async with router_over(skills, tmp_path / "state", held_server) as router:
        old = router.catalog.version
        under_way = asyncio.create_task(router.route(SQUASH))
        restricted = asyncio.create_task(router.route(SQUASH, available_skills=["git", "testing"]))
        await happened(held_server.arrived)
        shutil.rmtree(skills / "git")
        write_quilting(skills)
        diff = await router.reload()
        assert (diff.added, diff.removed) == (("quilting",), ("git",))
        held_server.release.set()
        for result in (await under_way, await restricted):
            assert summary(result) == (Decision.ROUTE, ("git",))
            assert result.catalog_version == old
            named = {candidate.name for candidate in result.trace[-1].candidates}
            assert named <= {"debugging", "git", "testing"}
        later = await router.route(SQUASH)
    assert later.catalog_version == diff.after.version
    assert "git" not in (*later.selected_skills, *later.suggested_skills)
    assert offered_names(held_server)[-1] == ["debugging", "quilting", "testing"]


async def test_skills_go_and_come_back_with_their_folder(skills: Path, tmp_path: Path) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        await router.route(SQUASH)
        shutil.move(skills, tmp_path / "away")
        assert (await router.reload()).removed == ("debugging", "git", "testing")
        assert summary(await router.route(SQUASH)) == (Decision.ABSTAIN, ())
        shutil.move(tmp_path / "away", skills)
        write_quilting(skills)
        assert (await router.reload()).added == ("debugging", "git", "quilting", "testing")
        assert (await router.route(SQUASH)).selected_skills == ("git",)


class FailingEncoder(CountingEncoder):
    """Fails to encode skills while told to."""

    failing = False

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        if self.failing:
            raise EncoderError("out of order")
        return super().encode_documents(documents)


async def test_what_a_failed_encoding_left_out_is_in_the_next_diff_and_index(
    skills: Path, tmp_path: Path
) -> None:
    encoder = FailingEncoder()
    async with router_over(skills, tmp_path / "state", encoder=encoder) as router:
        version = router.catalog.version
        write_quilting(skills)
        encoder.failing = True
        with pytest.raises(EncoderError, match="out of order"):
            await router.reload()
        assert router.catalog.version == version
        assert (await router.route(SQUASH)).selected_skills == ("git",)
        encoder.failing = False
        assert (await router.reload()).added == ("quilting",)
        assert (await router.route(QUILTS)).selected_skills == ("quilting",)


async def test_reloads_at_the_same_time_run_one_after_the_other(
    skills: Path, tmp_path: Path
) -> None:
    encoder = CountingEncoder()
    async with router_over(skills, tmp_path / "state", encoder=encoder) as router:
        first = await reload_held_up(router, encoder, skills)
        shutil.rmtree(skills / "quilting")
        second = asyncio.create_task(router.reload())
        encoder.release.set()
        assert (await first).added == ("quilting",)
        assert (await second).removed == ("quilting",)
        assert list(router.catalog.skills) == ["debugging", "git", "testing"]


async def test_a_cancelled_reload_leaves_no_thread_behind_that_writes_to_the_index(
    skills: Path, tmp_path: Path
) -> None:
    encoder = CountingEncoder()
    async with router_over(skills, tmp_path / "state", encoder=encoder) as router:
        reloading = await reload_held_up(router, encoder, skills)
        reloading.cancel()
        again = asyncio.create_task(router.reload())
        encoder.release.set()
        with pytest.raises(asyncio.CancelledError):
            await reloading
        await again
        assert (await router.route(QUILTS)).selected_skills == ("quilting",)
    assert encoder.documents == [3, 1]


async def test_default_folders_that_appear_while_it_runs_are_taken_up_by_their_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Arrived:
        name = "arrived"

        def __init__(self) -> None:
            self.changes: asyncio.Queue[CatalogChange] = asyncio.Queue()

        async def on_catalog_change(self, change: CatalogChange) -> None:
            self.changes.put_nowait(change)

    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    arrived = Arrived()
    async with (
        SemanticRouter(
            settings_for(tmp_path / "state", shipped_skills=False), observers=[arrived]
        ) as router,
        router.manager.watch(),
    ):
        assert not router.catalog.skills
        write_quilting(project / ".claude" / "skills")
        async with asyncio.timeout(WAIT_SECONDS):
            while not router.catalog.skills:
                await arrived.changes.get()
        assert (await router.route(QUILTS)).selected_skills == ("quilting",)
        stronger = project / "skills" / "quilting" / "SKILL.md"
        write_quilting(project / "skills")
        async with asyncio.timeout(WAIT_SECONDS):
            while router.catalog.get("quilting").path != stronger:
                await arrived.changes.get()


class CostlyEncoder(CountingEncoder):
    """An encoder whose vectors are worth sharing, as those of a service are."""

    static = False


async def test_new_vectors_are_shared_at_opening_and_closing_but_not_while_requests_are_answered(
    skills: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    chroma = ChromaCache(state / "embeddings")

    def documents(router: SemanticRouter) -> set[str]:
        skills = router._runtime.current.catalog.routable
        return {f"document/{SkillDocument.of(skill).digest}" for skill in skills}

    async with router_over(skills, state, encoder=CostlyEncoder()) as router:
        before = documents(router)
        write_quilting(skills)
        await router.reload()
        after = documents(router)
        assert len(after - before) == 1
        store = router._runtime.current.parts.store
        assert store._file.unshared(store.identity, chroma.name).keys() & after == after - before
    assert chroma.get(store.identity, list(after)).keys() == after
    chroma.close()


async def test_vectors_of_a_static_encoder_are_shared_where_a_store_is_named(
    skills: Path, tmp_path: Path
) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        await router.route(QUILTS)
    assert not (tmp_path / "state" / "embeddings" / "chroma").exists()
    named = Settings(vector_store="http://127.0.0.1:9")
    assert isinstance(shared_embeddings(named, bundled_encoder()), ChromaCache)


async def test_no_snapshot_is_kept_beside_the_current_one(skills: Path, tmp_path: Path) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        await router.route(SQUASH)
        indexes = []
        for number in range(2):
            indexes.append(weakref.ref(router._runtime.current.index))
            write_skill(skills, "testing", f"Tastes soup number {number}.")
            await router.reload()
        gc.collect()
        assert [index() for index in indexes] == [None, None]


async def test_the_file_of_enrichments_is_followed(skills: Path, tmp_path: Path) -> None:
    request = "fold my laundry"
    async with router_over(skills, tmp_path / "state") as router:
        assert summary(await router.route(request)) == (Decision.ABSTAIN, ())
        line = Enrichment(skill="git", requests=("fold my laundry", "fold the laundry")).to_line()
        (skills / "enrichment.jsonl").write_text(line)
        assert (await router.reload()).changed == ("git",)
        ranking = await (await router.open()).index.rank(request)
        assert (ranking.matches[0].name, ranking.matches[0].terms) == ("git", ("fold", "laundry"))
        (skills / "enrichment.jsonl").unlink()
        assert (await router.reload()).changed == ("git",)
        assert summary(await router.route(request)) == (Decision.ABSTAIN, ())


async def test_a_file_of_enrichments_given_as_an_argument_is_used(
    skills: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(Enrichment(skill="git", requests=("fold my laundry",)).to_line())
    settings = settings_for(tmp_path / "state")
    async with SemanticRouter(settings, roots=[skills], enrichment=file) as router:
        assert router.settings.enrichment == file
        enrichment = router.catalog.get("git").enrichment
    assert enrichment is not None
    assert enrichment.requests == ("fold my laundry",)


@pytest.mark.parametrize("part", ["evidence", "answers", "vectors"])
async def test_a_store_that_could_not_be_opened_is_named_tried_again_and_used_again(
    part: str, skills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.runtime.RETRY_SECONDS", 0.01)
    state = tmp_path / "state"
    settings = settings_for(state)
    file = {
        "evidence": evidence_file(settings.evidence_directory),
        "answers": state / "fuzzy.sqlite3",
        "vectors": embeddings_folder(state) / "embeddings.sqlite3",
    }[part]
    file.mkdir(parents=True)  # a folder cannot be opened
    told: list[Event] = []
    failed_again, back = asyncio.Event(), asyncio.Event()

    def hear(event: Event) -> None:
        told.append(event)
        if isinstance(event, Recovered):
            back.set()
        elif sum(isinstance(one, Degraded) for one in told) > 1:
            failed_again.set()

    router = router_over(skills, state)
    router.events.subscribe(hear)
    async with router:
        result = await router.route(SQUASH)
        assert summary(result) == (Decision.ROUTE, ("git",))
        async with asyncio.timeout(WAIT_SECONDS):
            await failed_again.wait()
            file.rmdir()
            await back.wait()
        assert {e.part for e in told if isinstance(e, Degraded | Recovered)} == {part}
        if part == "evidence":
            result = await router.route("rebase my branch on main")
            await router.feedback(result.id, ["testing"])
    async with router_over(skills, state) as router:
        if part == "evidence":
            assert router.learner.status()["examples"]["feedback"] == 1
        if part == "answers":
            assert (await router.route(SQUASH)).stage is Stage.FUZZY
        if part == "vectors":
            assert (await router.open()).index.encoded == 0


async def test_each_part_that_a_bad_state_folder_takes_away_is_told_once(
    skills: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """There were five warnings: two parts told it, and the router told it again for them."""
    state = tmp_path / "state"
    state.touch()
    with caplog.at_level(logging.WARNING, logger="router"):
        async with router_over(skills, state) as router:
            assert (await router.route(SQUASH)).selected_skills == ("git",)
    told = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert sorted(told) == [
        "fuzzy cache works in memory only for now",
        "nothing is learnt for now",
        "vectors are kept in memory only for now",
    ]


FIRST_DECISION = f"""
import asyncio, sys
from pathlib import Path
from router import SemanticRouter, Settings

read = []

async def main():
    settings = Settings(state_dir=sys.argv[1], llm={{"enabled": False}})
    async with SemanticRouter(settings, roots=[Path({str(SHIPPED)!r})]) as router:
        sys.addaudithook(lambda event, given: event in ("import", "open") and read.append(given[0]))
        await router.route("sqash the last four comits please")
        print(read)

asyncio.run(main())
"""


def test_the_first_decision_of_a_process_reads_no_file_and_imports_nothing(tmp_path: Path) -> None:
    """Others wait meanwhile: it took a tenth of a second of the event loop."""
    command = [sys.executable, "-c", FIRST_DECISION, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert (done.stdout, done.stderr) == ("[]\n", "")
