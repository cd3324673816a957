"""Names of skills in requests."""

from __future__ import annotations

import pytest

from router.retrieval.names import SkillNames

NAMES = SkillNames(
    ["git", "test-driven-development", "calendar.create_event", "writer", "Clean-Up"]
)


@pytest.mark.parametrize(
    ("request_", "named"),
    [
        ("git", ("git",)),
        (" Git. ", ("git",)),
        ("/git", ("git",)),
        ("test driven development", ("test-driven-development",)),
        ("clean up", ("Clean-Up",)),
        ("please run test-driven-development on the parser", ("test-driven-development",)),
        ("call calendar.create_event, tomorrow at 3", ("calendar.create_event",)),
        ("answer with `git` and then $writer", ("git", "writer")),
        ("the git skill should do", ("git",)),
        ("/git /git", ("git",)),
        ("(/git)", ("git",)),
    ],
)
def test_a_name_that_is_written_as_one_is_found(request_: str, named: tuple[str, ...]) -> None:
    assert NAMES.named_in(request_) == named


@pytest.mark.parametrize(
    "request_",
    [
        "squash my git commits",  # a word, not a name
        "the writer of this book",
        "don't use the git skill",
        "do it without calendar.create_event",
        "test our development",
        "clean up the kitchen",
        "",
        "/",
        "/gitk",
        "x" * 5_000 + " /git",  # further than is read
    ],
)
def test_what_is_no_name_is_not(request_: str) -> None:
    assert NAMES.named_in(request_) == ()
