"""Names of skills in requests."""

from __future__ import annotations

import pytest

from router.retrieval.names import NamedSkills, SkillNames

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
        ("skill: git", ("git",)),
        ("Tool: writer please", ("writer",)),
        ("testDrivenDevelopment", ("test-driven-development",)),
        ("calendar.createEvent", ("calendar.create_event",)),
        ("git and writer", ("git", "writer")),
        ("writer, git & clean up", ("writer", "git", "Clean-Up")),
        ("use git and writer", ("git", "writer")),
        ("skills: git, writer, and clean-up.", ("git", "writer", "Clean-Up")),
        ("please use /git for this", ("git",)),
        ("squash my commits with $git", ("git",)),
        ("try /writer, /git and /clean-up on it", ("writer", "git", "Clean-Up")),
        ("Look at it. /git squash them", ("git",)),
        ("the /git skill, please", ("git",)),
        ("ask @writer for a page", ("writer",)),
    ],
)
def test_a_name_that_is_written_as_one_is_found(request_: str, named: tuple[str, ...]) -> None:
    assert NAMES.named_in(request_)[:2] == (named, ())


@pytest.mark.parametrize(
    "request_",
    [
        "squash my git commits",  # a word, not a name
        "the writer of this book",
        "test our development",
        "clean up the kitchen",
        "",
        "/",
        "/gitk",
        "x" * 5_000 + " /git",  # further than is read
        'translate the word "writer" into German',
        "post it with #git",
        "git and a coffee",
        "the writer and the git",
        "git or writer",  # which one?
        "and, then",
        "use the skill",
        "use git",  # as a word: "take stock"
        "the /writer endpoint returns 500",
        "GET /git gives a 404",
        "delete the folders /home and /git",
        "why is $git empty in my Makefile?",
        "copy /writer to /git",
    ],
)
def test_what_is_no_name_is_not(request_: str) -> None:
    assert NAMES.named_in(request_) == NamedSkills()


@pytest.mark.parametrize(
    ("request_", "wanted", "refused"),
    [
        ("don't use the git skill", (), ("git",)),
        ("don\u2019t use the git skill", (), ("git",)),
        ("do it without calendar.create_event", (), ("calendar.create_event",)),
        ("anything except test-driven-development", (), ("test-driven-development",)),
        ("use clean-up instead of /git", ("Clean-Up",), ("git",)),
        ("not /git but clean-up", ("Clean-Up",), ("git",)),
        ("not /git but /writer", ("writer",), ("git",)),
        ("no, clean-up, and be quick", ("Clean-Up",), ()),
        ("this is not what I want. Use clean-up", ("Clean-Up",), ()),
        ("instead, use clean-up", ("Clean-Up",), ()),
        ("do not clean anything by hand, I have /git", ("git",), ()),
        ("without /git first and then with /git", ("git",), ()),
        ("do not use clean-up, /git or $writer", (), ("Clean-Up", "git", "writer")),
        ("do not use any of these skills: /git, /writer", (), ("git", "writer")),
        ("you shouldn't use /git here", (), ("git",)),
        ("avoid clean-up; run /git", ("git",), ("Clean-Up",)),
        ("anything but the git skill", (), ("git",)),
        ("don't forget to use clean-up", ("Clean-Up",), ()),
        ("why not use clean-up for it?", (), ()),  # ranked as any other request
        ("merge them without errors with /git", (), ()),
        ("the build does not work with clean-up", (), ()),
    ],
)
def test_a_name_directly_behind_a_refusal_and_a_list_that_it_begins_are_refused(
    request_: str, wanted: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    assert NAMES.named_in(request_)[:2] == (wanted, refused)


def test_compound_names_are_taken_out_of_a_text_and_everyday_words_stay() -> None:
    names = SkillNames(("git", "send-invoice", "crm.find_person"))
    text = "I found her with `crm.find_person`, put it into git: send-invoice or send invoices?"
    assert names.removed_from(text) == "I found her with , put it into git:  or send invoices?"


@pytest.mark.parametrize(
    "request_",
    ["git", "Clean up.", "/git it", "run `git`", "the git skill", "skill: git", "git, writer"],
)
def test_a_name_that_is_no_mere_word_addresses_its_skill(request_: str) -> None:
    assert NAMES.named_in(request_).is_addressed


@pytest.mark.parametrize("request_", ["clean-up this", "was test-driven-development worth it?"])
def test_a_compound_name_may_be_a_mere_word(request_: str) -> None:
    found = NAMES.named_in(request_)
    assert found.wanted and not found.is_addressed
