"""Diagnostics: as they are shown, in their order, and bounded in number."""

from __future__ import annotations

from pathlib import Path

from router.errors import ManifestError
from router.skills.diagnostics import MAX_DIAGNOSTICS, Diagnostic, Report, in_order, short

FILE = Path("skills/git/SKILL.md")


def test_a_diagnostic_is_shown_with_its_place() -> None:
    report = Report(FILE)
    report.warn(3, "unknown-key", "the key colour is unknown")
    [found] = report.diagnostics
    assert str(found) == f"{FILE}:3: warning: the key colour is unknown [unknown-key]"
    failure = Diagnostic.of_failure(ManifestError(FILE, 0, "it is empty"))
    assert str(failure) == f"{FILE}: error: it is empty [not-loaded]"


def test_diagnostics_are_in_the_order_of_files_and_lines() -> None:
    report, other = Report(FILE), Report(Path("a/SKILL.md"))
    for line in (5, 2):
        report.info(line, "code", "odd")
        other.info(line, "code", "odd")
    found = in_order([*report.diagnostics, *other.diagnostics])
    assert [(one.path.parts[0], one.line) for one in found] == [
        ("a", 2),
        ("a", 5),
        ("skills", 2),
        ("skills", 5),
    ]


def test_their_number_is_bounded_and_the_last_one_says_so() -> None:
    report = Report(FILE)
    for line in range(3000):
        report.info(line, "code", "odd")
    assert len(report.diagnostics) == MAX_DIAGNOSTICS
    assert report.diagnostics[-1].code == "more-oddities"


def test_a_quoted_text_is_on_one_line_and_cut() -> None:
    assert short("a\nb") == "'a\\nb'"
    assert len(short("x" * 1000)) == 62
