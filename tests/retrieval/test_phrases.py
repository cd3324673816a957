"""How alike the wording of a request and of a skill's examples is."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from router.retrieval import phrases
from router.retrieval.phrases import MAX_WORDS, PhraseIndex, is_profile, profile_of
from router.text import tokens

EXAMPLES = (
    (),
    ("how far is it to the station", "how far away is the next town"),
    ("cancel my dinner tonight", "I can't make it on Friday, call it off"),
)
INDEX = PhraseIndex([profile_of(examples) for examples in EXAMPLES])


def near(
    request: str, among: Sequence[int] = (0, 1, 2), index: PhraseIndex = INDEX
) -> NDArray[np.float32]:
    """How alike the wording of one request and of some skills' examples is."""
    [found] = index.similarity([tokens(request)], np.array(among, dtype=np.intp))
    return np.asarray(found)


def test_the_same_words_are_as_near_as_can_be() -> None:
    index = PhraseIndex([profile_of([text]) for text in ("turn off the lights", "play some jazz")])
    assert near("turn off the lights", (0, 1), index) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_a_turn_of_phrase_tells_skills_apart_though_all_its_words_are_function_words() -> None:
    none, distance, plans = near("how far is that")
    assert none == 0
    assert distance > 2 * plans


def test_an_inflection_is_near_by_its_letters() -> None:
    _, distance, plans = near("cancelling")
    assert plans > distance == 0


@pytest.mark.parametrize("some", [[2, 1], [0], [0, 2]])
def test_of_some_skills_it_is_the_same_as_of_all(some: list[int]) -> None:
    found = near("how far is dinner", some)
    assert found == pytest.approx(near("how far is dinner")[some])


@pytest.mark.parametrize("request_text", ["", "...", "unheard", "w " * (MAX_WORDS + 1)])
def test_any_request_has_an_answer(request_text: str) -> None:
    assert np.isfinite(near(request_text)).all()


def test_words_that_are_no_words_are_not_remembered() -> None:
    tracemalloc.start()
    try:
        for number in range(100):
            near(f"{number:06}x" * 500)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 20 * 2**20


def test_without_examples_nothing_is_near() -> None:
    assert near("anything", (0, 1), PhraseIndex([b"", b""])).tolist() == [0, 0]
    assert near("anything", (), PhraseIndex([])).tolist() == []


def test_a_damaged_profile_is_told() -> None:
    kept = profile_of(EXAMPLES[1])
    assert is_profile(kept)
    assert is_profile(b"")
    assert not is_profile(kept[:-1])
    assert not is_profile(b"\xff" * 4)


def test_of_very_many_skills_the_rarest_terms_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    index = PhraseIndex([profile_of([f"the{word}"]) for word in ("sun", "sea", "sky", "sand")])
    whole = near("thesea", range(4), index)
    monkeypatch.setattr(phrases, "MAX_POSTINGS", 5)
    rarest = near("thesea", range(4), index)
    assert whole.argmax() == rarest.argmax() == 1
    assert np.count_nonzero(whole) == 4
    assert np.count_nonzero(rarest) == 1
