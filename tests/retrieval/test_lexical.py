"""BM25F against a plain computation of its formula."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_edits import edit_between

from router.retrieval.documents import FIELDS, SkillDocument
from router.retrieval.lexical import (
    FIELD_B,
    FIELD_WEIGHT,
    IDF_POWER,
    K1,
    MAX_UNUSED_TERMS,
    MEAN_STEP,
    MIN_LENGTH_NORM,
    LexicalIndex,
)

Bags: TypeAlias = tuple[Counter[str], ...]

TERMS = [f"t{number}" for number in range(8)]
BAGS = st.dictionaries(st.sampled_from(TERMS), st.integers(1, 30), max_size=5).map(Counter)
CORPORA = st.lists(st.tuples(*[BAGS] * len(FIELDS)), max_size=7)


def index_of(corpus: list[Bags]) -> LexicalIndex:
    documents = [
        SkillDocument(str(number), bags, frozenset(), (), b"", "", "", "")
        for number, bags in enumerate(corpus)
    ]
    return LexicalIndex().edited(edit_between([], documents))


def bm25f(corpus: list[Bags], query: list[str], document: int) -> float:
    """The formula of the paper, term by term, with the constants of the module."""
    total = 0.0
    for term in query:
        holders = sum(any(term in bag for bag in bags) for bags in corpus)
        if holders == 0:
            continue
        frequency = 0.0
        for field, name in enumerate(FIELDS):
            lengths = [sum(bags[field].values()) for bags in corpus]
            having = [length for length in lengths if length > 0]
            mean = max(sum(having) / len(having), 1.0) if having else 1.0
            mean = MEAN_STEP ** round(math.log(mean, MEAN_STEP))
            norm = 1 - FIELD_B[name] + FIELD_B[name] * lengths[document] / mean
            count = corpus[document][field][term]
            frequency += FIELD_WEIGHT[name] * count / max(norm, MIN_LENGTH_NORM)
        idf = math.log(1 + (len(corpus) - holders + 0.5) / (holders + 0.5))
        damped = (idf / math.log(1 + (len(corpus) + 0.5) / 0.5)) ** IDF_POWER
        total += damped * frequency / (frequency + K1)
    return total


def numbers(index: LexicalIndex, query: list[str]) -> list[int]:
    return [number for number in index.numbers(query) if number is not None]


@settings(max_examples=60)
@given(CORPORA, st.lists(st.sampled_from([*TERMS, "unknown"]), unique=True))
def test_scores_are_those_of_the_formula(corpus: list[Bags], query: list[str]) -> None:
    index = index_of(corpus)
    expected = [bm25f(corpus, query, document) for document in range(len(corpus))]
    assert index.postings(numbers(index, query)).scores().tolist() == pytest.approx(expected)


@settings(max_examples=40)
@given(CORPORA, st.lists(st.sampled_from(TERMS), unique=True))
def test_contributions_sum_to_the_scores(corpus: list[Bags], query: list[str]) -> None:
    index = index_of(corpus)
    terms = numbers(index, query)
    everyone = np.arange(len(corpus))[::-1]
    postings = index.postings(terms)
    table = postings.contributions(everyone)
    assert table.shape == (len(terms), len(corpus))
    assert table.sum(axis=0) == pytest.approx(postings.scores()[everyone])


@settings(max_examples=40)
@given(CORPORA)
def test_idf_and_saturation_lie_between_zero_and_one(corpus: list[Bags]) -> None:
    index = index_of(corpus)
    for values in (index.idf, index.saturated):
        assert np.all((values > 0) & (values < 1))


def test_a_rare_term_of_many_documents_comes_near_the_largest_idf() -> None:
    empty = Counter[str]()
    first = (Counter(rare=10_000), *[empty] * (len(FIELDS) - 1))
    index = index_of([first, *[(Counter(common=10_000), *[empty] * (len(FIELDS) - 1))] * 999])
    rare, common = numbers(index, ["rare", "common"])
    assert index.idf[rare] > 0.84
    assert index.idf[common] < 0.001
    # Saturation is complete, so the score is the damped IDF.
    assert index.postings([rare]).scores()[0] == pytest.approx(
        index.idf[rare] ** IDF_POWER, rel=1e-3
    )


@settings(max_examples=40)
@given(CORPORA)
def test_the_postings_of_a_term_are_one_for_each_of_its_documents(corpus: list[Bags]) -> None:
    index = index_of(corpus)
    for term in TERMS:
        for number in numbers(index, [term]):
            holders = index.document[index.start[number] : index.start[number + 1]]
            assert len(set(holders.tolist())) == len(holders)
            assert len(holders) == sum(any(term in bag for bag in bags) for bags in corpus)


def test_no_terms_score_nothing() -> None:
    assert index_of([(Counter(a=1),) * len(FIELDS)] * 3).postings([]).scores().tolist() == [0, 0, 0]


def test_an_index_of_nothing_is_empty() -> None:
    index = index_of([])
    assert (index.size, len(index.document), index.postings([]).scores().shape) == (0, 0, (0,))


HISTORIES = st.lists(
    st.dictionaries(st.sampled_from("abcdef"), st.tuples(*[BAGS] * len(FIELDS)), max_size=6),
    min_size=2,
    max_size=6,
)


@settings(max_examples=100)
@given(HISTORIES, st.lists(st.booleans(), min_size=6, max_size=6))
def test_an_index_that_follows_others_is_the_one_made_from_nothing(
    history: list[dict[str, Bags]], unseen: list[bool]
) -> None:
    index = LexicalIndex()
    documents: dict[str, SkillDocument] = {}
    before: list[SkillDocument] = []
    for number, corpus in enumerate(history):
        documents = {
            name: held
            if (held := documents.get(name)) is not None and held.fields == bags
            else SkillDocument(name, bags, frozenset(), (), b"", "", "", "")
            for name, bags in sorted(corpus.items())
        }
        after = list(documents.values())
        more = unseen[number] and number + 1 < len(history)
        index = index.edited(replace(edit_between(before, after), more=more))
        before = after
        if more:  # nobody looks into it
            continue
        anew = LexicalIndex().edited(edit_between([], after))
        for term in TERMS:
            mine, expected = numbers(index, [term]), numbers(anew, [term])
            assert index.idf[mine].tolist() == anew.idf[expected].tolist()
            scores = index.postings(mine).scores()
            assert scores.tolist() == anew.postings(expected).scores().tolist()


def test_numbers_of_terms_that_nobody_has_any_more_are_given_back() -> None:
    index = LexicalIndex()
    before: list[SkillDocument] = []
    for number in range(100):
        bags = (Counter({f"word{number}": 1}), *[Counter[str]()] * (len(FIELDS) - 1))
        after = [SkillDocument("a", bags, frozenset(), (), b"", "", "", "")]
        index, before = index.edited(edit_between(before, after)), after
        assert len(numbers(index, [f"word{number}", f"word{number - 1}"])) == 1
        assert len(index.idf) <= MAX_UNUSED_TERMS + 1
