"""What a text is taken to be about."""

from __future__ import annotations

import pytest

from router.memory.texts.words import content_words


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
