"""Rules on how a skill is worded."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from router.skills.diagnostics import Diagnostic

Lint = Callable[..., list[Diagnostic]]


def codes(findings: list[Diagnostic]) -> list[str]:
    return [finding.code for finding in findings]


def test_a_described_skill_has_no_findings(lint: Lint) -> None:
    assert lint() == []


@pytest.mark.parametrize(
    "when",
    [
        "Use when a call was recorded.",
        "Use this skill whenever a recording turns up.",
        "Use for recorded calls.",
        "Use between two calls.",
        "Use before sending minutes to a client.",
        "This skill should be used when working with recordings.",
        "If the user shares a recording, start here.",
        "Triggers on audio files of calls.",
        "Ideal for weekly team calls.",
        "Run after /record.",
        "Reads WAV and MP3, for teams that record.",
    ],
)
def test_a_description_may_say_in_many_ways_when_it_is_meant(lint: Lint, when: str) -> None:
    assert lint(f"Turns meeting recordings into minutes with owners and dates. {when}") == []


@pytest.mark.parametrize(
    "description",
    [
        "Turns meeting recordings into minutes with owners, dates and open questions.",
        "Extract text from PDFs, fill forms, and merge documents",
        "Toolkit of recordings. Only regenerates minutes if quality is below the threshold.",
    ],
)
def test_a_description_that_only_says_what_is_reported(lint: Lint, description: str) -> None:
    [finding] = lint(description)
    assert (finding.code, finding.line) == ("no-when", 3)
    assert "Use when" in finding.message


def test_a_description_in_another_language_is_not_judged_by_english_cues(lint: Lint) -> None:
    assert lint("Wandelt die Aufnahmen von Besprechungen in ein Protokoll mit Terminen um.") == []


def test_a_description_of_a_few_words_is_too_short(lint: Lint) -> None:
    assert codes(lint("Use when pushing code.")) == ["short-description"]


def test_a_skill_that_is_never_offered_is_not_judged_by_its_description(lint: Lint) -> None:
    assert lint("Push.\ndisable-model-invocation: true") == []


def test_a_long_list_of_keywords_is_stuffing(lint: Lint) -> None:
    listed = ", ".join(f"topic{n} calls{n}" for n in range(17))
    [finding] = lint(f"Use when the user asks about {listed}.")
    assert finding.code == "keyword-stuffing"
    assert "16 short items" in finding.message


def test_a_word_said_over_and_over_is_stuffing(lint: Lint) -> None:
    findings = lint("Use for minutes. " + "Minutes minutes taking minutes. " * 4)
    assert "keyword-stuffing" in codes(findings)


def test_too_many_routing_keywords_are_reported_at_their_line(lint: Lint) -> None:
    keywords = ", ".join(f"word{n}" for n in range(41))
    [finding] = lint(hints=f'  version: "1"\n  routing-keywords: "{keywords}"\n')
    assert (finding.code, finding.line) == ("keyword-stuffing", 6)


def test_a_body_of_500_lines_is_long_enough(lint: Lint) -> None:
    assert lint(body="\n".join(["x"] * 500)) == []
    [finding] = lint(body="\n".join(["x"] * 501))
    assert (finding.code, finding.line) == ("long-body", 6)
    assert "references/" in finding.message
