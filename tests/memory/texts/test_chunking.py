"""Chunks: bounded, complete, and under the headings that they stood under."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.memory.texts.chunking import Section, sections, split


def test_text_is_filed_under_its_headings() -> None:
    text = "intro\n# Guide\nwhat it is\n## Set up\nrun it\n## Use\ncall it\n# Notes\nmore"
    assert list(sections(text)) == [
        Section((), "intro"),
        Section(("Guide",), "what it is"),
        Section(("Guide", "Set up"), "run it"),
        Section(("Guide", "Use"), "call it"),
        Section(("Notes",), "more"),
    ]


def test_a_comment_in_a_fence_is_no_heading() -> None:
    text = (
        "# Run\n```sh\n# not a title\nmake\n```\nafter\n~~~\n# nor this\n```\n# or this\n~~~\nend"
    )
    assert [section.headings for section in sections(text)] == [("Run",)]


def test_a_fence_that_is_never_closed_holds_the_rest() -> None:
    assert [s.headings for s in sections("# A\n```\n# B\ntext")] == [("A",)]


def test_a_heading_without_text_gives_no_chunk() -> None:
    assert list(sections("# A\n\n# B\ntext")) == [Section(("B",), "text")]


def test_a_long_text_is_cut_between_paragraphs_first() -> None:
    assert split("one two\n\nthree four\n\nfive", limit=20) == ["one two\n\nthree four", "five"]


def test_then_between_sentences_and_words() -> None:
    assert split("One two. Three four five.", limit=12) == ["One two.", "Three four", "five."]


def test_a_word_that_is_too_long_is_cut_as_a_last_resort() -> None:
    assert split("a abcdefgh b", limit=3) == ["a", "abc", "def", "gh", "b"]


@given(st.text(alphabet="ab .\n#`~\u3002", max_size=200), st.integers(1, 40))
def test_pieces_are_bounded_and_lose_nothing_but_white_space(text: str, limit: int) -> None:
    pieces = split(text, limit=limit)
    assert all(0 < len(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@given(st.text(max_size=300))
def test_any_text_has_sections(text: str) -> None:
    assert all(section.text for section in sections(text))
