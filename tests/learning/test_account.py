"""The accounts of the error bound of processes that share one evidence file."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from cascade import bundled_encoder

from router.learning.account import AccountPlace, forget_places
from router.learning.evidence import EvidenceStore, evidence_file
from router.learning.learner import Learner
from router.settings.settings import LearningSettings
from router.skills.catalog import Catalog
from router.skills.registry import SkillRegistry


def _learner(folder: Path) -> Learner:
    store = EvidenceStore(evidence_file(folder), clock=time.time)
    return Learner(store, LearningSettings(), bundled_encoder(), has_llm=True)


def _catalog(folder: Path) -> Catalog:
    (folder / "skills").mkdir(exist_ok=True)
    return SkillRegistry([folder / "skills"]).catalog


async def test_two_processes_on_one_file_keep_an_account_each(tmp_path: Path) -> None:
    catalog = _catalog(tmp_path)
    for _ in range(2):  # the second time the accounts go on where they ended
        one, other = _learner(tmp_path), _learner(tmp_path)
        await one.begin(catalog)
        await other.begin(catalog)
        for learner, requests in ((one, 3), (other, 5)):
            for _ in range(requests):
                learner.bound.decide(np.zeros(3), answer="git")
        await one.aclose()
        await other.aclose()
    one, other = _learner(tmp_path), _learner(tmp_path)
    await one.begin(catalog)
    await other.begin(catalog)
    assert [learner.bound.status().requests for learner in (one, other)] == [6, 10]
    await one.aclose()
    await other.aclose()


def test_a_place_is_free_again_when_its_process_has_ended(tmp_path: Path) -> None:
    first, second = AccountPlace(tmp_path, "aa"), AccountPlace(tmp_path, "aa")
    assert [first.state, second.state] == ["bound/aa", "bound.1/aa"]
    first.release()
    assert AccountPlace(tmp_path, "aa").state == "bound/aa"


def test_each_catalog_has_places_of_its_own(tmp_path: Path) -> None:
    places = [AccountPlace(tmp_path, key) for key in ("aa", "bb", "aa")]
    assert [place.state for place in places] == ["bound/aa", "bound/bb", "bound.1/aa"]
    forget_places(tmp_path, "aa")
    assert [file.name for file in tmp_path.iterdir()] == ["account-0-bb.lock"]
