from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from router.learning import head as module
from router.learning.features import BUCKETS, Terms, rows, terms_of
from router.learning.head import BIAS_RATE, NEAREST_WEIGHT, WORDS_WEIGHT, Head, energy
from router.learning.words import FULL_MEAN_EXAMPLES

WORDS = {
    "weather": "rain sun wind snow cloud storm forecast degrees".split(),
    "music": "song album band guitar play concert volume lyrics".split(),
    "bank": "money card transfer account balance loan fee statement".split(),
}


def unit(vectors: NDArray[np.float64]) -> NDArray[np.float32]:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def requests(each: int, *, seed: int = 0) -> tuple[list[str], list[str], NDArray[np.float32]]:
    """Requests of three answers: words of their own, and vectors around a direction each."""
    random = np.random.default_rng(seed)
    texts, labels, vectors = [], [], []
    for number, (label, words) in enumerate(WORDS.items()):
        for _ in range(each):
            texts.append(" ".join(random.choice(words, size=3, replace=False)))
            labels.append(label)
            vectors.append(np.eye(16)[number] + random.normal(scale=0.15, size=16))
    return texts, labels, unit(np.array(vectors))


def best(head: Head, texts: list[str], vectors: NDArray[np.float32]) -> list[str]:
    return [head.classes[number] for number in head.scores(texts, vectors).argmax(axis=1)]


def accuracy(found: list[str], labels: list[str]) -> float:
    return sum(a == b for a, b in zip(found, labels, strict=True)) / len(labels)


def test_unseen_requests_of_the_same_kinds_are_told_apart() -> None:
    head = Head.fit(*requests(5))
    texts, labels, vectors = requests(30, seed=1)
    assert accuracy(best(head, texts, vectors), labels) > 0.98


def test_words_decide_where_vectors_say_nothing() -> None:
    texts, labels, vectors = requests(10)
    alike = np.tile(vectors[:1], (len(texts), 1))
    head = Head.fit(texts, labels, alike)
    unseen, truth, _ = requests(10, seed=1)
    assert accuracy(best(head, unseen, alike), truth) > 0.9


def test_vectors_decide_where_there_are_no_words() -> None:
    texts, labels, vectors = requests(10)
    head = Head.fit([""] * len(texts), labels, vectors)
    _, truth, unseen = requests(10, seed=1)
    assert accuracy(best(head, [""] * len(truth), unseen), truth) > 0.98


def test_one_example_of_each_answer_is_enough_to_answer_it_again() -> None:
    texts, labels, vectors = requests(1)
    head = Head.fit(texts, labels, vectors)
    assert best(head, texts, vectors) == labels


def test_one_answer_alone_is_the_answer_to_everything() -> None:
    texts, _, vectors = requests(2)
    head = Head.fit(texts, ["only"] * len(texts), vectors)
    assert set(best(head, texts, vectors)) == {"only"}


def test_answers_are_sorted_and_the_empty_one_is_an_answer_too() -> None:
    texts, _, vectors = requests(1)
    head = Head.fit(texts, ["b", "", "a"], vectors)
    assert head.classes == ("", "a", "b")
    assert best(head, texts, vectors) == ["b", "", "a"]


def test_equal_input_gives_equal_weights() -> None:
    one, other = Head.fit(*requests(6)), Head.fit(*requests(6))
    assert (one.weights == other.weights).all()
    assert (one.bias == other.bias).all()


def test_a_head_cannot_be_written_to() -> None:
    head = Head.fit(*requests(2))
    for array in (head.weights, head.bias, head.examples, head.starts, *head.words):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_the_callers_vectors_stay_as_they_are() -> None:
    texts, labels, vectors = requests(3)
    before = vectors.copy()
    Head.fit(texts, labels, vectors)
    assert (vectors == before).all()


def test_scores_are_the_formula_of_the_module() -> None:
    texts, labels, vectors = requests(FULL_MEAN_EXAMPLES)
    head = Head.fit(texts, labels, vectors)
    assert head.words.gains.any()
    unseen, _, others = requests(3, seed=1)
    nearest = np.array(
        [
            [
                max(float(v @ e) for e, label in zip(vectors, labels, strict=True) if label == name)
                for name in head.classes
            ]
            for v in others
        ]
    )
    expected = rows(terms_of(unseen), others) @ head.weights + head.bias
    expected += NEAREST_WEIGHT * (nearest - 1)
    expected += WORDS_WEIGHT * np.stack([head.words.scores(Terms.of(text)) for text in unseen])
    assert head.scores(unseen, others) == pytest.approx(expected, abs=1e-3)
    for text, vector, closest in zip(unseen, others, nearest, strict=True):
        assert head.score_one(text, vector)[1] == pytest.approx(closest, abs=1e-5)


def test_the_descent_goes_down_to_the_regularised_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    """With enough steps over the full batch, no step lowers the loss any more: the gradient of
    softmax regression, written out here in float64, is zero."""
    texts, labels, vectors = requests(8)
    monkeypatch.setattr(module, "STEPS", 6_000)
    monkeypatch.setattr(module, "L2", 1e-2)
    head = Head.fit(texts, labels, vectors)
    features = rows(terms_of(texts), vectors).astype(np.float64)
    truth = np.array([[name == label for name in head.classes] for label in labels], dtype=float)
    logits = features @ head.weights + head.bias
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    centred = features - features.mean(axis=0)
    gradient = centred.T @ (shares - truth) / len(texts) + 1e-2 * head.weights
    assert np.abs(gradient).max() < 1e-4
    assert np.abs((shares - truth).mean(axis=0)).max() < 1e-3


def test_the_first_step_is_the_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels, vectors = requests(2)
    monkeypatch.setattr(module, "STEPS", 1)
    head = Head.fit(texts, labels, vectors)
    features = rows(terms_of(texts), vectors)
    centred = features - features.mean(axis=0)
    truth = np.array([[name == label for name in head.classes] for label in labels], dtype=float)
    wrong = (1 / 3 - truth) / len(texts)
    weights = -module.RATE * centred.T @ wrong
    bias = -module.RATE * BIAS_RATE * wrong.sum(axis=0) - features.mean(axis=0) @ weights
    assert head.weights == pytest.approx(weights, abs=1e-4)
    assert head.bias == pytest.approx(bias, abs=1e-4)


def test_an_example_of_little_weight_yields_to_one_of_full_weight() -> None:
    texts, labels, vectors = requests(3)
    swapped = [{"bank": "music", "music": "bank"}.get(label, label) for label in labels]
    weights = [1.0] * len(labels) + [0.05] * len(labels)
    head = Head.fit(texts + texts, labels + swapped, np.vstack((vectors, vectors)), weights=weights)
    assert best(head, texts, vectors) == labels


def test_full_weights_are_the_default() -> None:
    texts, labels, vectors = requests(3)
    weighted = Head.fit(texts, labels, vectors, weights=[1.0] * len(texts))
    assert (weighted.weights == Head.fit(texts, labels, vectors).weights).all()


def test_some_wrong_labels_do_not_turn_the_answers() -> None:
    texts, labels, vectors = requests(40)
    noisy = [("bank" if n % 20 == 0 else label) for n, label in enumerate(labels)]
    head = Head.fit(texts, noisy, vectors)
    unseen, truth, others = requests(30, seed=1)
    assert accuracy(best(head, unseen, others), truth) > 0.95


def test_a_request_that_is_like_nothing_known_has_less_energy() -> None:
    head = Head.fit(*requests(10))
    texts, _, vectors = requests(10, seed=1)
    known = energy(head.scores(texts, vectors))
    foreign = energy(head.scores(["quantum llama"], unit(np.eye(16)[8:9])))
    assert foreign[0] < known.min()


def test_energy_is_log_sum_exp_and_does_not_overflow() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [500.0, 500.0, -500.0]], dtype=np.float32)
    expected = [np.log(np.exp([1.0, 2.0, 3.0]).sum()), 500 + np.log(2)]
    assert energy(scores) == pytest.approx(expected, rel=1e-5)


def test_the_newest_examples_are_kept_as_many_of_one_answer_as_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_NEAREST", 4)
    labels = ["a", "b", "a", "a", "b", "a", "a"]
    vectors = unit(np.eye(7, 16) + 1e-3)
    head = Head.fit([""] * 7, labels, vectors)
    assert (head.examples == vectors[[6, 5, 4, 1]]).all()
    assert head.starts.tolist() == [0, 2]


@settings(max_examples=30, deadline=None)
@given(labels=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40), limit=st.integers(1, 9))
def test_every_answer_keeps_an_example_whatever_the_limit(labels: list[str], limit: int) -> None:
    vectors = unit(np.random.default_rng(0).normal(size=(len(labels), 8)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_NEAREST", limit)
        patch.setattr(module, "STEPS", 3)
        head = Head.fit([""] * len(labels), labels, vectors)
    assert len(head.examples) == min(len(labels), max(limit, len(set(labels))))
    assert len(head.starts) == len(head.classes) == len(set(labels))
    known = {name: vectors[[label == name for label in labels]] for name in head.classes}
    ends = [*head.starts[1:].tolist(), len(head.examples)]
    for name, start, end in zip(head.classes, head.starts.tolist(), ends, strict=True):
        assert all((known[name] == kept).all(axis=1).any() for kept in head.examples[start:end])


def test_the_shapes_are_those_of_the_vectors_and_answers() -> None:
    head = Head.fit(*requests(2))
    assert head.weights.shape == (16 + BUCKETS, 3)
    assert head.bias.shape == (3,)
    assert head.scores([], np.zeros((0, 16), dtype=np.float32)).shape == (0, 3)
