"""How alike the wording of a request and of a skill's examples is."""

from __future__ import annotations

import numpy as np
import pytest

from router.retrieval.candidates import EVERYTHING
from router.retrieval.phrases import MAX_WORDS, PhraseIndex, is_profile, profile_of

EXAMPLES = (
    (),
    ("how far is it to the station", "how far away is the next town"),
    ("cancel my dinner tonight", "I can't make it on Friday, call it off"),
)
INDEX = PhraseIndex([profile_of(examples) for examples in EXAMPLES])


def test_the_same_words_are_as_near_as_can_be() -> None:
    index = PhraseIndex([profile_of([text]) for text in ("turn off the lights", "play some jazz")])
    assert index.near("turn off the lights", EVERYTHING) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_a_turn_of_phrase_tells_skills_apart_though_all_its_words_are_function_words() -> None:
    none, distance, plans = INDEX.near("how far is that", EVERYTHING)
    assert none == 0
    assert distance > 2 * plans


def test_an_inflection_is_near_by_its_letters() -> None:
    _, distance, plans = INDEX.near("cancelling", EVERYTHING)
    assert plans > distance == 0


@pytest.mark.parametrize("some", [[2, 1], [0], [0, 2]])
def test_of_some_skills_it_is_the_same_as_of_all(some: list[int]) -> None:
    found = INDEX.near("how far is dinner", np.array(some))
    assert found == pytest.approx(INDEX.near("how far is dinner", EVERYTHING)[some])


@pytest.mark.parametrize("request_text", ["", "...", "unheard", "w " * (MAX_WORDS + 1)])
def test_any_request_has_an_answer(request_text: str) -> None:
    assert np.isfinite(INDEX.near(request_text, EVERYTHING)).all()


def test_without_examples_nothing_is_near() -> None:
    assert PhraseIndex([b"", b""]).near("anything", EVERYTHING).tolist() == [0, 0]
    assert PhraseIndex([]).near("anything", EVERYTHING).tolist() == []


def test_a_damaged_profile_is_told() -> None:
    kept = profile_of(EXAMPLES[1])
    assert is_profile(kept)
    assert is_profile(b"")
    assert not is_profile(kept[:-1])
    assert not is_profile(b"\xff" * 4)
