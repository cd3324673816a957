"""Which catalog a router has, among those that a file of evidence knows."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from cascade import bundled_encoder

from router.learning.catalogs import MAX_CATALOGS, KnownCatalog, recognise
from router.learning.evidence import EvidenceStore, evidence_file
from router.learning.learner import Learner
from router.settings.settings import LearningSettings
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest

GIT = {"git": "1", "debugging": "2", "writer": "3"}
SHOP = {"refund": "1", "order": "2"}


def known(key: str, skills: dict[str, str], *roots: str, used: float = 1.0) -> KnownCatalog:
    return KnownCatalog(key, roots, skills, used)


def catalog(*names: str) -> Catalog:
    skills = [SkillManifest.in_memory(name, f"Does what {name} does.") for name in names]
    return Catalog({skill.name: skill for skill in skills})


async def learner_over(folder: Path, *names: str) -> Learner:
    store = EvidenceStore(evidence_file(folder), clock=time.time)
    learner = Learner(store, LearningSettings(), bundled_encoder(), has_llm=True)
    await learner.begin(catalog(*names))
    return learner


def locks_in(folder: Path) -> int:
    return len(list(folder.glob("account-*.lock")))


def test_a_catalog_that_has_changed_is_the_same_one() -> None:
    kept = [known("a", GIT, "x"), known("b", SHOP, "x")]
    assert recognise(kept, ("x",), {**GIT, "terminal": "4"}).key == "a"
    assert recognise(kept, ("x",), {**GIT, "git": "9"}).key == "a"
    assert recognise(kept, ("x",), {"refund": "1"}).key == "b"


def test_other_skills_are_another_catalog() -> None:
    found = recognise([known("a", GIT)], (), SHOP)
    assert (found.skills, found.key == "a") == (SHOP, False)
    assert recognise([known("a", GIT)], (), {}).key != "a"


def test_tools_without_a_folder_are_two_catalogs_unless_nearly_all_are_alike() -> None:
    """Two agents that share some tools are not one agent whose tools have changed."""
    one = dict.fromkeys(("search", "read", "write", "mail"), "1")
    half = dict.fromkeys(("search", "read", "pay", "bank"), "1")
    assert recognise([known("a", one)], (), half).key != "a"
    assert recognise([known("a", one)], (), {"search": "1", "read": "1"}).key != "a"
    assert recognise([known("a", one)], (), {**one, "print": "1"}).key == "a"
    assert recognise([known("a", one)], (), {**one, "read": "2"}).key == "a"


def test_the_same_skills_are_one_catalog_in_any_folder_and_like_ones_are_not() -> None:
    kept = [known("a", GIT, "x"), known("b", {**GIT, "terminal": "4"}, "y")]
    assert recognise(kept, ("z",), GIT).key == "a"
    assert recognise(kept, ("y",), {**GIT, "filesystem": "5"}).key == "b"
    assert recognise(kept, ("z",), {**GIT, "filesystem": "5"}).key not in ("a", "b")


def test_a_key_that_another_catalog_has_by_now_is_not_given_again() -> None:
    first = recognise([], (), GIT).key
    grown = known(first, {"refund": "1"})
    assert recognise([grown], (), GIT).key != first


async def test_a_router_over_other_skills_takes_nothing_from_what_was_learnt(
    tmp_path: Path,
) -> None:
    """By default all routers of a user learn into one file."""
    one = await learner_over(tmp_path, "git", "debugging", "writer")
    await one.calibrate([(str(i), "llm", 0.9, i % 9 > 0) for i in range(60)])
    one.bound.decide(np.zeros(3), answer="git")
    before = one.status()
    await one.aclose()

    other = await learner_over(tmp_path, "refund", "order")
    assert (other.status()["bound"]["requests"], other.status()["calibrations"]) == (0, {})
    await other.aclose()

    again = await learner_over(tmp_path, "git", "debugging", "writer")
    after = again.status()
    await again.aclose()
    assert (after["bound"], after["calibrations"]) == (before["bound"], before["calibrations"])


async def test_those_that_were_used_last_are_remembered(tmp_path: Path) -> None:
    for number in range(MAX_CATALOGS + 1):
        await (await learner_over(tmp_path, f"skill-{number}")).aclose()
    store = EvidenceStore(evidence_file(tmp_path), clock=time.time)
    kept = [name for state in store.states("catalog/").values() for name in state["skills"]]
    accounts = store.states("bound/")
    store.close()
    assert set(kept) == {f"skill-{number}" for number in range(1, MAX_CATALOGS + 1)}
    assert len(accounts) == locks_in(tmp_path) == MAX_CATALOGS
