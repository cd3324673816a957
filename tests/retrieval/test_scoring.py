"""The scores of skills: made of three sources, and which of very many are scored in full."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from cascade import shipped_index
from hypothesis import given, settings
from hypothesis import strategies as st

from router.retrieval import scoring
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.index import SkillIndex
from router.retrieval.scoring import (
    DENSE_WEIGHT,
    EXAMPLES_WEIGHT,
    LEXICAL_WEIGHT,
    SAMPLE_STEP,
    VECTOR_CANDIDATES,
    RoughVectors,
    highest,
)
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest

REQUEST = "resolve the merge conflict in config.yaml"
COUNT = 10 * SAMPLE_STEP


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillIndex]:
    with closing(shipped_index(tmp_path_factory.mktemp("index"))) as index:
        yield index


REQUESTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60),
    st.lists(
        st.sampled_from("write tests commit merge debug crash plan report data the zzz".split()),
        min_size=1,
    ).map(" ".join),
)


@settings(max_examples=60)
@given(REQUESTS)
async def test_every_match_is_the_sum_of_its_parts_and_they_keep_their_ranges(
    shipped: SkillIndex, request_: str
) -> None:
    ranking = await shipped.rank(request_, limit=16)
    for match in ranking.matches:
        parts = (
            LEXICAL_WEIGHT * match.lexical
            + DENSE_WEIGHT * match.cosine
            + EXAMPLES_WEIGHT * match.examples
        )
        assert match.score == pytest.approx(parts, abs=1e-6)
        assert 0 <= match.lexical <= np.sqrt(max(len(match.terms), 0))
        assert match.examples is not None
        assert abs(match.examples) <= 4 + 1e-6
        assert abs(match.cosine) <= 1 + 1e-6
        assert bool(match.terms) == (match.lexical > 0)
    assert len(ranking.matches) == ranking.size == 16
    assert ranking.evidence >= 0
    assert ranking.lead >= 0


async def test_the_scores_of_the_allowed_do_not_depend_on_the_others(shipped: SkillIndex) -> None:
    everyone = {match.name: match for match in (await shipped.rank(REQUEST, limit=16)).matches}
    some = (await shipped.rank(REQUEST, among=["writer", "testing"])).matches
    assert [match.score for match in some] == [
        pytest.approx(everyone[match.name].score, abs=1e-6) for match in some
    ]


# --- of very many skills


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

    catalog = Catalog({one.name: one for one in map(skill, range(3 * VECTOR_CANDIDATES))})
    encoder = BundledEncoder()
    store = VectorStore(tmp_path, identity=encoder.identity)
    everything = SkillIndex.build(catalog, encoder=encoder, store=store)
    monkeypatch.setattr(scoring, "MAX_EXHAUSTIVE", 100)
    some = everything.updated(catalog)

    async def best(index: SkillIndex, request: str) -> list[float]:
        return [match.score for match in (await index.rank(request)).matches[:3]]

    for request in ("audit the invoices of customer7", "put recipes into French", "hello"):
        assert await best(some, request) == pytest.approx(await best(everything, request))
    store.close()
