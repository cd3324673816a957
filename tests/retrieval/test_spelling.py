"""Misspelt words of a request."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from index_edits import edit_between

from router.retrieval.documents import SkillDocument
from router.retrieval.spelling import SMALL_CATALOG, SpellingIndex


def index_of(*documents: str) -> SpellingIndex:
    """An index of documents with these words."""
    return SpellingIndex().edited(
        edit_between(
            [],
            [SkillDocument("", (), frozenset(t.split()), (), b"", "", "", "") for t in documents],
        )
    )


KNOWN = st.text(string.ascii_lowercase, min_size=6, max_size=12)


@given(KNOWN, st.data())
def test_one_edit_behind_the_first_letter_is_found(word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(word) - 2))
    letter = data.draw(st.sampled_from(string.ascii_lowercase))
    rest = word[place + 1 :]
    misspelt = data.draw(
        st.sampled_from(
            [
                word[:place] + rest,
                word[:place] + letter + rest,
                word[:place] + letter + word[place:],
                word[:place] + word[place + 1] + word[place] + word[place + 2 :],
            ]
        )
    )
    assume(misspelt != word)
    assert index_of(word).correct(misspelt) == word


@given(KNOWN, st.text(string.ascii_lowercase, min_size=1, max_size=1))
def test_another_first_letter_is_another_word(word: str, letter: str) -> None:
    assume(letter != word[0])
    assert index_of(word).correct(letter + word[1:]) is None
    assume(letter + word != word + word[-1])  # then the letter may as well stand at the end
    assert index_of(word).correct(letter + word) is None


@given(st.lists(KNOWN, min_size=1, max_size=20))
def test_a_known_word_is_left_alone(known: list[str]) -> None:
    index = index_of(" ".join(known))
    assert [index.correct(word) for word in known] == [None] * len(known)


@pytest.mark.parametrize(
    "word", ["", "tst", "test", "v1rtual", "c++", "deploymentsss", "kubernets2"]
)
def test_short_words_numbers_and_what_is_like_no_other_stay(word: str) -> None:
    assert index_of("tests virtual deployment kubernetes").correct(word) is None


def test_two_edits_are_too_many() -> None:
    assert index_of("deployment").correct("deplyomnet") is None


def test_the_more_frequent_word_is_meant() -> None:
    assert index_of("parser parsed", "parsed", "parser", "parsed").correct("parsek") == "parsed"


def test_a_tie_has_one_outcome_whatever_the_order() -> None:
    words = ["parser", "parses", "parsed"]
    orders = [" ".join(words), " ".join(reversed(words))]
    assert [index_of(order).correct("parsek") for order in orders] == ["parses", "parses"]
    assert index_of(*words).correct("parsek") == index_of(*reversed(words)).correct("parsek")


def test_a_word_of_one_skill_corrects_nothing_in_a_large_catalog() -> None:
    others = [f"word{number}" for number in range(SMALL_CATALOG)]
    assert index_of("deployment", *others).correct("deplyoment") is None
    assert index_of("deployment", "deployment", *others).correct("deplyoment") == "deployment"


def test_an_empty_catalog_corrects_nothing() -> None:
    assert index_of().correct("deplyoment") is None


WORDS = st.text("abc", min_size=4, max_size=6)


@given(
    st.lists(
        st.lists(st.frozensets(WORDS, max_size=4), max_size=SMALL_CATALOG + 2),
        min_size=2,
        max_size=4,
    ),
    st.lists(WORDS.map(lambda word: word + "a"), max_size=5),
)
def test_an_index_that_follows_others_corrects_like_one_made_from_nothing(
    history: list[list[frozenset[str]]], asked: list[str]
) -> None:
    index = SpellingIndex()
    before: list[SkillDocument] = []
    made: dict[frozenset[str], SkillDocument] = {}
    for catalog in history:
        # One object for equal words: a document that did not change.
        documents = [
            made.setdefault(words, SkillDocument("", (), words, (), b"", "", "", ""))
            for words in dict.fromkeys(catalog)
        ]
        index, before = index.edited(edit_between(before, documents)), documents
        anew = SpellingIndex().edited(edit_between([], documents))
        for word in (*asked, *(word[:-1] + "b" for word in asked)):
            assert index.correct(word) == anew.correct(word)
