"""Letters of one script that pose as letters of another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from router.skills.diagnostics import Diagnostic, Severity

Lint = Callable[..., list[Diagnostic]]

WHAT = "Turns meeting recordings into minutes with owners and dates. Use when a call was recorded."


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Works with g\u0456t history.", "U+0456"),
        ("Reads \u0421SV files.", "U+0421"),
        ("\u0421\u0421\u0421 reports.", "U+0421"),
        ("Makes \u039fffice documents.", "U+039F"),
        ("Handles aud\u03b9o.", "U+03B9"),
    ],
)
def test_a_letter_that_poses_as_latin_is_an_error(lint: Lint, text: str, letter: str) -> None:
    [finding] = lint(f"{WHAT} {text}")
    assert (finding.code, finding.severity) == ("mixed-script", Severity.ERROR)
    assert letter in finding.message
    assert finding.line == 3


@pytest.mark.parametrize(
    "text",
    [
        "Measures in \u03bcm and \u0394t.",
        "Reads TNF\u03b1 levels.",
        "Also said: \u043a\u043e\u0442 \u0438 \u0441\u043e\u043d.",  # words of a foreign language
        "Also for PDF\u044b and JSON\u0430.",  # Russian endings
        "Caf\u00e9 na\u00efve \u00fcber.",
        "\u65e5\u672c\u8a9e OK.",
    ],
)
def test_scripts_that_stand_side_by_side_honestly_are_no_finding(lint: Lint, text: str) -> None:
    assert lint(f"{WHAT} {text}") == []


def test_a_hint_is_looked_at_too(lint: Lint) -> None:
    [finding] = lint(hints='  routing-keywords: "minutes, c\u0430ll"\n')
    assert (finding.code, finding.line) == ("mixed-script", 5)
