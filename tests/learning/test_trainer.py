"""The trainer: which local model serves, and when a new one is fitted."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

import numpy as np
import openai  # noqa: F401 - on a busy machine its import takes longer than an LLM may
import pytest
from cascade import SHIPPED, bundled_encoder, router_over
from filelock import FileLock
from labelled_topics import labelled, remember

from router.concurrency.tasks import give_way
from router.learning.evidence import EvidenceStore, Example, Source, evidence_file
from router.learning.local import LocalModel
from router.learning.peers import Label
from router.learning.trainer import MAX_WAIT_FOR_OTHERS_SECONDS, Trainer


async def test_a_label_that_changed_is_learnt_where_all_evidence_is_wanted(tmp_path: Path) -> None:
    other = {"git": "testing", "testing": "git"}
    swapped = [(text, tuple(other.get(name, name) for name in names)) for text, names in labelled()]
    remember(tmp_path, labelled())
    async with router_over(SHIPPED, tmp_path) as router:
        await router.learned()
    remember(tmp_path, swapped)
    async with router_over(SHIPPED, tmp_path) as router:
        await router.learned()
        result = await router.route("would you stash my edits 7", use_semantic_cache=False)
    assert result.selected_skills == ("testing",)


async def test_the_local_model_is_taken_up_at_the_next_start(tmp_path: Path) -> None:
    remember(tmp_path, labelled())
    async with router_over(SHIPPED, tmp_path) as router:
        await router.learned()
        before = await router.route("stash my edits 8", use_semantic_cache=False)
    async with router_over(SHIPPED, tmp_path) as router:
        model = router.learner.status()["model"]
        again = await router.route("stash my edits 8", use_semantic_cache=False)
        assert router.learner.status()["last_training"] is None
    assert model["examples"] > len(labelled())
    assert (again.selected_skills, again.confidence) == (before.selected_skills, before.confidence)


async def test_what_another_process_has_fitted_on_the_same_evidence_is_taken_up(
    tmp_path: Path,
) -> None:
    rows = labelled()
    remember(tmp_path, rows[:150])
    async with router_over(SHIPPED, tmp_path) as one, router_over(SHIPPED, tmp_path) as other:
        await one.learned()
        await other.learned()
        first, taking = one.learner.trainer, other.learner.trainer
        before = first.model
        remember(tmp_path, rows)
        await one.learned()
        await other.learned()
        assert taking.fitted_last is None  # it has fitted nothing
        assert first.model is not None
        assert first.model is not before
        assert taking.model is not None
        assert taking.model.evidence_digest == first.model.evidence_digest
        assert taking.model.examples > len(rows)


async def test_a_trainer_that_waits_for_another_process_closes_at_once_and_holds_no_thread(
    tmp_path: Path,
) -> None:
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    store = EvidenceStore(evidence_file(tmp_path), clock=lambda: 0.0)
    trainer = Trainer(bundled_encoder(), store, list, skills_digest=str, calibrates=True)
    with FileLock(tmp_path / "fitting.lock"):
        training = asyncio.create_task(trainer.trained())
        for _ in range(3):
            await give_way()  # it asks for its turn meanwhile
        async with asyncio.timeout(MAX_WAIT_FOR_OTHERS_SECONDS / 2):
            await asyncio.to_thread(store.counts)
            await trainer.aclose()
            await training
    assert trainer.fitted_last is None
    store.close()


async def test_a_model_is_not_kept_for_skills_that_changed_while_it_was_fitted(
    tmp_path: Path,
) -> None:
    about = ["before"]
    examples = [Example(name, (name,), True, Source.FILE) for name in ("git", "testing")]

    def read() -> list[Example]:
        about[0] = "after"
        return examples

    store = EvidenceStore(evidence_file(tmp_path), clock=lambda: 0.0)
    trainer = Trainer(
        bundled_encoder(), store, read, skills_digest=lambda: about[0], calibrates=True
    )
    await trainer.trained()
    assert trainer.model is not None
    assert store.model(trainer.key()) is None
    await trainer.aclose()
    store.close()


async def test_a_failure_that_nobody_expects_is_told_in_a_line_with_its_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def lost() -> Sequence[Example]:
        raise KeyError("label")

    store = EvidenceStore(evidence_file(tmp_path), clock=lambda: 0.0)
    trainer = Trainer(bundled_encoder(), store, lost, skills_digest=str, calibrates=True)
    await trainer.trained()
    assert re.fullmatch(
        r"in the background: KeyError: 'label' \(test_trainer\.py, line \d+, in lost\)",
        caplog.messages[-1],
    )
    await trainer.aclose()
    store.close()


async def test_a_model_of_other_skills_is_not_taken_up(tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    copytree(SHIPPED, skills)
    remember(tmp_path, labelled())
    async with router_over(skills, tmp_path) as router:
        await router.learned()
    rmtree(skills / "git")
    async with router_over(skills, tmp_path) as router:
        assert router.learner.status()["model"] is None


async def test_a_damaged_model_is_fitted_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remember(tmp_path, labelled())
    async with router_over(SHIPPED, tmp_path) as router:
        await router.learned()
    with closing(sqlite3.connect(evidence_file(tmp_path))) as database, database:
        database.execute("UPDATE models SET model = x'00'")
    async with router_over(SHIPPED, tmp_path) as router:
        await router.learned()
        assert router.learner.status()["last_training"]["shipped"]
    assert "a kept model is not taken up" in caplog.text


class OtherFits:
    """Another process that fits, and has published this model."""

    def __init__(self, model: bytes) -> None:
        self.model = model

    async def tell_labels(self, labels: Sequence[Label]) -> None: ...

    def tell_outcome(self, outcome: Sequence[Any]) -> None: ...

    async def may_fit(self, _key: str) -> bool:
        return False

    async def publish(self, key: str, model: bytes) -> None: ...

    async def published(self, _key: str) -> bytes | None:
        return self.model


@pytest.mark.parametrize(("dimension", "serves"), [(256, True), (16, False)])
async def test_a_published_model_serves_where_it_is_of_the_encoders_dimension(
    tmp_path: Path, dimension: int, serves: bool
) -> None:
    examples = [Example(name, (name,), True, Source.FILE) for name in ("git", "testing")]
    fitted = LocalModel.fit(examples, np.eye(2, dimension, dtype=np.float32), version=1)
    assert fitted is not None
    store = EvidenceStore(evidence_file(tmp_path), clock=lambda: 0.0)
    trainer = Trainer(
        bundled_encoder(),
        store,
        list,
        skills_digest=str,
        calibrates=True,
        peers=OtherFits(fitted.to_bytes()),
    )
    await trainer.trained()
    assert (trainer.model is not None) is serves
    await trainer.aclose()
    store.close()


async def test_what_was_learnt_serves_on_while_skills_change(tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    copytree(SHIPPED, skills)
    remember(tmp_path, labelled())
    async with router_over(skills, tmp_path) as router:
        await router.learned()
        manifest = skills / "writer" / "SKILL.md"
        text = manifest.read_text(encoding="utf-8")
        manifest.write_text(text.replace("description: ", "description: Also pods. ", 1), "utf-8")
        await router.reload()
        assert router.learner.trainer.current is False
        result = await router.route("stash my edits 8", use_semantic_cache=False)
    assert result.selected_skills == ("git",)
    assert result.calibrated
