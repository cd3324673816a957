from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from adapters.toolbox import DESCRIPTIONS, EXPECTED, TURNS, openai_tools
from hypothesis import given, settings
from hypothesis import strategies as st

from router.adapters import selection
from router.adapters.anthropic import AnthropicTools
from router.adapters.definitions import by_name
from router.adapters.openai import OpenAITools
from router.adapters.selection import ToolSelector
from router.errors import InvalidRequest, SourceError
from router.events import Degraded, Event
from router.stages import reply
from router.tools.tool import Tool

OFFERED = by_name(openai_tools())


@pytest.fixture(scope="module")
def shared() -> Iterator[ToolSelector]:
    with ToolSelector(limit=3, timeout=60) as selector:
        selector.prepare(OFFERED)
        yield selector


@pytest.fixture
def selector() -> Iterator[ToolSelector]:
    with ToolSelector(limit=3, timeout=60) as selector:
        yield selector


def test_each_turn_adds_the_tool_that_it_needs(shared: ToolSelector) -> None:
    for number, wanted in enumerate(EXPECTED, start=1):
        assert wanted in shared.select(TURNS[:number], OFFERED)


def test_a_turn_adds_at_most_the_limit(shared: ToolSelector) -> None:
    assert [len(shared.select(TURNS[:number], OFFERED)) for number in (1, 2)] == [3, 6]


@pytest.mark.parametrize("said", ["thanks", "ok, thank you!", "yes please", "👍"])
def test_a_turn_that_says_nothing_adds_no_tool_and_hides_no_subject(
    shared: ToolSelector, said: str
) -> None:
    asked = ["What's the weather in Oslo tomorrow?"]
    before = shared.select(asked, OFFERED)
    assert shared.select([*asked, said], OFFERED) == before
    assert len(shared.select([said], OFFERED)) == 3
    with ToolSelector(limit=3, timeout=60, sticky=False) as latest:
        direct = latest.select([*asked, "and in Bergen?"], OFFERED)
        assert latest.select([*asked, said, "and in Bergen?"], OFFERED) == direct


@pytest.mark.parametrize("pasted", ["\x1b[31m{}\x1b[0m\0", "{}\ud83d", "{}" + 120_000 * " ."])
def test_a_pasted_log_costs_a_conversation_no_more_than_its_words(
    shared: ToolSelector, pasted: str
) -> None:
    asked = ["What's the weather in Oslo tomorrow?", "and in Bergen?"]
    logged = [pasted.format(asked[0]), asked[1]]
    for number in (1, 2):
        assert len(shared.select(logged[:number], OFFERED)) <= 3 * number < len(OFFERED)


@given(order=st.lists(st.sampled_from([*TURNS, "thanks", "lock up and go"]), max_size=6))
@settings(max_examples=25)
def test_tools_are_only_appended_within_a_conversation(
    shared: ToolSelector, order: list[str]
) -> None:
    shown: list[str] = []
    for number in range(1, len(order) + 1):
        now = shared.select(order[:number], OFFERED)
        assert now[: len(shown)] == shown
        shown = now


def test_the_tools_of_one_turn_stand_in_catalog_order(shared: ToolSelector) -> None:
    catalog = list(DESCRIPTIONS)
    first = shared.select(TURNS[:1], OFFERED)
    assert first == sorted(first, key=catalog.index)


def test_a_conversation_gets_the_same_tools_in_another_process(
    shared: ToolSelector, selector: ToolSelector
) -> None:
    for number in (1, 2, 3):
        shared.select(TURNS[:number], OFFERED)
    assert selector.select(TURNS, OFFERED) == shared.select(TURNS, OFFERED)


def test_without_stickiness_only_the_latest_turn_counts() -> None:
    with ToolSelector(limit=3, sticky=False, timeout=60) as selector:
        assert len(selector.select(TURNS, OFFERED)) == 3
        assert EXPECTED[2] in selector.select(TURNS, OFFERED)


def test_few_tools_are_all_shown(selector: ToolSelector) -> None:
    few = dict(list(OFFERED.items())[:3])
    assert selector.select(TURNS[:1], few) == list(few)


def test_without_a_request_every_tool_is_shown(selector: ToolSelector) -> None:
    assert selector.select([], OFFERED) == list(OFFERED)


def test_what_is_always_included_is_there_in_every_turn() -> None:
    with ToolSelector(limit=3, always_include=["lock_door"], timeout=60) as selector:
        assert "lock_door" in selector.select(TURNS[:1], OFFERED)


def test_another_agent_is_shown_only_what_it_has(shared: ToolSelector) -> None:
    fewer = {name: tool for name, tool in OFFERED.items() if name != "get_weather"}
    shown = shared.select(TURNS[:1], fewer)
    assert "get_weather" not in shown
    assert len(shown) == 3


def test_a_tool_that_cannot_be_read_is_always_shown(selector: ToolSelector) -> None:
    odd: dict[str, object] = {"odd": {"name": "odd", "input_schema": "not a schema"}, **OFFERED}
    shown = selector.select(TURNS[:1], odd)
    assert shown[0] == "odd"
    assert len(shown) == 4


def test_a_changed_tool_is_found_by_its_new_text(selector: ToolSelector) -> None:
    selector.select(TURNS[:1], OFFERED)
    changed = dict(OFFERED)
    changed["resize_image"] = {
        "name": "resize_image",
        "description": "Water the tomatoes in the greenhouse.",
        "input_schema": {"type": "object"},
    }
    assert "resize_image" in selector.select(["water the tomatoes in the greenhouse"], changed)


def test_a_router_that_fails_shows_every_tool_and_says_so() -> None:
    selector = ToolSelector(limit=3, timeout=60)
    events: list[Event] = []
    selector.prepare(OFFERED)
    selector.events.subscribe(events.append)
    selector._ranker.close()
    assert selector.select(TURNS[:1], OFFERED) == list(OFFERED)
    [event] = events
    assert isinstance(event, Degraded)
    assert "every tool is shown" in event.reason
    selector.close()


async def test_a_fault_that_nobody_foresaw_shows_every_tool_too() -> None:
    """Such as one of a framework that is asked for the schema of a tool."""

    def broken(tool: object) -> Tool:
        raise ValueError(f"no schema for {type(tool).__name__}")

    with ToolSelector(limit=3, timeout=60, read=broken) as selector:
        assert selector.select(TURNS[:1], OFFERED) == list(OFFERED)
        assert await selector.aselect(TURNS[1:], OFFERED) == list(OFFERED)
        assert await selector.asearch("water the tomatoes", OFFERED) == list(OFFERED)


async def test_a_router_that_is_late_shows_every_tool_and_none_is_taken_away_later() -> None:
    reading, go_on = threading.Event(), threading.Event()

    def slow(tool: object) -> None:
        reading.set()
        go_on.wait(30)
        raise SourceError("tools", "", "read too late")

    with ToolSelector(limit=3, timeout=0.05, read=slow) as selector:  # type: ignore[arg-type]
        assert await selector.aselect(TURNS[:1], OFFERED) == list(OFFERED)
        assert reading.is_set()
        go_on.set()
        assert selector.select(TURNS[:1], OFFERED) == list(OFFERED)


def test_a_selection_that_came_too_late_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it would find out, every tool is shown already; closing must not wait for it."""
    ranking, go_on = threading.Event(), threading.Event()
    ranked: list[str] = []

    def slow(request: str, *args: object, **options: object) -> tuple[str, ...]:
        ranked.append(request)
        ranking.set()
        go_on.wait(30)
        return ()

    with ToolSelector(limit=3, timeout=0.05) as selector:
        selector.prepare(OFFERED)
        monkeypatch.setattr(selector._ranker, "rank", slow)
        assert selector.select(TURNS, OFFERED) == list(OFFERED)
        assert ranking.wait(30)
        go_on.set()
    assert ranked == [TURNS[0]]


def test_a_long_conversation_is_read_a_bounded_number_of_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[str] = []

    def says_nothing(text: str) -> bool:
        looked_at.append(text)
        return reply.says_nothing(text)

    monkeypatch.setattr(selection, "says_nothing", says_nothing)
    turns = [*TURNS, "thanks"] * 30
    with ToolSelector(limit=3, timeout=60) as selector:
        monkeypatch.setattr(selector._ranker, "rank", lambda *args, **options: ())
        selector.select(turns, OFFERED)
    assert len(looked_at) <= 2 * len(turns)


def test_a_failure_in_a_later_turn_keeps_what_was_shown_in_front() -> None:
    with ToolSelector(limit=3, timeout=60) as selector:
        shown = selector.select(TURNS[2:], OFFERED)
        assert shown != list(OFFERED)[:3]
        selector._ranker.close()
        every = selector.select((TURNS[2], TURNS[0]), OFFERED)
    assert every[:3] == shown
    assert sorted(every) == sorted(OFFERED)


def test_a_tool_that_was_called_is_shown_and_stays_where_it_is(selector: ToolSelector) -> None:
    first = selector.select(TURNS[:1], OFFERED)
    assert "resize_image" not in first
    called = selector.select(TURNS[:1], OFFERED, called=["resize_image", "unknown"])
    assert called == [*first, "resize_image"]
    assert selector.select(TURNS[:2], OFFERED)[:4] == called


async def test_threads_and_loops_share_one_selector(shared: ToolSelector) -> None:
    assert await shared.aselect(TURNS, OFFERED) == shared.select(TURNS, OFFERED)


async def test_a_search_gives_the_best_first(shared: ToolSelector) -> None:
    assert (await shared.asearch("reserve a restaurant table", OFFERED, limit=2))[0] == "book_table"


@pytest.mark.parametrize("adapter", [OpenAITools, AnthropicTools])
def test_what_is_no_definition_is_refused_in_a_sentence(adapter: Callable[..., object]) -> None:
    with pytest.raises(SourceError, match=r"'tool 2': expected a definition .*, not function"):
        adapter([{"type": "function", "name": "a"}, lambda: None])


@pytest.mark.parametrize(
    ("adapter", "definition"),
    [
        (OpenAITools, {"name": "roster", "description": "Who works when.", "inputSchema": {}}),
        (OpenAITools, {"name": "roster", "description": "Who works when.", "input_schema": {}}),
        (AnthropicTools, {"name": "roster", "description": "Who works.", "inputSchema": {}}),
        (AnthropicTools, {"type": "function", "name": "roster", "parameters": {}}),
        (AnthropicTools, {"type": "function", "function": {"name": "roster"}}),
    ],
)
def test_a_definition_of_another_api_is_refused(
    adapter: Callable[..., object], definition: dict[str, object]
) -> None:
    with pytest.raises(SourceError, match=r"'(roster|tool 1)': expected a definition of \w+'s API"):
        adapter([definition])


def test_two_tools_of_one_name_are_refused() -> None:
    tools = openai_tools()
    with pytest.raises(SourceError, match="two tools have this name"):
        by_name([*tools, tools[0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 0}, "limit: 0; expected 1 to 1,000"),
        ({"limit": "8"}, "limit: '8'; expected 1 to 1,000"),
        ({"timeout": 0}, "timeout: 0; expected a number of seconds above 0"),
        ({"timeout": "5"}, "timeout: '5'; expected a number of seconds above 0"),
        ({"sticky": "no"}, "sticky: expected bool, not str"),
        ({"server": 5}, "server: expected str, not int"),
        ({"server": "http://localhost", "key": 5}, "server: the key: expected str, not int"),
        ({"timeout": float("nan")}, "timeout: nan; expected a number of seconds above 0"),
        ({"always_include": "x"}, "always_include: expected a list of names, not one string"),
    ],
)
def test_an_option_that_can_never_work_is_refused_at_once(
    options: dict[str, Any], message: str
) -> None:
    """A selector that failed in every turn would show every tool, and nobody might notice."""
    with pytest.raises(InvalidRequest) as caught:
        ToolSelector(**options)
    assert str(caught.value) == message
