"""How likely a ranking's best match is to fit, and to be right."""

from __future__ import annotations

from dataclasses import replace

import pytest

from router.retrieval.background import BackgroundComparison
from router.retrieval.matches import Match, Ranking
from router.stages.likelihood import Likelihood

MATCH = Match(
    "git",
    score=1.2,
    lexical=0.6,
    cosine=0.4,
    examples=0.0,
    examples_weight=0.0,
    terms=("commit",),
)
BACKGROUND = BackgroundComparison(special=0.1, clear=0.05)
RANKING = Ranking((MATCH,), size=50, evidence=0.8, lead=0.3, background=BACKGROUND)


def test_it_is_a_probability_at_the_ends_of_what_signals_can_be() -> None:
    for score in (-5.0, 0.0, 50.0):
        for size in (1, 1_000_000):
            ranking = replace(RANKING, matches=(MATCH._replace(score=score),), size=size)
            likelihood = Likelihood.of(ranking)
            assert 0 < likelihood.fits < 1
            assert 0 < likelihood.right < 1


ALONE = replace(RANKING, background=None)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        (ALONE, replace(ALONE, matches=(MATCH._replace(score=1.5),))),
        (replace(RANKING, size=500), RANKING),
        (replace(ALONE, size=500), ALONE),
    ],
    ids=["score", "size", "size alone"],
)
def test_what_raises_both(less: Ranking, more: Ranking) -> None:
    assert Likelihood.of(less).fits < Likelihood.of(more).fits
    assert Likelihood.of(less).right < Likelihood.of(more).right


def test_the_share_of_the_request_that_matches_says_whether_something_fits() -> None:
    more = replace(RANKING, matches=(MATCH._replace(lexical=0.9),))
    assert Likelihood.of(RANKING).fits < Likelihood.of(more).fits


def test_how_much_matches_says_nothing_of_whether_something_fits() -> None:
    for ranking in (RANKING, ALONE):
        longer = replace(ranking, evidence=8.0)
        assert Likelihood.of(longer).fits == Likelihood.of(ranking).fits
        assert Likelihood.of(longer).right > Likelihood.of(ranking).right


def test_a_lead_says_which_one_and_not_whether() -> None:
    tied, ahead = Likelihood.of(replace(RANKING, lead=0.0)), Likelihood.of(RANKING)
    assert tied.fits == ahead.fits
    assert tied.right < ahead.right


def test_a_lone_skill_below_zero_has_no_lead() -> None:
    assert Likelihood.of(replace(RANKING, lead=-0.4)).signals["lead"] == 0


def test_what_is_nearer_than_the_background_fits_and_what_is_nearest_of_all_is_right() -> None:
    alike = replace(RANKING, background=BACKGROUND._replace(special=-0.1))
    assert Likelihood.of(alike).fits < Likelihood.of(RANKING).fits
    rival = replace(RANKING, background=BACKGROUND._replace(clear=-0.1))
    assert Likelihood.of(rival).right < Likelihood.of(RANKING).right
    assert Likelihood.of(rival).fits == Likelihood.of(RANKING).fits


def test_without_a_background_the_other_signals_decide() -> None:
    alone = Likelihood.of(replace(RANKING, background=None))
    assert set(Likelihood.of(RANKING).signals) - set(alone.signals) == set(BACKGROUND._fields)
    assert 0 < alone.right < alone.fits < 1
