"""A request as retrieval reads it: misspelt words, and the vectors of many clauses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from cascade import shipped_index

from router.retrieval.asked import MAX_CLAUSES, MAX_MISSPELT, encode_requests
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.clauses import clauses
from router.retrieval.encoders import unit
from router.retrieval.index import SkillIndex


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillIndex]:
    with closing(shipped_index(tmp_path_factory.mktemp("index"))) as index:
        yield index


async def test_a_misspelt_word_is_read_as_the_word_that_is_meant(shipped: SkillIndex) -> None:
    """By its letters, its meaning and the examples."""
    ranking = await shipped.rank("Resolve the merge Conflcit, and plot the distribtuion")
    assert {"merge", "conflict"} <= set(ranking.matches[0].terms)
    assert ranking == await shipped.rank("Resolve the merge conflict, and plot the distribution")


@pytest.mark.parametrize(
    "text",
    [
        "sqaush_comits",
        "\uff53\uff51\uff41\uff55\uff53\uff48 comits",
        "帮我sqaush我的comits",
        "SQAUSH/Comits",
    ],
)
async def test_a_misspelt_word_is_found_wherever_a_word_is(shipped: SkillIndex, text: str) -> None:
    ranking = await shipped.rank(text)
    assert {"squash", "commits"} <= set(ranking.matches[0].terms)


async def test_a_word_of_english_is_not_misspelt_because_no_skill_has_it(
    shipped: SkillIndex,
) -> None:
    """ "March" is not "match", and "screaming" not "streaming"."""
    ranking = await shipped.rank("what was screaming in March", limit=16)
    terms = {term for match in ranking.matches for term in match.terms}
    assert not terms & {"match", "streaming"}


async def test_not_every_word_of_a_pasted_log_is_looked_up_as_misspelt(shipped: SkillIndex) -> None:
    """Each look-up compares a word with hundreds of others."""
    log = " ".join(f"qqq{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(MAX_MISSPELT))
    for request, found in ((f"conflcit {log}", True), (f"{log} conflcit", False)):
        matches = (await shipped.rank(request, limit=16)).matches
        assert any("conflict" in match.terms for match in matches) is found


def test_of_a_request_with_very_many_clauses_only_the_first_vectors_are_kept() -> None:
    encoder = BundledEncoder()
    request = ". ".join(f"paint the wall number{part}" for part in range(3 * MAX_CLAUSES))
    [encoded] = encode_requests(encoder, [request])
    assert len(encoded.texts) == len(encoded.vectors) == 1 + MAX_CLAUSES
    every = encoder.encode(clauses(request))
    assert encoded.vectors[0] == pytest.approx(unit(every.mean(axis=0, keepdims=True))[0])
