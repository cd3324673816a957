"""Queries about "the user", as the user would ask them."""

from __future__ import annotations

import pytest

from router.memory.query.rewrite import in_first_person


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("Where does the user live?", "Where does I live?"),
        ("What are the user's allergies?", "What are my allergies?"),
        ("user's name", "my name"),
        ("What is user\u2019s name?", "What is my name?"),
        ("How long does a user's session last?", "How long does a user's session last?"),
        ("Who sees every user's data?", "Who sees every user's data?"),
        ("Why can't the user eat nuts?", "Why can't I eat nuts?"),
        ("Who is the boss of the user?", "Who is the boss of me?"),
        ("Which columns has the user table?", "Which columns has the user table?"),
        ("How do users log in?", "How do users log in?"),
        ("Where do I live?", "Where do I live?"),
    ],
)
def test_who_asks_about_the_user_asks_about_themselves(text: str, own: str) -> None:
    assert in_first_person(text) == own
