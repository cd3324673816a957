"""Splitting a request into clauses."""

from __future__ import annotations

from collections import Counter

import pytest
from cpu_time import cpu_time_at_most
from hypothesis import given
from hypothesis import strategies as st

from router.request import MAX_REQUEST_CHARACTERS
from router.retrieval.clauses import MAX_READ_CHARACTERS, clauses, readable
from router.text import words

CONNECTIVES = {"plus", "afterwards"}
"""What clauses may be split at, of the words that are no stop words."""

WORDS = st.sampled_from("fix the bug commit it C++ and then plus also don't 3.5 a/b 語".split())
GAPS = st.sampled_from([" ", ", ", "; ", ". ", "? ", "\n", "\n\n", " - ", ", and ", "\t", ","])
REQUESTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.tuples(WORDS, GAPS)).map(lambda pairs: "".join(map("".join, pairs))),
)


def content(texts: list[str]) -> Counter[str]:
    return Counter(word for text in texts for word in words(text) if word not in CONNECTIVES)


@given(REQUESTS)
def test_no_content_word_is_lost_or_made_up(request: str) -> None:
    assert content(clauses(request)) == content([request])


@given(REQUESTS)
def test_there_is_a_clause_and_each_of_several_has_two_content_words(request: str) -> None:
    parts = clauses(request)
    assert parts
    if len(parts) > 1:
        assert min(len(words(part)) for part in parts) >= 2


@pytest.mark.parametrize(
    "request_",
    [
        "review the parser and then commit the fix",
        "review the parser, commit the fix",
        "review the parser. commit the fix",
        "review the parser; commit the fix",
        "review the parser\ncommit the fix",
        "review the parser - commit the fix",
        "review the parser plus commit the fix",
    ],
)
def test_a_request_for_two_things_has_two_clauses(request_: str) -> None:
    first, second = clauses(request_)
    assert (words(first), words(second)) == (["review", "parser"], ["commit", "fix"])


@pytest.mark.parametrize(
    "request_", ["search and replace", "open config.yaml, please", "well-known"]
)
def test_a_part_that_says_nothing_by_itself_stays_with_its_neighbour(request_: str) -> None:
    assert len(clauses(request_)) == 1


def test_an_empty_request_is_its_own_clause() -> None:
    assert clauses("") == [""]


@pytest.mark.parametrize("filler", [" ", "\n", "\t", ", ", " - ", " and", ". "])
def test_the_longest_requests_are_split_in_no_time(filler: str) -> None:
    with cpu_time_at_most(1):  # with backtracking it takes minutes
        clauses("x" + filler * ((MAX_REQUEST_CHARACTERS - 2) // len(filler)) + "y")


def test_of_a_long_request_the_beginning_and_the_end_are_read() -> None:
    request = "commit this log\n" + "x" * MAX_READ_CHARACTERS + "\nand push it"

    read = readable(request)

    assert read.startswith("commit this log")
    assert read.endswith("and push it")
    assert len(read) <= MAX_READ_CHARACTERS + 1
    assert readable("commit this") == "commit this"
