"""What a text is taken to be about."""

from __future__ import annotations

import pytest

from router.memory.texts.words import content_words, qualified_in


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What must I do before I open a pull request?", ["open", "pull", "request"]),
        ("Remind me of the redis timeout", ["redis", "timeout"]),
        ("Summarize what you know about checkout", ["checkout"]),
        ("Who knows?", ["knows"]),
        ("What is it?", ["what", "is", "it"]),
    ],
)
def test_words_of_asking_are_content_only_where_there_is_no_other(
    text: str, words: list[str]
) -> None:
    assert content_words(text) == words


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Our home wifi passwords", {("wifi", "home"), ("password", "wifi")}),
        ("The home, wifi and password", set()),
        ("The new wifi has several users", set()),
        ("Home-wifi in 2 rooms", set()),
        ("LTO-8 tapes, E52 faults", {("tape", "8"), ("fault", "e52")}),
        ("\u65e5\u672c\u8a9e", set()),
    ],
)
def test_a_word_directly_before_another_says_which_one(
    text: str, pairs: set[tuple[str, str]]
) -> None:
    assert qualified_in(text) == pairs
