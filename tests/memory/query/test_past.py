"""Questions about what held before."""

from __future__ import annotations

import pytest
from cpu_time import cpu_time_at_most

from router.memory.model import MAX_CONTENT_CHARACTERS
from router.memory.query.past import (
    asks_for_past,
    is_in_past_tense,
    names_only,
    stems_after_before,
    without_past_words,
)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Where did I use to live?", "Where did I live?"),
        ("Where was the shop previously?", "Where was the shop ?"),
        ("our former database", "our former database"),
        ("What did we use before MySQL?", "What did we use MySQL?"),
        ("our old database", "our old database"),
        ("What was our first database?", "What was our first database?"),
        ("Which database we used to have", "Which database we have"),
        (
            "What is the name of the firm where I used to work?",
            "What is the name of the firm where I work?",
        ),
        ("Who is ill? Ada used to be.", "Who is ill? Ada be."),
        ("What were our editors over time?", "What were our editors ?"),
        ("How did our prices change over the years?", "How did our prices change ?"),
    ],
)
def test_words_of_the_past_ask_for_it_and_adverbs_are_no_part_of_the_subject(
    text: str, rest: str
) -> None:
    assert asks_for_past(text)
    assert " ".join(without_past_words(text).split()) == rest


@pytest.mark.parametrize(
    "text",
    [
        "Which database do we use?",
        "What do we use to deploy?",
        "What must I do before the release?",
        "How old is Ada?",
        "Who is older, Ada or Ben?",
        "Who is 30 years old?",
        "What is Redis used to store?",
        "What's Redis used to store?",
        "Which tool is used to deploy?",
        "Which tools can be used to deploy?",
        "Whose turn was first?",
    ],
)
def test_what_holds_or_comes_is_not_the_past(text: str) -> None:
    assert not asks_for_past(text)
    assert without_past_words(text) == text
    assert stems_after_before(text) == frozenset()


def test_what_stands_behind_before_has_followed_the_answer() -> None:
    assert stems_after_before("What did we use before MySQL, and why?") == {"mysql"}
    assert stems_after_before("Where was the office before?") == frozenset()


TO_MYSQL = "We moved from Postgres to MySQL 8"
TO_COCKROACH = "We moved from MySQL to CockroachDB"


@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        ("postgres", TO_MYSQL, TO_COCKROACH),
        ("Do we use Postgres 14?", "Our database is Postgres 14", TO_MYSQL),
        ("When did we move to MySQL?", TO_MYSQL, TO_COCKROACH),
        ("Was Petra our field lead?", "Petra is our field lead", "Joonas is our field lead"),
    ],
)
def test_a_query_names_what_only_one_of_two_texts_contains(
    query: str, one: str, other: str
) -> None:
    assert names_only(query, one, other)
    assert not names_only(query, other, one)


def test_what_a_text_calls_replaced_is_no_name_of_its_own() -> None:
    """Unless the query asks about the change itself."""
    old, new = "CI runs on Jenkins", "Replaced Jenkins by GitHub Actions"
    assert names_only("Did we ever use Jenkins?", old, new)
    assert not names_only("Why did we replace Jenkins?", old, new)
    assert names_only("Have we ever used Postgres?", "Our database is Postgres 14", TO_MYSQL)


@pytest.mark.parametrize("query", ["Which database do we use?", "When did we move?", "mysql"])
def test_other_words_and_names_of_both_texts_name_neither(query: str) -> None:
    assert not names_only(query, "Our MySQL database is new", TO_COCKROACH)


@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        ("When did Ada move?", "Ada lives in Bergen", "She moved to Oslo"),
        ("Where was the Stripe key?", "The Stripe key is in the vault", "The key is in the safe"),
        ("Who was the contact for ACME?", "Contact for ACME is Bob", "The contact is Carla now"),
    ],
)
def test_the_name_of_what_a_text_is_about_is_not_what_was_replaced(
    query: str, one: str, other: str
) -> None:
    assert not names_only(query, one, other)


@pytest.mark.parametrize(
    ("text", "is_past"),
    [
        ("Why did we leave Postgres?", True),
        ("Have we ever used Postgres?", True),
        ("Do we use Postgres?", False),
    ],
)
def test_the_tense_of_a_query(text: str, is_past: bool) -> None:
    assert is_in_past_tense(text) is is_past


def test_names_in_the_longest_content_are_found_in_no_time() -> None:
    with cpu_time_at_most(1):  # where each letter begins a search to the word's end, a minute
        assert not names_only("mysql", "a" * MAX_CONTENT_CHARACTERS, TO_COCKROACH)


def test_only_the_beginning_of_a_long_text_is_read_for_names() -> None:
    """A recall asks for names once for each of some forty updates, and each may be long."""
    long = "Ada1 goes to the 9 market from home. " * 2_600
    assert names_only("Did we use Jenkins?", "We use Jenkins. " + long, "We use Travis. " + long)
    with cpu_time_at_most(1):
        for number in range(40):
            assert not names_only(f"Did we use CI{number}?", long, long + "!")
