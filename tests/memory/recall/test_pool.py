"""In which order items are given; what is relevant is tested through a whole recall."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_layers import NOW, remembered

from router.memory.recall.pool import rerank_score

UNIT = st.floats(0, 1)
DAYS = st.floats(0, 400)


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
