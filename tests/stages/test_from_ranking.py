"""The decision from one ranking: how sure the whole and its clauses must be."""

from __future__ import annotations

from dataclasses import replace

from router.retrieval.background import BackgroundComparison
from router.retrieval.matches import Clause, Match, Ranking
from router.stages.from_ranking import (
    DEFAULT_CAUTION,
    OTHER_CLAUSE_SHARE,
    decide_from_ranking,
)
from router.stages.further import further
from router.stages.likelihood import Likelihood


def match(name: str, score: float) -> Match:
    return Match(name, score, score / 2, 0.0, 0.0, examples_weight=0.0, terms=())


def clause_for(name: str, score: float) -> Clause:
    scores = tuple(score if other == name else 0.0 for other in NAMES)
    ranking = Ranking((match(name, score),), size=5, evidence=0.5, lead=0.2)
    return Clause(ranking, scores, (0.0,) * 5, (score, 0.0), words=3)


NAMES = ("one", "two", "three", "four", "five")


def whole_of(score: float, *clauses: Clause) -> Ranking:
    """A request for which the skills "one" to "five" are the best, in this order."""
    matches = tuple(match(name, score - place / 4) for place, name in enumerate(NAMES))
    return Ranking(matches, size=5, evidence=score, lead=1.0, clauses=clauses)


def test_a_clause_adds_what_is_likely_enough_to_be_needed() -> None:
    seen = set()
    for score in (0.2, 0.6, 1.0, 1.4, 1.8):
        for name in NAMES[1:]:
            whole = whole_of(2.0, clause_for("one", 2.0), clause_for(name, score))
            probability = further(whole, "one").get(name, 0.0)
            for caution in (DEFAULT_CAUTION, 0.65):
                local = decide_from_ranking("", whole, caution=caution)
                wanted = probability >= caution
                seen.add(wanted)
                assert local.selected == (("one", name) if wanted else ("one",))
                if wanted:
                    assert local.confidence <= probability
                    assert local.evidence["clauses"] == (name,)
    assert seen == {True, False}


def test_where_the_whole_is_unsure_one_clause_must_be_sure_and_another_want_something_else() -> (
    None
):
    vague, unsure, likely = clause_for("one", 0.1), clause_for("one", 0.4), clause_for("two", 1.3)
    rights = [Likelihood.of(clause.ranking).right for clause in (vague, unsure, likely)]
    assert (
        rights[0] < OTHER_CLAUSE_SHARE * DEFAULT_CAUTION < rights[1] < DEFAULT_CAUTION < rights[2]
    )
    assert decide_from_ranking("", whole_of(0.1, unsure, unsure)).selected == ()
    assert decide_from_ranking("", whole_of(0.1, vague, likely)).selected == ()
    assert decide_from_ranking("", whole_of(0.1, likely, likely)).selected == ()
    assert decide_from_ranking("", whole_of(0.1, unsure, clause_for("three", 1.3))).selected == ()
    local = decide_from_ranking("", whole_of(0.1, unsure, likely))
    assert local.selected[0] == "two"
    assert local.evidence["right"] == Likelihood.of(likely.ranking).right
    assert "one clause asks for two" in local.reason


def test_what_is_not_compared_with_a_background_must_be_surer_to_fit() -> None:
    compared = BackgroundComparison(special=-0.2, clear=0.2)
    for background, least in ((None, 0.75), (compared, 0.625)):
        seen = set()
        for step in range(100):
            whole = replace(whole_of(step / 25), background=background)
            likelihood = Likelihood.of(whole)
            if likelihood.right >= DEFAULT_CAUTION:
                seen.add(likelihood.fits >= least)
                assert bool(decide_from_ranking("", whole).selected) is (likelihood.fits >= least)
        assert seen == {True, False}
