"""The memory router: which layers are read, what is cached, and what feedback changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_layers import (
    NOW,
    LoopLayer,
    RaisingLayer,
    TableClassifier,
    WaitingLayer,
    classified,
    remembered,
)

from router.errors import InvalidRequest, LayerError
from router.memory.model import (
    NOBODY,
    AnyLayer,
    Classification,
    LayerQuery,
    LayerStatus,
    MemoryItem,
    QueryType,
    Scope,
)
from router.memory.recall.answers import MemoryRoute
from router.memory.recall.memory_router import CACHE_SECONDS, MAX_K, MemoryRouter
from router.memory.recall.weights import LayerWeights
from router.text import normalise

AUTH = "continue working on auth"
JWT = "what is jwt?"
AMPLE = 30.0


def table() -> TableClassifier:
    return TableClassifier(
        **{
            AUTH: classified("session", "project", secondary=["graph", "episodic"]),
            JWT: classified("semantic", types=(QueryType.FACTUAL,)),
        }
    )


def layers() -> list[LoopLayer]:
    names = ("session", "project", "graph", "episodic", "semantic")
    return [LoopLayer(name, f"{name} on auth") for name in names]


@asynccontextmanager
async def routing(installed: Sequence[AnyLayer], **options: Any) -> AsyncIterator[MemoryRouter]:
    weights = LayerWeights()
    defaults: dict[str, Any] = {
        "classifier": table(),
        "weights": weights,
        "clock": Clock(NOW.timestamp()),
        "monotonic": Clock(0.0),
        "layer_deadline_seconds": AMPLE,
        "deadline_seconds": AMPLE,
    }
    router = MemoryRouter(installed, **(defaults | options))
    try:
        yield router
    finally:
        await router.aclose()
        weights.close()


def read(route: MemoryRoute) -> list[str]:
    return [report.layer for report in route.results]


async def test_the_layers_that_the_query_calls_for_are_read_heaviest_first() -> None:
    async with routing(layers()) as router:
        route = await router.route(AUTH, scope=NOBODY)
    assert [(report.layer, report.weight) for report in route.results] == [
        ("session", 1.0),
        ("project", 0.9),
    ]
    assert [choice.name for choice in route.secondary] == ["graph", "episodic"]
    assert route.stats.layers_queried == 2


async def test_a_query_that_needs_no_memory_reads_none() -> None:
    installed = layers()
    async with routing(installed) as router:
        route = await router.route("thank you", scope=NOBODY)
    assert route.results == ()
    assert sum(layer.calls for layer in installed) == 0


async def test_layers_that_are_not_installed_are_passed_over() -> None:
    async with routing([LoopLayer("project"), LoopLayer("episodic")]) as router:
        route = await router.route(AUTH, scope=NOBODY)
    assert read(route) == ["project"]
    assert [choice.name for choice in route.secondary] == ["episodic"]


@pytest.mark.parametrize(
    ("query", "layers_read"),
    [
        ("What does CA-107 use?", ["semantic", "graph"]),
        ("What do we use for backups?", ["semantic"]),
        ("Is CA-107 in use?", ["semantic"]),
    ],
)
async def test_what_something_needs_is_looked_up_in_the_graph_as_well(
    query: str, layers_read: list[str]
) -> None:
    known = TableClassifier(
        **{normalise(query): classified("semantic", secondary=["project", "episodic"])}
    )
    async with routing(layers(), classifier=known) as router:
        route = await router.route(query, scope=NOBODY)
    assert read(route) == layers_read
    assert [choice.name for choice in route.secondary] == ["project", "episodic"]


async def test_a_query_for_which_no_layer_is_chosen_does_not_choose_the_graph() -> None:
    query = "What does CA-107 use?"
    async with routing(
        layers(), classifier=TableClassifier(**{normalise(query): classified()})
    ) as router:
        route = await router.route(query, scope=NOBODY)
    assert read(route) == []


async def test_where_no_primary_layer_is_installed_the_best_other_one_is_read() -> None:
    async with routing([LoopLayer("episodic"), LoopLayer("graph")]) as router:
        route = await router.route(AUTH, scope=NOBODY)
    assert read(route) == ["graph"]


async def test_named_layers_are_read_whatever_the_query_asks_for() -> None:
    async with routing(layers()) as router:
        route = await router.route("thank you", scope=NOBODY, layers=["graph", "semantic"])
    assert read(route) == ["graph", "semantic"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": " "}, "query: empty"),
        ({"query": "x" * 2001}, "query: 2,001 characters; at most 2,000"),
        ({"k": 0}, "k: 0 is no whole number from 1 to 100"),
        ({"k": MAX_K + 1}, "k: 101 is no whole number from 1 to 100"),
        ({"layers": ["nowhere"]}, "layers: no layer is named 'nowhere'"),
        ({"layers": "graph"}, "layers: expected a list of names, not one string"),
    ],
)
async def test_an_argument_that_cannot_be_used_is_named(
    arguments: dict[str, Any], message: str
) -> None:
    async with routing(layers()) as router:
        call: dict[str, Any] = {"query": AUTH, "scope": NOBODY}
        with pytest.raises(InvalidRequest, match=message):
            await router.route(**(call | arguments))


async def test_partial_results_are_kept_unless_the_caller_is_strict() -> None:
    broken = RaisingLayer("project", ValueError("no"))
    async with routing([LoopLayer("session", "here"), broken]) as router:
        route = await router.route(AUTH, scope=NOBODY)
        assert [report.status for report in route.results] == [LayerStatus.OK, LayerStatus.ERROR]
        with pytest.raises(LayerError, match="layer project: error: ValueError: no"):
            await router.route(AUTH, scope=NOBODY, strict=True)


async def test_a_classifier_that_takes_long_leaves_the_layers_their_time() -> None:
    clock = Clock(0.0)

    class Slow(TableClassifier):
        def classify(self, query: str) -> Classification:
            clock.now += 10 * AMPLE
            return classified("session")

    async with routing(layers(), classifier=Slow(), monotonic=clock) as router:
        assert read(await router.route(AUTH, scope=NOBODY)) == ["session"]


async def test_the_overall_deadline_bounds_the_route() -> None:
    waiting = WaitingLayer("session")
    async with routing([waiting], deadline_seconds=0.02) as router:
        route = await router.route(AUTH, scope=NOBODY)
    assert route.results[0].status is LayerStatus.TIMEOUT


async def test_an_equal_query_is_answered_from_the_cache_under_an_id_of_its_own() -> None:
    installed = layers()
    async with routing(installed) as router:
        first = await router.route(AUTH, scope=NOBODY)
        again = await router.route(AUTH.capitalize() + ".", scope=NOBODY)
    assert not first.stats.cache_hit
    assert again.stats.cache_hit
    assert again.results == first.results
    assert again.query == "Continue working on auth."
    assert again.id != first.id
    assert installed[0].calls == 1


@pytest.mark.parametrize(
    "change",
    [
        {"scope": Scope(user="alice")},
        {"k": 6},
        {"layers": ["session"]},
        {"query": "continue working on auth?"},
    ],
)
async def test_a_call_that_differs_in_anything_is_answered_anew(change: dict[str, Any]) -> None:
    async with routing(layers()) as router:
        call: dict[str, Any] = {"query": AUTH, "scope": NOBODY, "k": 5, "layers": None}
        await router.route(**call)
        assert not (await router.route(**(call | change))).stats.cache_hit
        assert (await router.route(**call)).stats.cache_hit


async def test_a_partial_answer_is_not_cached() -> None:
    raising = RaisingLayer("session", ValueError())
    async with routing([raising]) as router:
        await router.route(AUTH, scope=NOBODY)
        raising.error = None
        route = await router.route(AUTH, scope=NOBODY)
    assert not route.stats.cache_hit
    assert route.results[0].status is LayerStatus.EMPTY


async def test_an_answer_is_forgotten_after_five_minutes() -> None:
    monotonic = Clock(0.0)
    async with routing(layers(), monotonic=monotonic) as router:
        await router.route(AUTH, scope=NOBODY)
        monotonic.now = CACHE_SECONDS - 1
        assert (await router.route(AUTH, scope=NOBODY)).stats.cache_hit
        monotonic.now = CACHE_SECONDS
        assert not (await router.route(AUTH, scope=NOBODY)).stats.cache_hit


async def test_a_write_drops_what_was_cached_before_it() -> None:
    writes = [0]
    session = LoopLayer("session")
    async with routing([session], generation=lambda: writes[0]) as router:
        await router.route(AUTH, scope=NOBODY)
        session.items = [remembered("session", "written since")]
        writes[0] += 1
        route = await router.route(AUTH, scope=NOBODY)
    assert [item.content for item in route.results[0].items] == ["written since"]


async def test_what_was_read_before_a_write_is_not_served_after_it() -> None:
    writes = [0]
    slow = WaitingLayer("session")
    async with routing([slow], generation=lambda: writes[0]) as router:
        early = asyncio.ensure_future(router.route(AUTH, scope=NOBODY))
        await slow.begun.wait()
        writes[0] += 1
        slow.go.set()
        await early
        assert not (await router.route(AUTH, scope=NOBODY)).stats.cache_hit


async def test_yesterday_is_another_day_after_midnight() -> None:
    clock = Clock(datetime(2026, 11, 20, 23, 59, tzinfo=UTC).timestamp())
    asked: list[LayerQuery] = []

    class Diary(LoopLayer):
        async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
            asked.append(query)
            return []

    question = "what did we do yesterday?"
    async with routing([Diary("episodic")], clock=clock) as router:
        for now in (clock.now, clock.now + 30, clock.now + 120):
            clock.now = now
            await router.route(question, scope=NOBODY, layers=["episodic"])
    assert [query.period.start.day for query in asked if query.period] == [19, 20]


async def test_equal_calls_at_the_same_time_share_one_reading() -> None:
    slow = WaitingLayer("session", "here")
    async with routing([slow]) as router:
        calls = [asyncio.ensure_future(router.route(AUTH, scope=NOBODY)) for _ in range(5)]
        await slow.begun.wait()
        slow.go.set()
        routes = await asyncio.gather(*calls)
    assert slow.calls == 1
    assert len({route.id for route in routes}) == 5


async def test_feedback_changes_the_order_of_the_layers() -> None:
    async with routing(layers()) as router:
        route = await router.route(AUTH, scope=NOBODY)
        for _ in range(2):
            await router.feedback("project", useful=True, route_id=route.id)
        route = await router.route(AUTH, scope=NOBODY)
    assert read(route) == ["project", "session"]
    assert all(0 < report.weight <= 1 for report in route.results)


async def test_feedback_changes_which_layers_are_read_but_not_how_many() -> None:
    async with routing(layers()) as router:
        for _ in range(3):
            await router.feedback("episodic", useful=True, query=AUTH)
            await router.feedback("project", useful=False, query=AUTH)
        route = await router.route(AUTH, scope=NOBODY)
        assert read(route) == ["session", "episodic"]
        assert [choice.name for choice in route.secondary] == ["graph", "project"]
        await router.reset_weights()
        assert read(await router.route(AUTH, scope=NOBODY)) == ["session", "project"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": "nowhere", "query": AUTH}, "no layer is named 'nowhere'"),
        ({"layer": "graph"}, "give either route_id or query"),
        ({"layer": "graph", "route_id": "x", "query": AUTH}, "either route_id or query"),
        ({"layer": "graph", "query": "thank you"}, "no layer is read for it"),
        ({"layer": "graph", "route_id": "x"}, "'x' is none of the latest answers"),
    ],
)
async def test_feedback_that_names_no_answer_is_refused(
    arguments: dict[str, Any], message: str
) -> None:
    async with routing(layers()) as router:
        with pytest.raises(InvalidRequest, match=message):
            await router.feedback(**arguments, useful=True)


async def test_status_shows_layers_weights_and_cache() -> None:
    async with routing([LoopLayer("session", "here"), LoopLayer("project")]) as router:
        await router.route(AUTH, scope=NOBODY)
        await router.route(AUTH, scope=NOBODY)
        await router.feedback("session", useful=True, query=AUTH)
        shown = router.status().to_dict()
    assert shown == {
        "layers": [
            {
                "name": name,
                "description": f"what {name} holds",
                "breaker": "closed",
                "running": 0,
                "late": 0,
            }
            for name in ("session", "project")
        ],
        "weight_factors": {"temporal": {"session": pytest.approx(1.1)}},
        "cache": {"entries": 1, "hits": 1, "misses": 1},
    }


NAMES = st.sampled_from([None, "a", "b"])
SCOPES = st.builds(Scope, user=NAMES, project=NAMES, session=NAMES)


class LeakyLayer(LoopLayer):
    """Forgets to apply the scope."""

    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        return self.items[:k]


@settings(max_examples=100)
@given(
    stored=st.lists(SCOPES, max_size=8),
    asking=st.lists(st.tuples(SCOPES, st.integers(1, 3)), min_size=1, max_size=8),
)
def test_no_answer_holds_what_its_scope_must_not_see(
    stored: list[Scope], asking: list[tuple[Scope, int]]
) -> None:
    async def run() -> None:
        tight, leaky = LoopLayer("session"), LeakyLayer("project")
        for layer in (tight, leaky):
            layer.items = [
                remembered(layer.spec.name, f"canary {place}", scope=scope)
                for place, scope in enumerate(stored)
            ]
        async with routing([tight, leaky]) as router:
            for scope, k in asking * 2:  # the second time from the cache
                route = await router.route(AUTH, scope=scope, k=k)
                for report in route.results:
                    assert all(scope.sees(item.scope) for item in report.items)

    asyncio.run(run())
