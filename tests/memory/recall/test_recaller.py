"""Recaller: what is an answer, when further layers are read, and how the answer is put together."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_layers import NOW, LoopLayer, RaisingLayer, TableClassifier, classified, remembered

from router.errors import InvalidRequest
from router.memory.model import AnyLayer, LayerStatus, MemoryItem, Scope, ScoreKind
from router.memory.recall.answers import RecallResult
from router.memory.recall.memory_router import MemoryRouter
from router.memory.recall.pool import MAX_RELEVANCE_RATIO, RELEVANCE_FLOOR
from router.memory.recall.recaller import LAYERS_A_STEP, Recaller
from router.memory.recall.relevance import Judged, Relevance
from router.memory.recall.weights import LayerWeights
from router.memory.texts.text_vectors import TextVectors
from router.retrieval.bundled_encoder import BundledEncoder

AUTH = "continue working on auth"
DONE = "which tasks are done"
FURTHER = ["graph", "episodic", "meta", "user", "planning"]


class Stated:
    """Takes an item's relevance from the number that its content begins with."""

    def __init__(self) -> None:
        self.judged: list[str] = []

    def of(
        self, query: str, contents: Sequence[str], questions: Sequence[Sequence[str]] = ()
    ) -> list[Judged]:
        self.judged.extend(contents)
        return [Judged(float(content.split()[0]), 0.0) for content in contents]


class Given:
    """Knows the relevance of each item's content."""

    def __init__(self, relevance: dict[str, float]) -> None:
        self._relevance = relevance

    def of(
        self, query: str, contents: Sequence[str], questions: Sequence[Sequence[str]] = ()
    ) -> list[Judged]:
        return [Judged(self._relevance[content], 0.0) for content in contents]


@asynccontextmanager
async def recalling(*layers: AnyLayer, **options: Any) -> AsyncIterator[Recaller]:
    read = classified("session", secondary=FURTHER)
    table = TableClassifier(**{AUTH: read, DONE: read})
    weights = LayerWeights()
    router = MemoryRouter(
        layers,
        classifier=table,
        weights=weights,
        clock=Clock(NOW.timestamp()),
        monotonic=Clock(0.0),
        layer_deadline_seconds=30,
        deadline_seconds=30,
    )
    defaults: dict[str, Any] = {
        "relevance": Stated().of,
        "clock": Clock(NOW.timestamp()),
        "monotonic": Clock(0.0),
    }
    recall = Recaller(router, **(defaults | options))
    try:
        yield recall
    finally:
        await recall.aclose()
        await router.aclose()
        weights.close()


def aged(name: str, days_old: Mapping[str, float]) -> LoopLayer:
    """A layer of contents, each with how many days ago it was remembered."""
    layer = LoopLayer(name)
    layer.items = [remembered(name, said, days_old=days) for said, days in days_old.items()]
    return layer


def contents(result: RecallResult) -> list[str]:
    return [recalled.item.content for recalled in result.items]


def turns(result: RecallResult) -> list[tuple[str, ...]]:
    return [step.layers for step in result.cascade_path]


async def test_a_good_answer_of_the_primary_layers_reads_no_others() -> None:
    graph = LoopLayer("graph", "0.9 the token service")
    async with recalling(LoopLayer("session", "0.8 auth is half done"), graph) as recall:
        result = await recall.answer(AUTH)
    assert contents(result) == ["0.8 auth is half done"]
    assert result.confidence == 0.8
    assert result.cascade_path == ()
    assert graph.calls == 0


def told_of(result: RecallResult, word: str) -> float:
    """The relevance of the item that ends in a word."""
    return next(one.relevance for one in result.items if one.item.content.endswith(word))


async def test_a_weak_answer_turns_to_the_next_layers_until_it_is_good() -> None:
    further = [LoopLayer(name) for name in FURTHER]
    further[2] = LoopLayer("meta", "0.7 auth is well covered")
    async with recalling(LoopLayer("session", "0.3 auth, perhaps"), *further) as recall:
        result = await recall.answer(AUTH)
    assert turns(result) == [("graph", "episodic"), ("meta", "user", "planning")]
    after = result.cascade_path[-1].after
    assert [step.before for step in result.cascade_path] == [0.3, 0.3]
    assert 0.5 < after < 0.7  # a lighter layer is believed a little less
    assert contents(result) == ["0.7 auth is well covered", "0.3 auth, perhaps"]
    assert [report.layer for report in result.layers] == ["session", *FURTHER]


async def test_who_says_i_asks_for_what_they_have_told_of_themselves() -> None:
    layers = [LoopLayer("user", "0.5 told"), LoopLayer("semantic", "0.5 a fact")]
    async with recalling(*layers) as recall:
        mine = await recall.answer("Which train do I take?", layers=["user", "semantic"])
        ours = await recall.answer("Which train is taken?", layers=["user", "semantic"])
    assert {one.item.layer: round(one.relevance, 2) for one in mine.items} == {
        "user": 0.73,
        "semantic": 0.5,
    }
    assert [one.relevance for one in ours.items] == [0.5, 0.5]


async def test_what_happened_answers_less_often_than_what_holds() -> None:
    further = [LoopLayer("graph", "0.5 it holds"), LoopLayer("episodic", "0.5 it happened")]
    async with recalling(LoopLayer("session"), *further) as recall:
        result = await recall.answer(AUTH)
    assert contents(result) == ["0.5 it holds", "0.5 it happened"]
    holds, happened = (one.relevance for one in result.items)
    assert happened < holds - 0.1


async def test_the_layer_says_nothing_of_memory_files() -> None:
    planning = LoopLayer("planning", "0.4 noted", "0.4 filed")
    noted, filed = planning.items
    planning.items = [noted, replace(filed, provenance=("file:plans",))]
    async with recalling(LoopLayer("session"), planning) as recall:
        result = await recall.answer(AUTH)
    relevance = {one.item.content: one.relevance for one in result.items}
    assert relevance["0.4 noted"] < relevance["0.4 filed"] == 0.4


async def test_a_cascade_that_is_good_early_leaves_the_other_layers_alone() -> None:
    further = [LoopLayer(name) for name in FURTHER]
    further[0] = LoopLayer("graph", "0.9 auth depends on tokens")
    async with recalling(LoopLayer("session", "0.3 auth, perhaps"), *further) as recall:
        result = await recall.answer(AUTH)
    assert turns(result) == [("graph", "episodic")]
    assert further[4].calls == 0


@pytest.mark.parametrize("depth", [0, 1, 2, 3, 10])
async def test_the_cascade_is_never_deeper_than_told(depth: int) -> None:
    async with recalling(*(LoopLayer(name) for name in ["session", *FURTHER])) as recall:
        result = await recall.answer(AUTH, max_cascade_depth=depth)
    there_are = -(-len(FURTHER) // LAYERS_A_STEP)
    assert len(result.cascade_path) == min(depth, there_are)


async def test_without_cascade_no_further_layer_is_read() -> None:
    async with recalling(*(LoopLayer(name) for name in ["session", *FURTHER])) as recall:
        result = await recall.answer(AUTH, cascade=False)
    assert result.cascade_path == ()


async def test_a_threshold_of_zero_is_met_by_an_empty_answer() -> None:
    async with recalling(LoopLayer("session"), LoopLayer("graph", "0.9 x")) as recall:
        result = await recall.answer(AUTH, confidence_threshold=0.0)
    assert result.cascade_path == ()


@pytest.fixture(scope="module")
def relevance() -> Relevance:
    return Relevance(TextVectors(BundledEncoder()))


async def test_the_default_threshold_can_fire_and_can_not_fire(relevance: Relevance) -> None:
    graph = LoopLayer("graph", "the auth service depends on the token store")
    good = LoopLayer("session", "we are working on auth; to continue: auth needs refresh tokens")
    async with recalling(good, graph, relevance=relevance.of) as recall:
        assert (await recall.answer(AUTH)).cascade_path == ()
    poor = LoopLayer("session", "lunch with Maria at noon")
    async with recalling(poor, graph, relevance=relevance.of) as recall:
        assert turns(await recall.answer(AUTH)) == [("graph",)]


async def test_if_nothing_relevant_is_found_the_answer_is_empty_and_says_so() -> None:
    layers = [LoopLayer(name, f"0.05 {name}") for name in ["session", *FURTHER]]
    async with recalling(*layers) as recall:
        result = await recall.answer(AUTH)
    assert (result.items, result.confidence) == ((), 0.0)
    assert result.reasoning[-1] == "Nothing relevant was found: none of 6 items fits."


@pytest.mark.parametrize(
    "only", [{"cascade": False}, {"max_cascade_depth": 0}, {"layers": ["session"]}]
)
async def test_where_layers_were_not_read_nothing_is_said_of_what_they_store(
    only: dict[str, Any],
) -> None:
    layers = [LoopLayer(name, f"0.05 {name}") for name in ["session", *FURTHER]]
    async with recalling(*layers) as recall:
        result = await recall.answer(AUTH, **only)
    assert result.reasoning[-1] == (
        "Nothing relevant was found in the layers that were read: the one item does not fit."
    )


async def test_a_recall_reads_every_layer_where_the_classifier_would_read_none() -> None:
    session = LoopLayer("session", "0.05 x")
    async with recalling(session, LoopLayer("graph", "0.05 y")) as recall:
        result = await recall.answer("thank you")
    assert (result.items, result.confidence, result.cascade_path) == ((), 0.0, ())
    assert [report.layer for report in result.layers] == ["session", "graph"]


async def test_bare_keywords_are_looked_for_in_all_layers_at_once() -> None:
    async with recalling(LoopLayer("session"), LoopLayer("user", "0.9 Mittens")) as recall:
        result = await recall.answer("Mittens")
    assert contents(result) == ["0.9 Mittens"]
    assert result.cascade_path == ()


async def test_that_a_layer_counts_nothing_is_no_item_and_gives_no_confidence() -> None:
    gap = remembered("meta", "0.9 Nothing is remembered", type="coverage", attributes={"gap": True})
    meta, graph = LoopLayer("meta"), LoopLayer("graph", "0.8 auth")
    meta.items = [gap]
    async with recalling(LoopLayer("session"), meta, graph) as recall:
        result = await recall.answer(AUTH)
    assert contents(result) == ["0.8 auth"]


async def test_what_holds_now_comes_before_what_it_has_replaced() -> None:
    session = LoopLayer("session")
    project = aged(
        "project", {"0.9 database is Postgres": 90, "0.2 moved from Postgres to MySQL": 9}
    )
    async with recalling(session, project) as recall:
        now = await recall.answer("Which database?")
        then = await recall.answer("Which database two months ago?")
    assert contents(now)[0] == "0.2 moved from Postgres to MySQL"
    assert contents(then)[0] == "0.9 database is Postgres"


OLD_MINIMUM = "Minimum order for delivery is 12 euro."
NEW_MINIMUM = "From now on people must order for 18 euro at least, otherwise no delivery."


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What is the minimum for an order?", NEW_MINIMUM),
        ("What was the minimum for an order last year?", OLD_MINIMUM),
    ],
)
async def test_what_has_likely_been_replaced_comes_after_what_holds_then(
    query: str, first: str
) -> None:
    project = aged("project", {OLD_MINIMUM: 400, NEW_MINIMUM: 9})
    given = Given({OLD_MINIMUM: 0.9, NEW_MINIMUM: 0.5})
    async with recalling(LoopLayer("session"), project, relevance=given.of) as recall:
        result = await recall.answer(query)
    assert contents(result)[0] == first
    assert result.conflicts == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The bicycle is serviced at the harbour.", "I drive a grey van now."),
        ("The staging server listens on 9090.", "The production server listens on 8080."),
        ("Delivery is free from 30 euro.", "Delivery takes two days now."),
        ("Mia's road trip began with an accident.", "Mia bought figurines of her family."),
        ("Gina chose cosy furniture for her shop.", "Gina built a new website for her shop."),
        ("My brother sails on the lake now.", "I sail on the lake now, too."),
    ],
)
async def test_a_later_memory_of_another_matter_does_not_come_first(old: str, new: str) -> None:
    project = aged("project", {old: 90, new: 9})
    given = Given({old: 0.9, new: 0.2})
    async with recalling(LoopLayer("session"), project, relevance=given.of) as recall:
        assert contents(await recall.answer("Which one is it?"))[0] == old


async def test_of_two_that_contradict_each_other_the_later_comes_first_and_both_are_named() -> None:
    old, new = "The wifi password is hunter2", "The wifi password is swordfish"
    other = "The mailbox password is xyzzy"
    project = aged("project", {old: 90, new: 9, other: 9})
    given = Given({old: 0.9, new: 0.7, other: 0.6})
    async with recalling(project, relevance=given.of) as recall:
        result = await recall.answer("Which password?", layers=["project"])
    assert [content for content in contents(result) if content != other] == [new, old]
    consistency = {
        one.item.content: one.confidence and one.confidence.consistency for one in result.items
    }
    assert consistency == {old: 0.5, new: 0.5, other: 1.0}
    ids = {one.item.content: one.item.id for one in result.items}
    assert result.conflicts == ((ids[new], ids[old]),)
    places = sorted(contents(result).index(content) + 1 for content in (old, new))
    assert result.reasoning[-1] == (
        f"Items {places[0]} and {places[1]} contradict each other, and item {places[0]}, the later "
        "one, may have replaced the other."
    )


async def test_what_says_that_something_has_changed_is_no_conflict() -> None:
    old, new = "The wifi password is hunter2", "The wifi password is now swordfish"
    project = aged("project", {old: 90, new: 9})
    async with recalling(project, relevance=Given({old: 0.9, new: 0.7}).of) as recall:
        result = await recall.answer("Which password?", layers=["project"])
    assert contents(result) == [new, old]
    assert result.conflicts == ()


async def test_what_a_third_one_has_replaced_is_in_no_conflict() -> None:
    first, second, third = (
        "Ada's manager is Olga.",
        "Ada's manager is Piotr.",
        "Ada's manager is now Ewa.",
    )
    user = aged("user", {first: 200, second: 50, third: 1})
    given = Given({first: 0.8, second: 0.8, third: 0.8})
    async with recalling(user, relevance=given.of) as recall:
        result = await recall.answer("Who is Ada's manager?", layers=["user"])
    assert contents(result)[0] == third
    assert result.conflicts == ()


async def test_a_conflict_stays_though_another_layer_has_replaced_an_item_of_the_same_id() -> None:
    """People name items, and one layer may have a name that another one has."""
    old, new = "Ada's manager is Olga.", "Ada's manager is now Ewa."
    one, other = "Ada's desk code is 4411.", "Ada's desk code is 7320."
    project, user = LoopLayer("project"), LoopLayer("user")
    user.items = [
        replace(remembered("user", old, days_old=200), id="ada"),
        remembered("user", new, days_old=1),
    ]
    project.items = [
        replace(remembered("project", one, days_old=90), id="ada"),
        remembered("project", other, days_old=9),
    ]
    given = Given({old: 0.8, new: 0.8, one: 0.8, other: 0.8})
    async with recalling(project, user, relevance=given.of) as recall:
        result = await recall.answer("What of Ada?", layers=["user", "project"])
    assert [{*pair} for pair in result.conflicts] == [{"ada", other}]


async def test_what_was_replaced_is_found_by_the_name_of_what_replaced_it() -> None:
    project = aged(
        "project",
        {
            "0.01 database is Postgres": 90,
            "0.02 moved from Postgres to MySQL": 9,
            "0.011 the client is written in Vue": 80,
            "0.012 the client is now written in Svelte": 8,
        },
    )
    session = LoopLayer("session", "0.6 MySQL, MySQL, MySQL")
    async with recalling(session, project) as recall:
        both = ["session", "project"]
        before = await recall.answer("What did we use before MySQL?", layers=both)
        now = await recall.answer("What must I do before MySQL starts?", layers=["project"])
    assert contents(before)[:2] == ["0.01 database is Postgres", session.items[0].content]
    assert now.items == ()


async def test_what_held_in_a_period_is_found_though_a_period_asks_for_events_first() -> None:
    project = aged(
        "project",
        {
            "0.3 our database is Postgres": 400,
            "0.01 we moved the database from Postgres to MySQL": 8,
        },
    )
    async with recalling(LoopLayer("session"), project) as recall:
        then = await recall.answer("Which database did we use last year?")
    assert contents(then)[0] == "0.3 our database is Postgres"


async def test_what_was_told_soon_after_the_time_asked_about_speaks_of_it() -> None:
    session = aged(
        "session",
        {
            "0.5 the race was told of that week": 12,
            "0.5 the race was told of much later": 1,
            "0.5 the race was told of before": 40,
        },
    )
    async with recalling(session) as recall:
        told = await recall.answer("How did the race go two weeks ago?")
    soon, later, before = (told_of(told, day) for day in ("week", "later", "before"))
    assert soon > later > before


async def test_what_is_marked_as_superseded_is_shown_to_who_asks_for_the_past() -> None:
    project = LoopLayer("project")
    old = {"superseded_by": "b"}
    project.items = [remembered("project", "0.9 VPN is vpn1", attributes=old)]
    async with recalling(LoopLayer("session"), project) as recall:
        assert contents(await recall.answer("Which VPN?")) == []
        assert contents(await recall.answer("Which VPN did we use previously?")) != []


async def test_what_is_below_the_floor_is_no_answer() -> None:
    session = LoopLayer("session", f"{RELEVANCE_FLOOR - 0.001} below", "0.1 further below")
    async with recalling(session) as recall:
        result = await recall.answer(AUTH)
    assert contents(result) == []


async def test_items_nearly_as_relevant_as_the_best_one_follow_it() -> None:
    found = ("0.05 doubtful", "0.5 the best", "0.01 unrelated")
    async with recalling(LoopLayer("session", *found)) as recall:
        result = await recall.answer(AUTH, cascade=False)
    assert contents(result) == ["0.5 the best", "0.05 doubtful"]


async def test_nothing_follows_what_was_listed() -> None:
    layers = (
        LoopLayer("prospective", "0.01 a finished task"),
        LoopLayer("graph", "0.1 of no kind"),
    )
    async with recalling(*layers) as recall:
        result = await recall.answer(DONE, confidence_threshold=1)
    assert contents(result) == ["0.01 a finished task"]


async def test_what_has_replaced_the_answer_is_found_in_another_layer_and_nothing_else() -> None:
    old, new, other = "The code is 4411.", "The code is 7320.", "The mailbox is red."
    semantic = aged("semantic", {old: 90})
    project = aged("project", {new: 9, other: 9})
    given = Given({old: 0.9, new: 0.5, other: 0.8})
    weights = LayerWeights()
    router = MemoryRouter(
        [semantic, project],
        classifier=TableClassifier(which_code=classified("semantic")),
        weights=weights,
        monotonic=Clock(0.0),
    )
    recall = Recaller(router, relevance=given.of, clock=Clock(NOW.timestamp()))
    answer = await recall.answer("which code")
    alone = await recall.answer("which code", cascade=False)
    await router.aclose()
    weights.close()
    assert contents(alone) == [old]
    assert contents(answer) == [new, old]


async def test_what_has_happened_is_no_answer_to_what_is_to_be_done() -> None:
    episodic = LoopLayer("episodic", "0.1 a fall")
    planning = aged("planning", {"0.01 finish the course by 30 November": 9})
    async with recalling(episodic, planning) as recall:
        result = await recall.answer("What must be finished by the end of this month?")
    assert contents(result) == ["0.01 finish the course by 30 November"]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("What's on next Tuesday?", ["0.01 24 November: site visit"]),
        ("What is planned for next week?", ["0.01 24 November: site visit"]),
        ("What's on next Friday?", []),
        ("What did we do on Tuesday?", []),
    ],
)
async def test_plans_are_listed_for_the_time_that_they_name(query: str, told: list[str]) -> None:
    planning = aged("planning", {"0.01 24 November: site visit": 5})
    async with recalling(LoopLayer("prospective"), planning) as recall:
        assert contents(await recall.answer(query)) == told


async def test_the_graph_lists_nothing() -> None:
    layers = (LoopLayer("graph", "0.1 a service"), LoopLayer("session", "0.01 a talk"))
    async with recalling(*layers) as recall:
        result = await recall.answer("What did we talk about?", layers=["graph", "session"])
    assert contents(result) == ["0.01 a talk"]


async def test_who_asks_for_tasks_is_told_tasks_and_no_events() -> None:
    talk, task = (
        LoopLayer("session", "0.1 a talk"),
        LoopLayer("prospective", "0.01 a finished task"),
    )
    async with recalling(talk, task) as recall:
        result = await recall.answer("What did I finish?")
    assert contents(result) == ["0.01 a finished task"]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("What breaks if Redis is down?", ["0.01 the cart"]),
        ("Which services read from Redis?", ["0.01 the cart"]),
        ("Who owns Redis?", ["0.01 the team"]),
        ("Who is responsible for Redis?", ["0.01 the team"]),
        ("Why is Redis so cheap?", []),
    ],
)
async def test_what_the_graph_reached_from_an_entity_without_an_item_of_its_own_is_an_answer(
    query: str, told: list[str]
) -> None:
    graph = LoopLayer("graph", "0.01 the cart", "0.01 the team", "0.011 the search")
    cart, team, search = graph.items
    graph.items = [
        replace(cart, score=1 / 2, attributes={"relations": ("reads from -> Redis",)}),
        replace(team, score=1 / 2, attributes={"relations": ("Ada -> maintains -> Redis", "odd")}),
        replace(search, score=1 / 70, attributes={"relations": ("uses -> Redis",)}),
    ]
    async with recalling(graph, LoopLayer("session")) as recall:
        result = await recall.answer(query, layers=["graph"])
    assert contents(result) == told


async def test_no_more_than_k_items_are_given_and_the_confidence_is_of_those() -> None:
    useful = [remembered("session", f"0.6 useful {i}", usefulness=1.0) for i in range(3)]
    session = LoopLayer("session")
    session.items = [*useful, remembered("session", "0.65 useless", usefulness=0.0)]
    async with recalling(session) as recall:
        result = await recall.answer(AUTH, k=3)
    assert contents(result) == [item.content for item in useful]
    assert result.confidence == 0.6


async def test_a_likely_answer_is_not_passed_by_an_unlikely_one_that_shares_its_words() -> None:
    session = LoopLayer("session")
    session.items = [
        remembered("session", "0.2 Continue working on auth"),
        remembered("session", "0.6 The login is half done"),
    ]
    async with recalling(session) as recall:
        result = await recall.answer(AUTH)
    assert contents(result) == ["0.6 The login is half done", "0.2 Continue working on auth"]


async def test_copies_are_one_item_with_the_provenance_of_all() -> None:
    session, graph = LoopLayer("session"), LoopLayer("graph")
    session.items = [remembered("session", "0.4 Auth uses JWT", provenance=("file:auth",))]
    graph.items = [remembered("graph", "0.4 Auth  uses JWT")]
    stated = Stated()
    async with recalling(session, graph, relevance=stated.of) as recall:
        result = await recall.answer(AUTH)
    assert [recalled.item.layer for recalled in result.items] == ["session"]
    assert result.items[0].item.provenance == ("file:auth", "graph:0.4 Auth  uses JWT")
    assert [len(report.items) for report in result.layers] == [1, 1]
    assert stated.judged == ["0.4 Auth uses JWT"]


async def test_items_carry_their_place_as_score_and_their_five_factors() -> None:
    session = LoopLayer("session", quality=0.85)
    session.items = [remembered("session", "0.8 auth", days_old=1, tags=("a",))]
    async with recalling(session) as recall:
        (recalled,) = (await recall.answer(AUTH)).items
    assert recalled.item.score_kind is ScoreKind.RERANKED
    assert recalled.item.score == pytest.approx(0.75 + 0.05 * 89 / 90 + 0.2 * 0.5)
    assert recalled.confidence is not None
    assert recalled.confidence.to_dict() == {
        "relevance": 0.8,
        "source_quality": 0.85,
        "recency": pytest.approx(0.95, abs=0.001),
        "consistency": 1.0,
        "completeness": 0.25,
        "overall": pytest.approx(0.81, abs=0.001),
        "level": "high",
    }


async def test_scores_and_reasons_are_left_out_on_request() -> None:
    async with recalling(LoopLayer("session", "0.8 auth")) as recall:
        result = await recall.answer(AUTH, include_confidence_scores=False, explain_reasoning=False)
    assert result.items[0].confidence is None
    assert result.items[0].relevance == 0.8
    assert result.reasoning == ()


async def test_the_reasons_tell_the_path_and_what_is_missing() -> None:
    broken = RaisingLayer("graph", ValueError("no"))
    async with recalling(LoopLayer("session", "0.3 auth", "0.01 lunch"), broken) as recall:
        result = await recall.answer(AUTH)
    assert result.reasoning == (
        "The table says so.",
        "The best answer so far bears on the query with probability 0.30, which is too low; "
        "reading graph made it 0.30.",
        "Layer graph is missing (error): ValueError: no.",
        f"Of 2 items found, 1 bears on the query with probability {RELEVANCE_FLOOR} or more; "
        "the best is given.",
    )
    assert not result.is_complete
    assert [report.status for report in result.layers] == [LayerStatus.OK, LayerStatus.ERROR]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": ""}, "query: empty"),
        ({"context": {"tenant": "x"}}, "scope: unknown 'tenant'"),
        ({"k": 0}, "k: 0 is no whole number"),
        ({"confidence_threshold": 1.5}, r"confidence_threshold: 1.5 is not in \[0, 1\]"),
        ({"confidence_threshold": float("nan")}, "confidence_threshold: nan"),
        ({"max_cascade_depth": -1}, "max_cascade_depth: -1 is no whole number from 0 to 10"),
        ({"max_cascade_depth": 1.5}, "max_cascade_depth: 1.5 is no whole number from 0 to 10"),
    ],
)
async def test_an_argument_that_cannot_be_used_is_named(
    arguments: dict[str, Any], message: str
) -> None:
    async with recalling(LoopLayer("session")) as recall:
        with pytest.raises(InvalidRequest, match=message):
            await recall.answer(**({"query": AUTH} | arguments))


async def test_a_query_that_is_refused_asks_nobody_beside_the_layers() -> None:
    async def waits(query: str, scope: Scope, k: int) -> None:
        await asyncio.get_running_loop().create_future()

    async with recalling(LoopLayer("session"), ask_service=waits) as recall:
        with pytest.raises(InvalidRequest, match="query: empty"):
            await recall.answer("")
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_result_is_plain_json() -> None:
    async with recalling(LoopLayer("session", "0.3 auth"), LoopLayer("graph")) as recall:
        told = json.loads(json.dumps((await recall.answer(AUTH)).to_dict()))
    assert told["items"][0]["score_kind"] == "reranked"
    assert told["items"][0]["confidence"]["level"] == "medium"
    assert told["cascade_path"] == [{"depth": 1, "layers": ["graph"], "before": 0.3, "after": 0.3}]
    assert told["classification"]["secondary"][0]["name"] == "graph"


@pytest.mark.parametrize(
    ("words", "options", "in_loop"),
    [(1, {}, True), (1, {"judges_in_thread": True}, False), (20_000, {}, False)],
)
async def test_what_waits_or_takes_long_is_judged_in_a_thread(
    words: int, options: dict[str, Any], *, in_loop: bool
) -> None:
    where: list[str] = []

    class Remote(Stated):
        def of(
            self, query: str, contents: Sequence[str], questions: Sequence[Sequence[str]] = ()
        ) -> list[Judged]:
            where.append(threading.current_thread().name)
            return super().of(query, contents)

    texts = [f"0.{number} auth{' and' * words}" for number in (9, 8)]
    async with recalling(LoopLayer("session", *texts), relevance=Remote().of, **options) as recall:
        assert contents(await recall.answer(AUTH)) == texts
    assert (where == [threading.main_thread().name]) is in_loop


async def test_what_was_given_is_told_after_the_answer() -> None:
    may_go = threading.Event()
    told: list[str] = []

    def accessed(items: Sequence[MemoryItem]) -> None:
        may_go.wait(60)
        told.extend(item.id for item in items)

    layer = LoopLayer("session", "0.8 auth", "0.01 lunch")
    async with recalling(layer, mark_accessed=accessed) as recall:
        await recall.answer(AUTH)  # comes although nobody could be told yet
        assert told == []
        may_go.set()
    assert told == ["0.8 auth"]


async def test_notes_that_fail_are_logged_in_one_line_and_the_next_ones_are_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[str] = []
    full = [True, True, True, False, True]  # the disk at each note

    def accessed(items: Sequence[MemoryItem]) -> None:
        told.extend(item.id for item in items)
        if full[len(told) - 1]:
            raise OSError("disk full")

    async with recalling(LoopLayer("session", "0.8 auth"), mark_accessed=accessed) as recall:
        for _ in full:
            await recall.answer(AUTH)
            await recall.aclose()
    assert told == ["0.8 auth"] * 5
    # Once when it begins, and once when it begins again: a full disk must not fill the log.
    assert [(record.getMessage(), record.exc_info) for record in caplog.records] == [
        ("it is not noted which memories are given: disk full", None)
    ] * 2


UNIT = st.floats(0, 1)


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.sampled_from(["session", *FURTHER]), UNIT), max_size=12),
    st.integers(1, 6),
    UNIT,
    st.integers(0, 3),
)
def test_every_answer_is_bounded_ordered_and_as_confident_as_its_best_item(
    stored: list[tuple[str, float]], k: int, threshold: float, depth: int
) -> None:
    async def run() -> RecallResult:
        held = {
            name: LoopLayer(
                name, *(f"{r} item {i}" for i, (at, r) in enumerate(stored) if at == name)
            )
            for name in ["session", *FURTHER]
        }
        async with recalling(*held.values()) as recall:
            return await recall.answer(
                AUTH, k=k, confidence_threshold=threshold, max_cascade_depth=depth
            )

    result = asyncio.run(run())
    scores = [recalled.item.score for recalled in result.items if recalled.item.score is not None]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) == len(result.items) <= k
    assert len(result.cascade_path) <= depth
    if result.items:
        assert result.confidence >= RELEVANCE_FLOOR
        assert all(one.relevance >= result.confidence / MAX_RELEVANCE_RATIO for one in result.items)
    assert result.confidence == max((r.relevance for r in result.items), default=0.0)
    assert all(step.before < threshold for step in result.cascade_path)


async def test_a_question_for_what_was_in_use_then_is_answered_by_what_has_been_replaced() -> None:
    project = aged(
        "project",
        {
            "0.011 our database is Postgres": 400,
            "0.01 we moved the database from Postgres to MySQL": 8,
            "0.012 the mascot is a heron": 400,
        },
    )
    async with recalling(LoopLayer("session"), project) as recall:
        then = await recall.answer("What did we use last year?")
        now = await recall.answer("What do we use?")
    assert contents(then)[0] == "0.011 our database is Postgres"
    assert then.confidence > 0.5
    assert now.items == ()
