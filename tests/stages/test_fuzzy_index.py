"""The index of the fuzzy cache finds what a comparison with every entry finds."""

from __future__ import annotations

import asyncio

from cached import answer
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from router.stages.fuzzy import FuzzyCache
from router.stages.gate import compare_signatures
from router.stages.wording import signature_of
from router.text import normalise


async def test_a_typo_in_a_long_word_is_recalled_on_either_side() -> None:
    cache = FuzzyCache()
    await cache.learn("write the documentation", answer("docs"))
    await cache.learn("check the deplyoment", answer("ops"))
    assert cache.find("write the documentaion").result == answer("docs")
    assert cache.find("check the deployment").result == answer("ops")


async def test_a_word_that_other_requests_use_is_not_taken_for_a_typo() -> None:
    cache = FuzzyCache()
    await cache.learn("draw the marten family", answer("martens"))
    await cache.learn("feed the marteen family", answer("marteens"))
    found = cache.find("feed the marten family")
    assert found.result is None
    assert found.blocked == "both spellings are in use"


PARTS = "fix the a bug bugs please deployment deplyoment deploymet test on off 12 how is my"


REQUEST = st.lists(st.sampled_from(PARTS.split()), min_size=1, max_size=5).map(" ".join)


@settings(max_examples=200)
@given(st.lists(REQUEST, min_size=1, max_size=8), REQUEST, st.sampled_from([0.0, 0.75, 0.9]))
def test_the_index_finds_what_a_comparison_with_every_entry_finds(
    learned: list[str], asked: str, threshold: float
) -> None:
    cache = FuzzyCache(similarity_threshold=threshold)
    for text in learned:
        asyncio.run(cache.learn(text, answer(text)))
    wanted = signature_of(normalise(asked))
    seen = {stem for text in learned for stem in signature_of(normalise(text)).stems}
    scores = [1.0] if normalise(asked) in map(normalise, learned) else []
    for text in learned:
        held = signature_of(normalise(text))
        similarity = Levenshtein.normalized_similarity(wanted.core, held.core)
        typos = [a for a, b in zip(wanted.stems, held.stems, strict=False) if a != b]
        if (
            compare_signatures(wanted, held).passes
            and similarity >= threshold
            and seen.isdisjoint(typos)
        ):
            scores.append(similarity)
    found = cache.find(asked)
    assert (found.result is not None) == bool(scores)
    assert (found.similarity if found.result else 0.0) == max(scores, default=0.0)
