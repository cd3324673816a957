"""Clauses that are routed by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from cascade import shipped_index

from router.request import Request
from router.result import Decision
from router.retrieval.index import SkillIndex
from router.retrieval.reader import Part
from router.stages.apart import (
    MAX_CLAUSES,
    MAX_SHOWN_CHARACTERS,
    SURE,
    UNANSWERED,
    Apart,
    Single,
    clauses_apart,
    compared_with_whole,
    decided_apart,
)
from router.stages.from_ranking import RetrievalDecision
from router.stages.retrieval import decide


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillIndex]:
    with closing(shipped_index(tmp_path_factory.mktemp("index"))) as index:
        yield index


def single(
    skill: str, confidence: float = 0.95, fits: float = 0.95, *, after_comma: bool = False
) -> Single:
    return Single(Part("do it", after_comma), skill, confidence, fits)


def test_a_clause_that_surely_asks_for_another_skill_adds_it() -> None:
    found = Apart((single("git"), single("testing", 0.95), single("writer", 0.98)))
    assert found.surely_asked_for(["git"]) == {"writer": 0.98, "testing": 0.95}
    assert list(found.surely_asked_for(["git"])) == ["writer", "testing"]


@pytest.mark.parametrize(
    "clauses",
    [
        (single("git"), single("git")),
        (single("git"), single("")),
        (single("git", SURE - 0.01), single("testing")),
        (single("git"), single("testing", SURE - 0.01)),
        (single("git"), single("testing", fits=SURE - 0.01)),
        (single("writer"), single("testing")),  # none is routed to the first skill
        (single("git"), single("testing"), single(""), single(""), single("")),
    ],
)
def test_what_is_less_sure_adds_nothing(clauses: tuple[Single, ...]) -> None:
    assert Apart(clauses).surely_asked_for(["git"]) == {}


def test_behind_a_comma_a_clause_counts_in_a_list_that_ends_with_and() -> None:
    listed = (single("git"), single("testing", after_comma=True))
    assert Apart((*listed, single("writer", 0.6))).surely_asked_for(["git"]) == {"testing": 0.95}
    assert Apart((*listed, single(""))).surely_asked_for(["git"]) == {}
    assert Apart(listed).surely_asked_for(["git"]) == {}


def test_a_clause_whose_skill_is_not_loaded_is_unanswered() -> None:
    found = Apart((single("git"), single("testing", 0.5), single("")))
    assert found.unanswered(["git"])
    assert not found.unanswered(["git", "testing"])
    assert not Apart((single("git"), single("testing", fits=0.8))).unanswered(["git"])


def test_a_story_of_many_clauses_and_a_single_clause_are_not_decided_apart() -> None:
    assert clauses_apart("squash the commits") == []
    assert len(clauses_apart("\n".join(["squash the commits"] * MAX_CLAUSES))) == MAX_CLAUSES
    assert clauses_apart("\n".join(["squash the commits"] * (MAX_CLAUSES + 1))) == []


def test_a_clause_may_be_one_word_here() -> None:
    assert [part.text for part in clauses_apart("transcribe it and write notes")] == [
        "transcribe it",
        "write notes",
    ]


async def test_the_name_of_a_skill_among_other_words_is_no_clause_of_its_own() -> None:
    async def route(text: str) -> RetrievalDecision:
        evidence = {"named": text == "test", "fits": 0.98}
        return RetrievalDecision(Decision.ROUTE, (text.split()[0],), 0.98, "", evidence)

    parts = [Part("build it"), Part("test")]
    found = await decided_apart(parts, [], route)
    assert [one.skill for one in found.singles] == ["build", ""]
    found = await decided_apart(parts, ["test"], route)
    assert [one.skill for one in found.singles] == ["build", "test"]


def test_a_long_clause_is_shown_shortened() -> None:
    shown = str(Single(Part("word " * 50), "git", 0.953, 0.99))
    assert shown.startswith("word word") and shown.endswith("…: git 0.95")
    assert len(shown) <= MAX_SHOWN_CHARACTERS + len(": git 0.95")
    assert str(single("")) == "do it: nothing"


async def test_the_trace_says_what_each_clause_asks_for(shipped: SkillIndex) -> None:
    request = "squash the last four commits & write unit tests for the invoice calculator"
    local = await decide(Request(request), shipped)
    assert set(local.selected) == {"git", "testing"}
    by_clause = local.evidence["by_clause"]
    assert isinstance(by_clause, tuple)
    assert [text.rpartition(" ")[0] for text in by_clause] == [
        "squash the last four commits: git",
        "write unit tests for the invoice calcul…: testing",
    ]


async def test_a_clause_that_is_left_unanswered_lowers_the_confidence(shipped: SkillIndex) -> None:
    request = "design the endpoints for subscriptions and write the how-to guide for partners"
    local = await decide(Request(request), shipped)
    assert (local.selected, local.confidence) == (("api-design",), UNANSWERED)


@pytest.mark.parametrize(
    ("request_", "selected", "is_enough"),
    [
        ("commit my staged changes and push the branch upstream", ("git",), True),
        ("commit my staged changes and write unit tests for the parser", ("git",), False),
        ("commit my staged changes and write unit tests for the parser", ("git", "testing"), True),
        (
            "commit it and push",
            ("git",),
            False,
        ),  # clauses of one word are not ranked with the whole
    ],
)
async def test_clauses_are_ranked_again_only_where_one_may_ask_for_another_skill(
    shipped: SkillIndex, request_: str, selected: tuple[str, ...], is_enough: bool
) -> None:
    whole = await shipped.rank(request_)
    apart = compared_with_whole(clauses_apart(request_), whole, selected)
    assert (apart is not None) is is_enough
    if apart is not None:
        assert {one.skill for one in apart.singles} == set(selected)
