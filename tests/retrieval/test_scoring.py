"""The scores of skills: made of three sources, and of nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from cascade import shipped_index
from hypothesis import given, settings
from hypothesis import strategies as st

from router.retrieval.index import SkillIndex
from router.retrieval.scoring import DENSE_WEIGHT, EXAMPLES_WEIGHT, LEXICAL_WEIGHT

REQUEST = "resolve the merge conflict in config.yaml"


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
