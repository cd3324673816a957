"""What the first clause of a statement is about, and what sets two statements apart."""

from __future__ import annotations

import pytest
from cpu_time import cpu_time_at_most

from router.memory.recall.clauses import are_two_matters, clause_of, without_reason


@pytest.mark.parametrize(
    ("text", "subject", "verb", "preposition"),
    [
        ("Deploys happen on Mondays", {"deploy"}, "happen", "on"),
        ("deploy days are now Monday and Friday", {"deploy", "day"}, "be", ""),
        ("Code is formatted with black", {"code"}, "format", "with"),
        ("Since October my manager is Idris Okafor", {"manag"}, "be", ""),
        ("I now live in Ghent", set(), "live", "in"),
        ("Switched to Emacs", set(), "switch", "to"),
        ("We moved the analytics to another server", {"analyt"}, "move", ""),
    ],
)
def test_subject_verb_and_preposition_are_read(
    text: str, subject: set[str], verb: str, preposition: str
) -> None:
    clause = clause_of(text)
    assert clause is not None
    assert (set(clause.subject), clause.verb) == (subject, verb)
    assert not preposition or clause.preposition == preposition


@pytest.mark.parametrize(
    ("newer", "older", "expected"),
    [
        ("The south gate is open", "The north gate is locked", True),
        ("Tests run in parallel", "Tests run with pytest", True),
        ("deploy day is Wednesday", "deploys happen on Mondays", False),
        ("Tests run with pytest", "Tests run with nose", False),
        ("no verb", "Tests run with nose", False),
    ],
)
def test_other_subjects_and_verbs_are_two_matters(
    newer: str, older: str, *, expected: bool
) -> None:
    assert are_two_matters(newer, older, is_change=False) is expected


def test_a_reason_behind_a_value_is_cut_off() -> None:
    assert without_reason("The limit is 12 hours because it was low") == "The limit is 12 hours"
    assert without_reason("Bills are due after 14 days") == "Bills are due after 14 days"


@pytest.mark.parametrize("word", ["a", "from ", "as of ", "since ", ", ", "is now "])
def test_a_long_text_is_read_in_no_time(word: str) -> None:
    with cpu_time_at_most(1):
        without_reason(word * 100_000)
        clause_of(word * 100_000)
