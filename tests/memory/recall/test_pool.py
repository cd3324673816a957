"""In which order items are given; what is relevant is tested through a whole recall."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_layers import NOW, remembered

from router.memory.model import Period
from router.memory.recall.pool import closeness, rerank_score

UNIT = st.floats(0, 1)
DAYS = st.floats(0, 400)
MAY = Period(datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))


@given(UNIT, UNIT, UNIT, DAYS)
def test_of_two_items_alike_the_more_relevant_comes_first(
    one: float, other: float, usefulness: float, days: float
) -> None:
    item = remembered("session", "x", usefulness=usefulness, days_old=days)
    low, high = sorted((one, other))
    assert rerank_score(item, low, NOW) <= rerank_score(item, high, NOW)


@given(UNIT, UNIT, UNIT, DAYS)
def test_of_two_items_alike_the_more_useful_comes_first(
    one: float, other: float, relevance: float, days: float
) -> None:
    low, high = sorted((one, other))
    scores = [
        rerank_score(remembered("session", "x", usefulness=u, days_old=days), relevance, NOW)
        for u in (low, high)
    ]
    assert scores == sorted(scores)


@given(DAYS, DAYS, UNIT)
def test_of_two_items_alike_the_one_used_later_comes_first(
    one: float, other: float, relevance: float
) -> None:
    older, newer = sorted((one, other), reverse=True)
    scores = [
        rerank_score(
            remembered("session", "x", days_old=400, accessed=NOW - timedelta(days=days)),
            relevance,
            NOW,
        )
        for days in (older, newer)
    ]
    assert scores == sorted(scores)


def test_the_rerank_score_reaches_both_ends() -> None:
    best = remembered("session", "x", days_old=0, usefulness=1.0)
    worst = remembered("session", "x", days_old=90, usefulness=0.0)
    assert rerank_score(best, 1.0, NOW) == pytest.approx(1.0)
    assert rerank_score(worst, 0.0, NOW) == 0.0


class TestCloseness:
    def test_within_the_period_it_is_one(self) -> None:
        assert closeness(datetime(2026, 5, 4, 12, tzinfo=UTC), MAY) == 1

    @pytest.mark.parametrize("edge", [MAY.start - timedelta(days=3), MAY.end + timedelta(days=14)])
    def test_it_falls_faster_before_the_period_than_after_it(self, edge: datetime) -> None:
        assert closeness(edge, MAY) == pytest.approx(0.3679, abs=1e-4)

    def test_the_beginning_of_time_is_far_from_everything(self) -> None:
        assert closeness(datetime(1, 1, 2, tzinfo=UTC), MAY) == 0
