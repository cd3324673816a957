"""Everything that was found, as one ranking."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.memory.model import AttributeValue, MemoryItem, Period, Scope
from router.memory.recall.ranking import closeness, rank, session_of, with_session_evidence

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
MAY = Period(datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC))

words = st.sampled_from("deploy staging rollback cache anna login error release".split())
texts = st.lists(words, min_size=1, max_size=6).map(" ".join)
shares = st.floats(0, 1)
sessions = st.sampled_from([None, "one", "two", "three"])


def item(content: str, *, session: str | None = None, created: datetime = NOON) -> MemoryItem:
    attributes: dict[str, AttributeValue] = {} if session is None else {"session": session}
    return MemoryItem("i", "episodic", content, created, attributes=attributes)


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[MemoryItem], list[float]]:
    contents = draw(st.lists(texts, max_size=8))
    items = [item(content, session=draw(sessions)) for content in contents]
    return items, [draw(shares) for _ in items]


def test_words_that_are_spread_over_a_session_are_found_there_together() -> None:
    said = {
        "both": ("anna spoke", "cache emptied"),
        "one": ("anna left", "anna came"),
        "other": ("cache grew", "cache shrank"),
    }
    items = [item(text, session=name) for name, some in said.items() for text in some]
    both, _, one, *_ = rank("anna cache", items, [0.5] * len(items), [0.0] * len(items))
    assert both > one


class TestCompany:
    def test_of_equals_the_one_of_the_better_session_comes_first(self) -> None:
        lonely, accompanied, _ = with_session_evidence([0.5, 0.5, 0.4], ["a", "b", "b"])
        assert accompanied > lonely

    def test_items_of_no_session_stand_for_themselves(self) -> None:
        apart = with_session_evidence([0.5, 0.4], [None, None])
        alone = [with_session_evidence([0.5], [None])[0], with_session_evidence([0.4], [None])[0]]
        assert apart == alone

    def test_many_weak_items_do_not_make_their_session_better_than_one_strong_item(self) -> None:
        strong, *weak = with_session_evidence([0.9, *[0.2] * 100], ["short", *["long"] * 100])
        assert strong > max(weak)

    def test_an_item_alone_keeps_the_mean_of_itself_and_three_tenths(self) -> None:
        assert with_session_evidence([0.8], ["a"]) == pytest.approx([0.8 * (1 + 0.3) / 2])

    @given(st.lists(st.tuples(shares, sessions), max_size=12), st.floats(0.01, 100))
    def test_a_common_factor_comes_out_as_it_went_in(
        self, pairs: list[tuple[float, str | None]], factor: float
    ) -> None:
        scores, groups = [score for score, _ in pairs], [group for _, group in pairs]
        scaled = with_session_evidence([score * factor for score in scores], groups)
        assert scaled == pytest.approx([s * factor for s in with_session_evidence(scores, groups)])

    @given(st.lists(st.tuples(shares, sessions), max_size=12))
    def test_within_a_session_the_order_stays(self, pairs: list[tuple[float, str | None]]) -> None:
        scores, groups = [score for score, _ in pairs], [group for _, group in pairs]
        after = with_session_evidence(scores, groups)
        for i, group in enumerate(groups):
            for j, other in enumerate(groups):
                if group == other and scores[i] >= scores[j]:
                    assert after[i] >= after[j]

    @given(st.lists(st.tuples(shares, sessions), max_size=12))
    def test_scores_stay_in_their_range(self, pairs: list[tuple[float, str | None]]) -> None:
        after = with_session_evidence([score for score, _ in pairs], [group for _, group in pairs])
        assert all(0 <= score <= 1 for score in after)


class TestRank:
    def test_what_answers_comes_first(self) -> None:
        found = [item("Anna likes tea"), item("The login broke after the release")]
        other, answer = rank("Why did the login break?", found, [0.1, 0.9], [0.0, 0.0])
        assert answer == 1
        assert other < 0.1

    def test_relevance_decides_where_words_do_not(self) -> None:
        found = [item("roll it back"), item("go home")]
        better, worse = rank("undo the deployment", found, [0.6, 0.1], [0.0, 0.0])
        assert better == 1
        assert worse < 1

    def test_of_equally_relevant_ones_the_nearer_in_meaning_comes_first(self) -> None:
        found = [item("roll it back"), item("go home")]
        nearer, other = rank("undo the deployment", found, [0.3, 0.3], [0.4, 0.1])
        assert nearer == 1
        assert other < 1

    def test_of_equals_the_one_from_the_time_that_was_asked_for_comes_first(self) -> None:
        found = [
            item("deploy failed at noon", created=NOON - timedelta(days=300)),
            item("deploy failed at four", created=NOON),
        ]
        before, within = rank("deploy failed in May", found, [0.5, 0.5], [0.0, 0.0], period=MAY)
        assert within > before

    def test_what_was_told_after_the_period_can_still_be_the_answer(self) -> None:
        found = [
            item("Anna moved to Lisbon for good", created=MAY.end + timedelta(days=1)),
            item("Anna had tea", created=NOON),
        ]
        told_later, within = rank(
            "Where did Anna move in May?", found, [0.7, 0.3], [0.0, 0.0], period=MAY
        )
        assert told_later > within

    def test_without_any_sign_all_are_zero(self) -> None:
        assert rank("deploy", [item("lunch"), item("tea")], [0.0, 0.0], [0.0, -0.5]) == [0, 0]

    @settings(max_examples=50)
    @given(texts, pools())
    def test_the_best_has_one_and_none_is_outside_zero_and_one(
        self, query: str, pool: tuple[list[MemoryItem], list[float]]
    ) -> None:
        items, relevances = pool
        scores = rank(query, items, relevances, [0.3] * len(items))
        assert all(0 <= score <= 1 for score in scores)
        assert max(scores, default=0) == (1 if any(scores) else 0)

    @settings(max_examples=50)
    @given(texts, pools(), shares)
    def test_a_more_relevant_item_is_never_placed_lower(
        self, query: str, pool: tuple[list[MemoryItem], list[float]], more: float
    ) -> None:
        items, relevances = pool
        if not items:
            return
        raised = [max(relevances[0], more), *relevances[1:]]
        alike = [0.3] * len(items)
        before = rank(query, items, relevances, alike)
        after = rank(query, items, raised, alike)
        rivals = [n for n in range(1, len(items)) if session_of(items[n]) is None]
        for n in rivals:
            if before[0] > before[n]:
                assert after[0] > after[n]


class TestSession:
    def test_it_is_the_attribute(self) -> None:
        assert session_of(item("x", session="s7")) == "s7"

    def test_what_is_no_name_is_no_session(self) -> None:
        assert session_of(MemoryItem("i", "l", "x", NOON, attributes={"session": 7})) is None

    def test_the_session_of_the_scope_is_none(self) -> None:
        assert session_of(MemoryItem("i", "l", "x", NOON, scope=Scope(session="s7"))) is None


class TestCloseness:
    def test_within_the_period_it_is_one(self) -> None:
        assert closeness(datetime(2026, 5, 4, 12, tzinfo=UTC), MAY) == 1

    @pytest.mark.parametrize("edge", [MAY.start - timedelta(days=3), MAY.end + timedelta(days=14)])
    def test_it_falls_faster_before_the_period_than_after_it(self, edge: datetime) -> None:
        assert closeness(edge, MAY) == pytest.approx(0.3679, abs=1e-4)

    def test_the_beginning_of_time_is_far_from_everything(self) -> None:
        assert closeness(datetime(1, 1, 2, tzinfo=UTC), MAY) == 0
