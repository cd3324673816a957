"""Which skills a request of several clauses needs beside the first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import pytest
from cascade import shipped_index
from hypothesis import given
from hypothesis import strategies as st

from router.retrieval.index import SkillIndex
from router.retrieval.matches import Clause, Match, Ranking
from router.stages.further import MAX_CANDIDATES, further


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillIndex]:
    with closing(shipped_index(tmp_path_factory.mktemp("index"))) as index:
        yield index


def match(name: str, score: float) -> Match:
    return Match(name, score, 0.0, 0.0, 0.0, examples_weight=0.0, terms=())


def whole_of(scores: Sequence[float], *clauses: Sequence[float]) -> Ranking:
    """A request with the scores of the skills "0", "1" and so on, and those for each clause."""
    return Ranking(
        tuple(match(str(place), score) for place, score in enumerate(scores)),
        size=len(scores),
        clauses=tuple(map(clause_of, clauses)),
    )


def clause_of(scores: Sequence[float]) -> Clause:
    best = max(range(len(scores)), key=lambda place: scores[place])
    return Clause(
        Ranking((match(str(best), scores[best]),), size=len(scores)),
        scores=tuple(scores),
        examples=(0.0,) * len(scores),
        highest=tuple(sorted(scores, reverse=True)[:2]),
        words=3,
    )


WHOLE = (1.5, 1.2, 0.5)
FOR_THE_FIRST = (2.0, 0.4, 0.3)
FOR_ANOTHER = (0.3, 1.8, 0.4)


def needed(whole: Ranking, name: str = "1") -> float:
    return further(whole, "0")[name]


def test_a_skill_with_a_clause_of_its_own_is_needed() -> None:
    assert needed(whole_of(WHOLE, FOR_THE_FIRST, FOR_ANOTHER)) > 0.8


def test_a_skill_that_no_clause_asks_for_is_not_needed() -> None:
    whole = whole_of(WHOLE, FOR_THE_FIRST, FOR_THE_FIRST)
    assert all(probability < 0.2 for probability in further(whole, "0").values())


SURE = whole_of(WHOLE, FOR_THE_FIRST, FOR_ANOTHER)


@pytest.mark.parametrize(
    "less",
    [
        whole_of(WHOLE, FOR_THE_FIRST, (0.3, 1.4, 0.4)),
        whole_of(WHOLE, FOR_THE_FIRST, (0.3, 1.8, 1.7)),
        whole_of(WHOLE, FOR_THE_FIRST, (1.7, 1.8, 0.4)),
        whole_of(WHOLE, (0.5, 0.4, 0.3), FOR_ANOTHER),
        whole_of((1.5, 0.8, 0.5), FOR_THE_FIRST, FOR_ANOTHER),
        whole_of(WHOLE, FOR_THE_FIRST, FOR_ANOTHER, (0.1, 0.1, 0.1)),
        replace(SURE, clauses=(SURE.clauses[0], replace(SURE.clauses[1], words=1))),
        replace(SURE, clauses=(SURE.clauses[0], replace(SURE.clauses[1], after_comma=True))),
    ],
    ids=[
        "its clause is less like it",
        "another skill is as good for its clause",
        "the first skill is as good for its clause",
        "the first skill has no clause of its own",
        "the whole request is less like it",
        "there are more clauses",
        "its clause says less",
        "only a comma stands between",
    ],
)
def test_what_makes_a_skill_less_likely_to_be_needed(less: Ranking) -> None:
    assert needed(less) < needed(SURE)


@pytest.mark.parametrize(("listed", "less"), [((1, 2), True), ((1,), False), ((2,), False)])
def test_only_commas_are_between_when_all_clauses_of_the_way_are_listed(
    listed: tuple[int, ...], less: bool
) -> None:
    whole = whole_of(WHOLE, FOR_THE_FIRST, (0.1, 0.1, 0.1), FOR_ANOTHER)
    clauses = (replace(one, after_comma=at in listed) for at, one in enumerate(whole.clauses))
    assert (needed(replace(whole, clauses=tuple(clauses))) < needed(whole)) is less


def test_a_place_further_down_makes_it_less_likely() -> None:
    below = whole_of((1.5, 1.2, 1.2), FOR_THE_FIRST, FOR_ANOTHER, (0.3, 0.4, 1.8))
    found = further(below, "0")
    assert list(found) == ["1", "2"]
    assert found["1"] > found["2"]


def test_one_clause_asks_for_one_skill() -> None:
    rivals = whole_of(WHOLE, FOR_THE_FIRST, (0.3, 1.8, 1.7))
    assert list(further(rivals, "0")) == ["1"]


def test_only_the_best_of_the_whole_request_are_considered() -> None:
    count = MAX_CANDIDATES + 1
    last = (0.3,) * MAX_CANDIDATES + (1.8,)
    whole = whole_of((1.5,) + (1.0,) * MAX_CANDIDATES, (2.0,) + (0.3,) * MAX_CANDIDATES, last)
    assert len(whole.matches) == count
    assert str(MAX_CANDIDATES) not in further(whole, "0")


def test_a_request_of_one_clause_needs_nothing_further() -> None:
    assert further(whole_of(WHOLE), "0") == {}
    alone = Ranking((match("0", 1.0),), size=1, clauses=(clause_of((1.0,)), clause_of((1.0,))))
    assert further(alone, "0") == {}


SCORES = st.lists(st.floats(-10, 10), min_size=4, max_size=4)


@given(SCORES, st.lists(SCORES, min_size=2, max_size=12), st.integers(0, 3))
def test_they_are_others_likeliest_first(
    scores: list[float], clauses: list[list[float]], first: int
) -> None:
    found = further(whole_of(sorted(scores, reverse=True), *clauses), str(first))
    assert str(first) not in found
    assert 1 <= len(found) <= min(len(clauses), 3)
    assert all(0 < probability < 1 for probability in found.values())
    assert list(found.values()) == sorted(found.values(), reverse=True)


async def test_over_the_shipped_skills(shipped: SkillIndex) -> None:
    two = "squash the last four commits and write unit tests for the invoice calculator"
    whole = await shipped.rank(two)
    first = whole.matches[0].name
    other = ({"git", "testing"} - {first}).pop()
    assert next(iter(further(whole, first))) == other
    assert further(whole, first)[other] > 0.5
    explained = "squash the last four commits, they all say the same thing, and keep the first one"
    whole = await shipped.rank(explained)
    assert max(further(whole, "git").values()) < 0.5
