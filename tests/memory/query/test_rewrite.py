"""A query as the layers read it: terms and time."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory.remembered import NOW

from router.errors import InvalidRequest
from router.memory.query.rewrite import rewrite
from router.text import STOPWORDS


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("What did we decide about the payment module?", ("decide", "payment", "module")),
        ("What broke in the importer last week?", ("broke", "importer")),
        ("Which bugs did we fix in March?", ("bugs", "fix")),
        ("Which bugs did we fix yesterday in the parser?", ("bugs", "fix", "parser")),
        ("the elastic index", ("elastic", "index")),
        ("What did we do?", ()),
        ("Wer hat das Budget freigegeben?", ("wer", "hat", "das", "budget", "freigegeben")),
    ],
)
def test_terms_are_the_words_about_the_matter_and_not_about_the_time(
    text: str, terms: tuple[str, ...]
) -> None:
    assert rewrite(text, now=NOW).terms == terms


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Catch me up on the migration", "the migration"),
        ("Bring us up to speed about billing, please", "billing, please"),
        ("Can you update me on Redis?", "Can you Redis?"),
        ("Give me a quick summary of the audit", "the audit"),
        ("Update the README", "Update the README"),
        ("How do I get up to the roof?", "How do I get up to the roof?"),
        ("What does it take to catch up with Ada?", "What does it take to catch up with Ada?"),
    ],
)
def test_words_that_ask_for_a_report_are_no_part_of_the_subject(text: str, subject: str) -> None:
    assert " ".join(rewrite(text, now=NOW).subject.split()) == subject


@pytest.mark.parametrize("text", ["", " \n", "a\x00b", "\ud800", "x" * 2_001])
def test_what_is_no_query_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="query"):
        rewrite(text, now=NOW)


def test_a_now_without_a_time_zone_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="time zone"):
        rewrite("yesterday", now=datetime(2024, 5, 15, 12))


@settings(max_examples=200)
@given(
    st.text(
        st.one_of(st.characters(exclude_categories=["Cs", "Cc"]), st.sampled_from("aB_./'\"`@# ")),
        min_size=1,
        max_size=300,
    ).filter(lambda text: not text.isspace())
)
def test_any_text_gives_terms_without_stop_words(text: str) -> None:
    asked = rewrite(text, now=NOW)
    assert asked.text == text
    assert STOPWORDS.isdisjoint(asked.terms)
