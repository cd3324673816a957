"""The latent space of a catalog."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from router.retrieval.documents import SkillDocument
from router.retrieval.latent import DIMENSIONS, MAX_BASIS, SMALL_CATALOG, LatentIndex
from router.retrieval.lexical import LexicalIndex


def lexical_of(*texts: str) -> LexicalIndex:
    """An index of documents whose only field is prose."""
    empty = Counter[str]()
    return LexicalIndex(
        [
            SkillDocument(
                str(number),
                (empty, empty, empty, Counter(text.split()), empty, empty),
                frozenset(),
                "",
                "",
                "",
            )
            for number, text in enumerate(texts)
        ]
    )


def many(size: int) -> list[str]:
    draw = random.Random(3)
    return [" ".join(draw.choices([f"t{n}" for n in range(60)], k=30)) for _ in range(size)]


@pytest.mark.parametrize("size", [0, 1, 2, 3, SMALL_CATALOG, SMALL_CATALOG + 1, 200])
def test_documents_are_unit_vectors(size: int) -> None:
    index = LatentIndex(lexical_of(*many(size)))
    assert len(index.documents) == size
    assert index.documents.shape[1] <= DIMENSIONS
    assert np.linalg.norm(index.documents, axis=1) == pytest.approx(np.ones(size))


@pytest.mark.parametrize("size", [1, 2, 3, 21])
def test_a_document_without_terms_is_like_nothing(size: int) -> None:
    lexical = lexical_of(*many(size - 1), "")
    index = LatentIndex(lexical)
    query = index.query(list(lexical.vocabulary.values())[:3])
    assert index.similarities(query)[-1] == 0


@pytest.mark.parametrize("size", [1, 2, 21])
def test_documents_without_any_terms_are_like_nothing(size: int) -> None:
    index = LatentIndex(lexical_of(*[""] * size))
    assert index.similarities(index.query([])).tolist() == [0] * size


def test_a_query_without_terms_gives_zeros() -> None:
    index = LatentIndex(lexical_of(*many(5)))
    assert not index.query([]).any()
    assert index.similarities(index.query([])).tolist() == [0] * 5


def test_a_term_of_one_document_means_nothing_in_a_large_catalog() -> None:
    lexical = lexical_of(*many(SMALL_CATALOG), "t1 t2 hapax")
    assert not LatentIndex(lexical).query([lexical.vocabulary["hapax"]]).any()


def test_a_term_of_one_document_points_to_it_in_a_small_catalog() -> None:
    lexical = lexical_of(*many(SMALL_CATALOG - 1), "t1 t2 hapax")
    index = LatentIndex(lexical)
    query = index.query([lexical.vocabulary["hapax"]])
    assert int(index.similarities(query).argmax()) == SMALL_CATALOG - 1


@pytest.mark.parametrize("size", [1, 2, 21, 100])
def test_similarities_are_cosines(size: int) -> None:
    lexical = lexical_of(*many(size))
    index = LatentIndex(lexical)
    for term in lexical.vocabulary.values():
        assert np.abs(index.similarities(index.query([term]))).max() <= 1 + 1e-6


def test_words_that_occur_together_stand_for_one_another() -> None:
    draw = random.Random(3)
    topics = [[f"topic{topic}word{word}" for word in range(20)] for topic in range(10)]
    texts = [" ".join(draw.sample(topics[number % 10], 8)) for number in range(300)]
    lexical = lexical_of(*texts)
    index = LatentIndex(lexical)
    word = topics[0][0]
    likeness = index.similarities(index.query([lexical.vocabulary[word]]))
    kindred = [number for number in range(0, 300, 10) if word not in texts[number].split()]
    foreign = [number for number in range(300) if number % 10]
    assert likeness[kindred].mean() > 0.05
    assert np.abs(likeness[foreign]).max() < 1e-3


def test_the_space_is_deterministic() -> None:
    first, second = (LatentIndex(lexical_of(*many(60))) for _ in range(2))
    assert np.array_equal(first.documents, second.documents)


def test_axes_of_a_large_catalog_come_from_a_part_of_it() -> None:
    size = MAX_BASIS + 50
    texts = [f"a{number % 7} b{number % 7} c{number % 5}" for number in range(size)]
    lexical = lexical_of(*texts)
    index = LatentIndex(lexical)
    query = index.query([lexical.vocabulary["a3"], lexical.vocabulary["b3"]])
    nearest = np.argsort(-index.similarities(query))[:100]
    assert {int(number) % 7 for number in nearest} == {3}
