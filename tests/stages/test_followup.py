"""Follow-ups: what is read with the user's latest turn, and what is read alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from cascade import shipped_router

from router.request import Request, Turn
from router.stages.followup import MAX_SHOWN_CHARACTERS, Reading, read, stands_alone

BOOKED = (Turn("user", "book a table for two"), Turn("assistant", "Which restaurant?"))


@pytest.mark.parametrize(
    "request_",
    [
        "do it again",
        "and in German?",
        "now run them",
        "what about the other one",
        "the blue one",
        "yes",
        "no, the day after",
        "make it shorter",
        "ok, and now push it",
        "without the two outliers?",
        "who said that?",
        "a bit darker, and without the bird",
        "shorter sentences for the summary",
    ],
)
def test_a_request_that_points_back_does_not_stand_alone(request_: str) -> None:
    assert not stands_alone(request_)
    reading = read(Request.parse(request_, history=BOOKED))
    assert reading == Reading(f"book a table for two\n{request_}", 1)


@pytest.mark.parametrize(
    "request_",
    [
        "write unit tests for the invoice calculator",
        "rename all jpeg files in the assets folder",
        "now write an integration test for the payment service and its retry queue",
        "which process is listening on port 8080",
        "Docker container keeps restarting",
        "Server returns 502 errors",
        "User login fails on Safari",
    ],
)
def test_a_request_that_stands_alone_is_read_alone(request_: str) -> None:
    assert read(Request.parse(request_, history=BOOKED)) == Reading(request_)


def test_without_a_history_there_is_nothing_to_read_with() -> None:
    assert read(Request.parse("do it again")) == Reading("do it again")


def test_what_the_assistant_said_is_not_read() -> None:
    history = (Turn("assistant", "I can book tables."),)
    assert read(Request.parse("do it", history=history)) == Reading("do it")


def test_a_turn_that_says_nothing_is_passed_over() -> None:
    asked = Request.parse("again", history=["book a table for two", "ok thanks"])
    assert read(asked) == Reading("book a table for two\nagain", 1)


def test_a_turn_that_cannot_stand_alone_is_read_with_the_one_before_and_no_further() -> None:
    history = ["plan my trip to Oslo", "book a table for two tonight", "at the harbour then"]
    asked = Request.parse("make it three", history=history)
    assert read(asked) == Reading(
        "book a table for two tonight\nat the harbour then\nmake it three", 2
    )


def test_the_trace_says_what_was_read() -> None:
    reading = Reading("x" * 1_000, 1)
    assert reading.evidence == {"turns_read": 1, "text_read": "x" * MAX_SHOWN_CHARACTERS + "…"}
    assert reading.explained("it fits") == "it fits; read with the user's latest turn"
    assert Reading("x").explained("it fits") == "it fits"


async def test_a_router_without_an_llm_reads_a_follow_up_with_what_it_follows(
    tmp_path: Path,
) -> None:
    history = [
        {"role": "user", "content": "squash the last four commits on this branch"},
        {"role": "assistant", "content": "Done."},
    ]
    async with shipped_router(tmp_path) as router:
        alone = await router.route("now the same for the other two")
        result = await router.route("now the same for the other two", history=history)
        ranked = await router.rank("now the same for the other two", history=history)
    assert alone.selected_skills != ("git",)
    assert result.selected_skills == ("git",)
    evidence = result.trace[3].evidence
    assert evidence["turns_read"] == 1
    assert evidence["text_read"] == f"{history[0]['content']}\nnow the same for the other two"
    assert result.reasoning.endswith("; read with the user's latest turn")
    assert ranked.selected == ("git",)


async def test_a_follow_up_gets_a_further_skill_only_where_a_clause_surely_asks_for_it(
    tmp_path: Path,
) -> None:
    averages = ["average weekly revenue from revenue.csv"]
    others = ["look up what others charge for this"]
    async with shipped_router(tmp_path) as router:
        unsure = await router.route("and without the two freak weeks?", history=averages)
        sure = await router.route("put it in a spreadsheet and write a summary", history=others)
    assert unsure.selected_skills == ("data-analysis",)
    assert set(sure.selected_skills) == {"data-analysis", "writer", "web-research"}
