"""The latent space of a catalog."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from router.retrieval.documents import SkillDocument
from router.retrieval.latent import (
    DIMENSIONS,
    FOLDED_SHARE,
    MAX_BASIS,
    SMALL_CATALOG,
    LatentIndex,
)
from router.retrieval.lexical import LexicalIndex


def document(name: str, text: str) -> SkillDocument:
    """One whose only field is prose."""
    empty = Counter[str]()
    bags = (empty, empty, empty, Counter(text.split()), empty, empty)
    return SkillDocument(name, bags, frozenset(), "", "", "")


def lexical_of(*texts: str) -> LexicalIndex:
    return LexicalIndex([document(str(number), text) for number, text in enumerate(texts)])


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


def test_a_query_that_is_not_finite_is_an_error_and_no_ranking() -> None:
    index = LatentIndex(lexical_of(*many(21)))
    query = index.query([])
    with pytest.raises(FloatingPointError):
        index.similarities(np.full_like(query, np.nan))


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


# --- from one catalog to the next

CATALOG = {f"{number:03}": document(f"{number:03}", text) for number, text in enumerate(many(100))}
FEW = int(FOLDED_SHARE * len(CATALOG))


def index_of(
    documents: dict[str, SkillDocument], *, before: LatentIndex | None = None
) -> LatentIndex:
    lexical = LexicalIndex([documents[name] for name in sorted(documents)])
    return LatentIndex(lexical, space=None if before is None else before.space)


def edited(*names: str) -> dict[str, SkillDocument]:
    """The catalog in which these documents say something else."""
    return CATALOG | {name: document(name, "t7 t8 t9 unheard") for name in names}


def test_a_few_documents_that_differ_are_folded_into_the_axes_of_the_others() -> None:
    before = index_of(CATALOG)
    after = index_of(edited("003", "050"), before=before)
    assert after.space is before.space
    assert after.folded == {"003", "050"}
    others = [number for number in range(100) if number not in (3, 50)]
    assert np.array_equal(after.documents[others], before.documents[others])
    assert after.documents[3] == pytest.approx(after.documents[50])
    lexical = LexicalIndex(list(edited("003", "050").values()))
    query = after.query([lexical.vocabulary[term] for term in ("t7", "t8", "t9")])
    assert set(np.argsort(-after.similarities(query))[:2].tolist()) == {3, 50}


def test_a_document_that_is_folded_in_lies_where_it_lay_when_the_axes_were_made() -> None:
    before = index_of(CATALOG)
    same = document("003", many(100)[3])
    after = index_of(CATALOG | {"003": same}, before=before)
    assert after.folded == {"003"}
    assert after.documents == pytest.approx(before.documents, abs=1e-5)


def test_documents_that_come_and_go_shift_the_others_and_move_none() -> None:
    before = index_of(CATALOG)
    later = {name: held for name, held in CATALOG.items() if name != "000"}
    after = index_of(later | {"0005": document("0005", "t1 t2")}, before=before)
    assert after.folded == {"000", "0005"}
    assert np.array_equal(after.documents[1:], before.documents[1:])


def test_what_is_folded_in_does_not_depend_on_the_edits_in_between() -> None:
    before = index_of(CATALOG)
    by_way_of = index_of(edited("001", "002"), before=before)
    last = edited("003")
    direct, indirect = index_of(last, before=before), index_of(last, before=by_way_of)
    assert direct.folded == indirect.folded == {"003"}
    assert np.array_equal(direct.documents, indirect.documents)


def test_an_edit_that_is_taken_back_leaves_nothing_folded_in() -> None:
    before = index_of(CATALOG)
    after = index_of(CATALOG, before=index_of(edited("003"), before=before))
    assert after.folded == frozenset()
    assert np.array_equal(after.documents, before.documents)


def test_more_than_a_few_that_differ_have_axes_of_their_own() -> None:
    before = index_of(CATALOG)
    few, more = (edited(*sorted(CATALOG)[:count]) for count in (FEW, FEW + 1))
    assert len(index_of(few, before=before).folded) == FEW
    after, anew = index_of(more, before=before), index_of(more)
    assert after.folded == frozenset()
    assert np.array_equal(after.documents, anew.documents)


def test_in_a_small_catalog_nothing_is_folded_in() -> None:
    small = {name: CATALOG[name] for name in sorted(CATALOG)[:SMALL_CATALOG]}
    after = index_of(small | {"003": document("003", "t1 t2")}, before=index_of(small))
    assert after.folded == frozenset()
