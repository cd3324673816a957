"""Queries that name no subject, and bare keywords."""

from __future__ import annotations

import pytest
from memory.remembered import NOW, ask

from router.memory.query.listing import (
    asks_for_kind,
    asks_for_tasks,
    asks_what_happened,
    asks_what_was_in_use,
    asks_when,
    is_keyword,
    names_no_subject,
)
from router.memory.query.rewrite import rewrite


@pytest.mark.parametrize(
    "text",
    [
        "redis timeout",
        "ERR_4711",
        "port 5433",
        "Mittens",
        "Zürich",
        "redis?",
        "What about Redis?",
        "How about the redis timeout?",
        "Tell me more about our siren.",
    ],
)
def test_bare_keywords_are_known(text: str) -> None:
    assert is_keyword(text)


@pytest.mark.parametrize(
    "text",
    [
        "What is JWT?",
        "Who's Ada?",
        "What about it?",
        "What about a?",
        "Redis? Timeout?",
        "where do I live",
        "",
        "one two three four five six",
    ],
)
def test_questions_and_sentences_are_no_keywords(text: str) -> None:
    assert not is_keyword(text)


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("When does my passport expire?", True),
        ("until when is it valid", True),
        ("On which day is the audit?", True),
        ("How long is the guarantee?", True),
        ("What do I do when the heating fails?", False),
        ("Whenever", False),
        ("How much is the rent?", False),
    ],
)
def test_a_query_for_a_time_is_known(text: str, asks: bool) -> None:
    assert asks_when(text) is asks


def test_a_query_for_whatever_there_was_names_no_subject() -> None:
    assert names_no_subject(ask("What did we do last week?"))
    assert names_no_subject(rewrite("What was the last thing we did?", now=NOW))
    assert names_no_subject(ask("What were we doing?"))
    assert names_no_subject(ask("What tasks do I need to work through?"))
    assert not names_no_subject(ask("What did we do about Redis last week?"))


@pytest.mark.parametrize(
    "text",
    [
        "What did I save yesterday?",
        "What took place in May?",
        "Which appointments are there today?",
        "Summarise last month",
    ],
)
def test_where_a_time_is_named_words_for_keeping_and_happening_are_no_subject(text: str) -> None:
    assert names_no_subject(rewrite(text, now=NOW))


def test_without_a_time_they_are_one() -> None:
    assert not names_no_subject(rewrite("What do I save?", now=NOW))


@pytest.mark.parametrize("text", ["How do I get to work?", "When do I finish work?"])
def test_the_work_that_somebody_goes_to_is_a_subject(text: str) -> None:
    assert not names_no_subject(rewrite(text, now=NOW))


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("What have I finished?", True),
        ("What is coming up in December?", True),
        ("What comes up?", True),
        ("What have I done?", False),
        ("What is coming up in the logs?", False),
        ("Where do I come from?", False),
        ("Have I finished the report?", False),
        ("What is planned for December?", True),
        ("What is planned for the warehouse?", False),
        ("What is on my plate?", True),
        ("What am I working on?", True),
        ("What I\u2019m working on", True),
        ("What are we working on right now?", True),
        ("What am I working on at the moment?", True),
        ("Am I working on the right task?", False),
        ("What is in progress?", True),
        ("What should I work on today?", True),
        ("What should we do about Redis?", False),
        ("What is blocked?", True),
        ("What is done?", True),
        ("What isn\u2019t done yet?", True),
        ("How is it done?", False),
        ("What are we still waiting for?", True),
        ("Which tasks are waiting?", True),
        ("What are our customers waiting for?", False),
        ("Who is on the waiting list?", False),
        ("What were we working on last week?", False),
        ("When do I finish work?", False),
    ],
)
def test_a_query_for_tasks_of_any_kind_is_known(text: str, asks: bool) -> None:
    assert asks_for_tasks(rewrite(text, now=NOW)) is asks


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("29 April to 5 May", True),
        ("29 April - 5 May?", True),
        ("3 May", True),
        ("What is done today?", True),
        ("what's already done this week", True),
        ("Catch me up on 3 May", True),
        ("What about 3 May?", True),
        ("What about the release of 3 May?", False),
        ("What is not done today?", False),
        ("What should be done today?", False),
        ("What must I do today?", False),
        ("tomorrow", False),
        ("the release of 3 May", False),
        ("What is done?", False),
    ],
)
def test_a_query_for_whatever_happened_in_a_time_is_known(text: str, asks: bool) -> None:
    assert asks_what_happened(rewrite(text, now=NOW)) is asks


@pytest.mark.parametrize(
    ("text", "layer"),
    [
        ("What are our conventions?", "project"),
        ("What are the project's rules?", "governance"),
        ("user preferences", "user"),
        ("What do you know about me?", "user"),
        ("Tell me about the user.", "user"),
        ("Who am I?", "user"),
        ("What's the plan?", "planning"),
        ("What are the rules of chess?", None),
        ("What have we decided about Redis?", None),
        ("What did we decide last week?", None),
        ("What is planned?", None),
        ("What are our goals and rules?", None),
        ("Which goals, rules and preferences are there?", None),
        ("What do you know?", None),
        ("What is it?", None),
    ],
)
def test_a_query_for_a_kind_of_memory_names_its_layer(text: str, layer: str | None) -> None:
    assert asks_for_kind(rewrite(text, now=NOW)) == layer


@pytest.mark.parametrize(
    "text", ["What's next?", "What\u2019s next?", "What is next?", "What's due soon?"]
)
def test_what_is_next_is_a_task(text: str) -> None:
    assert asks_for_tasks(rewrite(text, now=NOW))


def test_a_query_for_whatever_was_in_use_then_is_known() -> None:
    assert asks_what_was_in_use(ask("What did we use in January?"))
    assert not asks_what_was_in_use(ask("Which database did we use in January?"))
    assert not asks_what_was_in_use(ask("What do we use?"))
    assert not asks_what_was_in_use(ask("What did we do in January?"))
