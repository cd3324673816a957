"""How near the examples of skills are to a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from index_edits import edit_between
from numpy.typing import NDArray

from router.retrieval import examples as module
from router.retrieval.contrast import Contrast
from router.retrieval.documents import SkillDocument
from router.retrieval.examples import (
    FEW_EXPONENT,
    FEW_PAIRS,
    FULL_WEIGHT_COUNT,
    MAX_DEFAULT_NEARNESS,
    STALE_COUNT,
    WORDING_WEIGHT,
    ExampleIndex,
)
from router.retrieval.phrases import PhraseIndex, profile_of
from router.text import tokens

DIMENSIONS = 8
COUNTS = (0, 1, 2, 3, 9)


def document(name: str, count: int) -> SkillDocument:
    texts = tuple(f"{name} {number}" for number in range(count))
    return SkillDocument(name, (), frozenset(), texts, profile_of(texts), "", "", "")


def vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    rows = [np.random.default_rng(list(text.encode())).normal(size=DIMENSIONS) for text in texts]
    found = np.array(rows, dtype=np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), dtype=np.float32)


DOCUMENTS = [document(f"s{number}", count) for number, count in enumerate(COUNTS)]
REQUEST = "s4 number 7"
QUERY = vectors([REQUEST])[0]


EVERYTHING = np.arange(len(DOCUMENTS))


def near(
    index: ExampleIndex,
    request: str,
    background: float,
    among: NDArray[np.intp] = EVERYTHING,
    *,
    single: bool = False,
) -> NDArray[np.float64]:
    """How near the skills are to one request."""
    texts, rows = [tokens(request)], vectors([request])
    [found] = index.nearness(texts, rows, np.array([background]), among, single=single).nearness
    return np.asarray(found)


def cosines(texts: Sequence[str]) -> NDArray[np.float32]:
    """Of each two of some texts, in both orders."""
    rows = vectors(texts or ["alone"])
    return np.asarray((rows @ rows.T)[~np.eye(len(rows), dtype=bool)])


def by_the_formula(texts: Sequence[str], background: float) -> float:
    rows = vectors(texts)
    mean = rows.mean(axis=0)
    nearest = np.sort(rows @ QUERY)[-3:].mean()
    typical = np.concatenate([cosines(each.examples) for each in DOCUMENTS]).mean()
    narrow = np.append(cosines(texts), [typical] * FEW_PAIRS).mean() - typical
    return float(nearest + mean @ QUERY / np.linalg.norm(mean) - 2 * background - narrow)


@pytest.mark.parametrize("quantised_from", [50_000, 1])
def test_nearness_is_that_of_the_formula(
    monkeypatch: pytest.MonkeyPatch, quantised_from: int
) -> None:
    monkeypatch.setattr(module, "QUANTISED_FROM", quantised_from)
    index = ExampleIndex().edited(edit_between([], DOCUMENTS), vectors)
    phrases = PhraseIndex([document.phrases for document in DOCUMENTS])
    wording = phrases.similarity([tokens(REQUEST)], EVERYTHING)[0]
    known = [
        by_the_formula(document.examples, 0.1) + WORDING_WEIGHT * alike
        for document, alike in zip(DOCUMENTS[1:], wording[1:], strict=True)
    ]
    doubt = min(max(known), MAX_DEFAULT_NEARNESS)
    weights = [min(count / FULL_WEIGHT_COUNT, 1) ** FEW_EXPONENT for count in COUNTS[1:]]
    weighed = [w * each + (1 - w) * doubt for w, each in zip(weights, known, strict=True)]
    expected = [doubt, *weighed]
    close = 0.02 if quantised_from == 1 else 1e-6
    assert near(index, REQUEST, 0.1) == pytest.approx(expected, abs=close)
    some = np.array([4, 2])
    assert near(index, REQUEST, 0.1, some) == pytest.approx([expected[i] for i in some], abs=close)
    assert (index.count.tolist(), index.holders.tolist()) == (list(COUNTS), [1, 2, 3, 4])
    assert index.weight.tolist() == pytest.approx([0, *weights])


def test_stale_examples_count_as_fewer() -> None:
    fresh, stale = document("s", 4), replace(document("t", 4), stale=4)
    index = ExampleIndex().edited(edit_between([], [fresh, stale]), vectors)
    as_many = 4 * STALE_COUNT
    assert index.weight.tolist() == pytest.approx(
        [(count / FULL_WEIGHT_COUNT) ** FEW_EXPONENT for count in (4, as_many)]
    )
    asked_again = index.edited(edit_between([fresh, stale], [fresh, document("t", 4)]), vectors)
    assert asked_again.weight[0] == asked_again.weight[1]


def test_what_was_there_before_is_not_encoded_again() -> None:
    index = ExampleIndex().edited(edit_between([], DOCUMENTS), vectors)
    asked: list[str] = []

    def watched(texts: Sequence[str]) -> NDArray[np.float32]:
        asked.extend(texts)
        return vectors(texts)

    later = [DOCUMENTS[1], document("new", 2), DOCUMENTS[4]]
    updated = index.edited(edit_between(DOCUMENTS, later), watched)
    assert asked == ["new 0", "new 1"]
    anew = ExampleIndex().edited(edit_between([], later), vectors)
    for single in (False, True):
        found = [
            near(one, REQUEST, 0.0, np.arange(len(later)), single=single).tolist()
            for one in (updated, anew)
        ]
        assert found[0] == found[1]


def test_for_a_request_of_one_clause_skills_are_told_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "FULL_WEIGHT_COUNT", 1)  # all examples count in full
    index = ExampleIndex().edited(edit_between([], DOCUMENTS), vectors)
    without, found = near(index, REQUEST, 0.1), near(index, REQUEST, 0.1, single=True)
    holders = DOCUMENTS[1:]
    rows = vectors([text for each in holders for text in each.examples])
    contrast = Contrast(rows, np.array([len(each.examples) for each in holders]), index.means)
    told = contrast.adjustments(vectors([REQUEST]), np.arange(len(holders)))[0]
    assert np.ptp(told) > 0.01
    expected = without[1:] + told
    assert found[1:] == pytest.approx(expected, abs=1e-6)
    assert found[0] == pytest.approx(min(expected.max(), MAX_DEFAULT_NEARNESS), abs=1e-6)


def test_several_texts_are_compared_as_each_alone_is() -> None:
    index = ExampleIndex().edited(edit_between([], DOCUMENTS), vectors)
    texts = [REQUEST, "number", "s1 0"]
    backgrounds = np.array([0.1, 0.2, 0.3])
    together = index.nearness(
        [tokens(text) for text in texts], vectors(texts), backgrounds, EVERYTHING
    ).nearness
    for row, text, background in zip(together, texts, backgrounds, strict=True):
        assert row == pytest.approx(near(index, text, background), abs=1e-6)


def test_without_any_examples_nothing_is_near() -> None:
    index = ExampleIndex().edited(edit_between([], [document("a", 0)]), vectors)
    assert near(index, REQUEST, 0.3, np.arange(1)).tolist() == [0.0]


@pytest.mark.parametrize("request_text", ["s4 4", "nothing of all that"])
def test_a_skill_without_examples_has_the_benefit_of_the_doubt(request_text: str) -> None:
    index = ExampleIndex().edited(edit_between([], DOCUMENTS), vectors)
    found = near(index, request_text, 0.1)
    assert found[0] == pytest.approx(min(found[1:].max(), MAX_DEFAULT_NEARNESS))


def test_the_guess_from_the_means_weighs_examples_as_well() -> None:
    index = ExampleIndex().edited(edit_between([], DOCUMENTS), vectors)
    means = 2 * (index.means @ QUERY - 0.1)
    doubt = min(means.max(), MAX_DEFAULT_NEARNESS)
    expected = [doubt, *(doubt + index.weight[1:] * (means - doubt))]
    assert index.approximate_nearness(QUERY, 0.1) == pytest.approx(expected, abs=1e-6)
