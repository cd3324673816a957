"""Which skills of very many are scored in full."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.retrieval import scoring
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.candidates import BY_VECTORS, STEP, RoughVectors, highest
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest

COUNT = 10 * STEP


@given(st.integers(0, 2**32 - 1), st.integers(1, 5_000))
def test_the_highest_scores_are_found_whatever_their_number(seed: int, size: int) -> None:
    scores = np.random.default_rng(seed).random(size)
    found = highest(scores, COUNT)
    assert len(found) <= 2 * COUNT
    best = np.argsort(-scores)[: len(found)]
    assert set(found.tolist()) == set(best.tolist())


def test_scores_that_are_not_positive_are_no_candidates() -> None:
    scores = np.array([0.0, -1.0, 2.0, 0.0])
    assert highest(scores, COUNT).tolist() == [2]
    assert highest(np.zeros(10_000), COUNT).tolist() == []


def test_very_many_equal_scores_give_no_more_than_was_asked_for() -> None:
    scores = np.ones(10_000)
    scores[77] = 2.0
    found = highest(scores, COUNT)
    assert len(found) == COUNT
    assert 77 in found


def test_vectors_in_few_dimensions_find_nearly_all_of_the_nearest() -> None:
    draw = np.random.default_rng(5)
    centres = draw.standard_normal((50, 128)).astype(np.float32)
    vectors = centres[draw.integers(0, 50, 8_000)] + 0.5 * draw.standard_normal((8_000, 128))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    rough = RoughVectors(vectors)
    for query in vectors[:20]:
        nearest = np.argsort(-(vectors @ query))[:50]
        assert np.isin(nearest, rough.nearest(query)).mean() >= 0.9


async def test_a_catalog_beyond_the_limit_ranks_as_if_all_were_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def skill(number: int) -> SkillManifest:
        verb = ["audit", "translate", "deploy", "archive", "visualise"][number % 5]
        thing = ["invoices", "contracts", "containers", "recipes"][number // 5 % 4]
        name = f"{verb}-{thing}-{number}"
        digest = hashlib.sha256(name.encode()).hexdigest()
        text = f"Helps to {verb} {thing} of customer{number}."
        return SkillManifest(name=name, description=text, body="", path=Path(name), digest=digest)

    catalog = Catalog({one.name: one for one in map(skill, range(3 * BY_VECTORS))})
    encoder = BundledEncoder()
    store = VectorStore(tmp_path, identity=encoder.identity)
    everything = SkillIndex.build(catalog, encoder=encoder, store=store)
    monkeypatch.setattr(scoring, "EXHAUSTIVE", 100)
    some = everything.updated(catalog)

    async def best(index: SkillIndex, request: str) -> list[float]:
        return [match.score for match in (await index.rank(request)).matches[:3]]

    for request in ("audit the invoices of customer7", "put recipes into French", "hello"):
        assert await best(some, request) == pytest.approx(await best(everything, request))
    store.close()
