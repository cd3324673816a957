"""What a query shows of itself: words, their classes, grammar, and a second question."""

from __future__ import annotations

import pytest

from router.memory.query.cues import cues


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("It depends on you", "depend"),
        ("It depends on you", "<relation>"),
        ("What depends on it?", "what <relation>"),
        ("Who approved it?", "who+approv"),
        ("Did you see it?", "(you) (do)"),
        ("We shipped it", "(past)"),
        ("Open file 7", "_ #"),
    ],
)
def test_a_query_shows_its_words_their_classes_and_its_grammar(text: str, cue: str) -> None:
    assert cue in cues(text)


@pytest.mark.parametrize(
    ("text", "cue"),
    [
        ("elastic search", "last"),
        ("what causes it", "use"),
        ("update it", "date"),
        ("the plane left", "<plan>"),
        ("replant the tree", "<plan>"),
    ],
)
def test_a_part_of_a_word_is_no_cue(text: str, cue: str) -> None:
    assert cue not in cues(text)


def test_a_cue_knows_the_words_that_it_stands_for() -> None:
    assert cues("What depends on it?")["what+depend"] == "what depends"
