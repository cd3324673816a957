"""Hidden characters: found wherever they stand, left alone where scripts and emoji need them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.skills.diagnostics import Diagnostic, Severity

Lint = Callable[..., list[Diagnostic]]

WHAT = "Turns meeting recordings into minutes with owners and dates. Use when a call"
HIDDEN = {
    "zero width space": "\u200b",
    "word joiner": "\u2060",
    "joiner between Latin letters": "\u200d",
    "left-to-right mark in Latin text": "\u200e",
    "right-to-left override": "\u202e",
    "isolate": "\u2067",
    "Hangul filler": "\u3164",
    "tag": "\U000e0041",
    "variation selector that carries a byte": "\U000e0110",
    "private use": "\ue000",
}


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN)
def test_a_hidden_character_in_a_description_is_an_error_with_its_place(
    lint: Lint, character: str
) -> None:
    [finding] = lint(f"{WHAT} was{character} recorded.")
    assert (finding.code, finding.severity) == ("hidden-character", Severity.ERROR)
    assert finding.line == 3
    column = len(f"description: {WHAT} was") + 1
    assert f"U+{ord(character):04X}" in finding.message
    assert f"from column {column} on" in finding.message


@pytest.mark.parametrize(
    "text",
    [
        "family \U0001f468\u200d\U0001f469\u200d\U0001f467",
        "heart \u2764\ufe0f\u200d\U0001f525",
        "keycap 1\ufe0f\u20e3",
        "flag \U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
        "Persian \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "Devanagari \u0915\u094d\u200d\u0937",
        "Hebrew \u05e9\u05dc\u05d5\u05dd\u200f!",
        "ideograph \u845b\U000e0100",
    ],
)
def test_what_scripts_and_emoji_need_is_no_finding(lint: Lint, text: str) -> None:
    assert lint(f"{WHAT} was recorded: {text}", body=text) == []


def test_a_hidden_character_written_as_an_escape_is_found(lint: Lint) -> None:
    [finding] = lint(f'"{WHAT} was\\u202e recorded."')
    assert (finding.code, finding.line) == ("hidden-character", 3)
    assert "escape" in finding.message


def test_a_hidden_character_in_an_example_is_reported_at_the_line_of_the_example(
    lint: Lint,
) -> None:
    hints = "  examples: |\n    minutes of Monday please\n    minutes of\u200b Tuesday\n"
    [finding] = lint(hints=hints)
    assert (finding.code, finding.line) == ("hidden-character", 7)
    assert finding.message.startswith("metadata.examples")


def test_in_the_body_an_accident_warns_and_a_deception_is_an_error(lint: Lint) -> None:
    found = lint(body="# Steps\n\nfirst\u200b step\nsecond \u202e step")
    assert [(f.code, f.line, f.severity) for f in found] == [
        ("hidden-character-in-body", 8, Severity.WARNING),
        ("hidden-character", 9, Severity.ERROR),
    ]


def test_the_same_character_is_reported_once_a_line_with_its_count(lint: Lint) -> None:
    [finding] = lint(body="a\u200bb\u200bc\u200bd")
    assert "3 times" in finding.message


def test_a_file_full_of_hidden_characters_gives_a_bounded_report(lint: Lint) -> None:
    found = lint(body="a\u200b\n" * 5_000)
    assert len(found) == 101
    assert found[-1].code == "more-findings"


@settings(max_examples=100)
@given(st.text(st.characters(max_codepoint=0x24F, exclude_categories=("C", "Z")), max_size=30))
def test_visible_latin_text_is_never_hidden(lint: Lint, text: str) -> None:
    assert not [f for f in lint(body=f"x {text}") if f.code.startswith("hidden")]
