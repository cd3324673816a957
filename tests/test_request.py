"""Requests are bounded and checked before anything looks at them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import TextBlock, Usage
from cpu_time import cpu_time_at_most
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from router.errors import InvalidRequest, RouterError
from router.request import (
    MAX_HISTORY_CHARACTERS,
    MAX_HISTORY_TURNS,
    MAX_REQUEST_CHARACTERS,
    AnyTurn,
    Request,
    Turn,
    visible,
)


@pytest.mark.parametrize(
    "text",
    [
        "What is JWT?",
        "naïve façade\nsecond line\ttab",
        "ok",
        "修复这个错误",
        "👩‍👩‍👧 rtl: שלום",
        "'\"; DROP --",
    ],
)
def test_natural_language_is_accepted(text: str) -> None:
    assert Request.parse(text).text == text


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000", "\x1b[0m"])
def test_an_empty_request_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="request: empty"):
        Request.parse(text)


@pytest.mark.parametrize(
    ("pasted", "seen"),
    [
        ("a\x00b", "ab"),
        ("\x1b[1;31merror:\x1b[0m no\tsuch\r\nfile\x1b[K", "error: no\tsuch\r\nfile"),
        ("\x9b31mred\x9b0m \x07bell\x7f\x85", "red bell"),
        ("\x1b]0;a title\x07\x1b]8;;http://x\x1b\\a link\x1b]8;;\x1b\\", "a link"),
        ("\x1b(B\x1b7\x1b[?25lspinner\x1b8\x1b=", "spinner"),
        ("\x1b]0;the title never ends", "0;the title never ends"),
        ("\x1b]0;a title\x9d0;another\x9cseen", "0;a titleseen"),
        ("hidden \u202e\u200b stay", "hidden \u202e\u200b stay"),
    ],
)
def test_of_a_pasted_terminal_log_what_a_person_sees_is_read(pasted: str, seen: str) -> None:
    assert Request.parse(pasted).text == seen
    assert Request.parse("x", history=[pasted]).history == (Turn("user", seen),)


def test_titles_that_never_end_are_read_in_one_pass() -> None:
    """A turn of 100,000 of their beginnings took minutes."""
    with cpu_time_at_most(1):
        assert visible("\x90" * MAX_HISTORY_CHARACTERS) == ""
        assert visible("\x1b]x\x9d" * 25_000) == "x" * 25_000


def test_what_is_not_utf_8_is_not_called_a_control_character() -> None:
    """A terminal with another encoding makes it of each letter that is not English."""
    with pytest.raises(
        InvalidRequest, match=r"not UTF-8, or half a character: U\+DCC3 at position 1"
    ):
        Request.parse("L\udcc3\udcb6gin")


def test_the_longest_request_is_accepted_and_one_more_character_is_not() -> None:
    Request.parse("x" * MAX_REQUEST_CHARACTERS)
    with pytest.raises(InvalidRequest, match="at most 20,000"):
        Request.parse("x" * (MAX_REQUEST_CHARACTERS + 1))


@pytest.mark.parametrize("text", [None, 3, b"bytes", ["list"]])
def test_a_request_that_is_no_string_is_refused(text: object) -> None:
    with pytest.raises(InvalidRequest, match="request: expected a string"):
        Request.parse(text)  # type: ignore[arg-type]  # the point of the test


def test_available_skills_are_sorted_without_repeats() -> None:
    assert Request.parse("x", available=["b", "a", "b"]).available == ("a", "b")


def test_no_available_skills_is_not_the_same_as_all() -> None:
    assert Request.parse("x", available=[]).available == ()
    assert Request.parse("x").available is None


@pytest.mark.parametrize("available", ["git", 5, [1], [None, "git"]])
def test_available_skills_must_be_a_list_of_names(available: object) -> None:
    with pytest.raises(InvalidRequest, match="available skills: "):
        Request.parse("x", available=available)  # type: ignore[arg-type]  # the point of the test


def test_a_bare_string_in_history_is_a_users_turn() -> None:
    asked = Request.parse("and now?", history=["first", Turn("assistant", "done")])
    assert asked.history == (Turn("user", "first"), Turn("assistant", "done"))


@pytest.mark.parametrize(
    ("messages", "turns"),
    [
        (
            [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "what is in cart.csv?"},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
                {"role": "tool", "content": "a,b", "tool_call_id": "1"},
                {"role": "assistant", "content": "\n\n", "tool_calls": [{"id": "2"}]},
                {"role": "assistant", "content": [{"type": "text", "text": "Two columns."}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "like here"},
                        {"type": "image_url", "image_url": {"url": "data:"}},
                        {"type": "text", "text": "please"},
                    ],
                },
                {"role": "user", "text": "and now?"},
                {"role": "user", "content": [{}]},
            ],
            (
                Turn("user", "what is in cart.csv?"),
                Turn("assistant", "Two columns."),
                Turn("user", "like here\nplease"),
                Turn("user", "and now?"),
            ),
        ),
        (
            [
                {"role": "user", "content": "what is in cart.csv?"},
                ChatCompletionMessage(role="assistant", content=None),
                ChatCompletionMessage(role="assistant", content="I have looked."),
                ResponseOutputMessage.model_validate(
                    {
                        "id": "1",
                        "type": "message",
                        "role": "assistant",
                        "status": "completed",
                        "content": [
                            {"type": "output_text", "text": "Two columns.", "annotations": []}
                        ],
                    }
                ),
                AnthropicMessage(
                    id="2",
                    type="message",
                    model="m",
                    role="assistant",
                    content=[TextBlock(type="text", text="Now the rows.")],
                    usage=Usage(input_tokens=1, output_tokens=1),
                ),
            ],
            (
                Turn("user", "what is in cart.csv?"),
                Turn("assistant", "I have looked."),
                Turn("assistant", "Two columns."),
                Turn("assistant", "Now the rows."),
            ),
        ),
        (
            [
                {"type": "function_call", "call_id": "1", "name": "read", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "a,b"},
                ResponseFunctionToolCall(
                    type="function_call", call_id="2", name="read", arguments="{}"
                ),
            ],
            (),
        ),
        (
            [
                SimpleNamespace(type="system", content="Be kind."),
                SimpleNamespace(type="human", content="what is in cart.csv?"),
                SimpleNamespace(type="ai", content="", tool_calls=[{"id": "1"}]),
                SimpleNamespace(type="tool", content="a,b", tool_call_id="1"),
                SimpleNamespace(type="ai", content=[{"type": "text", "text": "Two columns."}]),
                {"type": "human", "content": "which?"},
                SimpleNamespace(type="function", content="a,b", name="head"),
                SimpleNamespace(type="AIMessageChunk", content="a and b."),
                {"type": "human", "content": "and now?"},
            ],
            (
                Turn("user", "what is in cart.csv?"),
                Turn("assistant", "Two columns."),
                Turn("user", "which?"),
                Turn("assistant", "a and b."),
                Turn("user", "and now?"),
            ),
        ),
    ],
    ids=["of a chat API", "objects of SDKs, which agents append", "calls of tools", "of LangChain"],
)
def test_history_takes_the_messages_of_agents(
    messages: list[AnyTurn], turns: tuple[Turn, ...]
) -> None:
    assert Request.parse("x", history=messages).history == turns


@pytest.mark.parametrize(
    "turn",
    [
        {},
        {"type": ["function_call"]},
        {"type": "message", "content": "x"},
        {"role": "user"},
        {"role": "nobody", "content": "x"},
        {"role": "user", "content": 7},
        {"role": "user", "content": ["x"]},
        {"content": "x"},
    ],
)
def test_a_message_of_no_known_form_is_refused(turn: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest, match=r"history\.0: a turn is"):
        Request.parse("x", history=[turn])


@pytest.mark.parametrize(
    "history",
    [
        "one string",
        5,
        [3],
        {"role": "user", "content": "x"},
        [Turn("system", "x")],
        [Turn("user", 5)],  # type: ignore[arg-type]  # the point of the test
    ],
)
def test_malformed_history_is_refused(history: object) -> None:
    with pytest.raises(InvalidRequest, match="history"):
        Request.parse("x", history=history)  # type: ignore[arg-type]  # the point of the test


def test_of_a_long_conversation_the_newest_turns_are_kept() -> None:
    turns = [str(number) for number in range(MAX_HISTORY_TURNS + 7)]
    kept = Request.parse("x", history=turns).history
    assert [turn.text for turn in kept] == turns[7:]
    half = "x" * (MAX_HISTORY_CHARACTERS // 2)
    kept = Request.parse("x", history=["old", half + "y", "z", half]).history
    assert [turn.text for turn in kept] == [half[1:], "z", half]


def test_a_long_turn_is_cut_to_what_is_kept() -> None:
    kept = Request.parse("x", history=["old", "x" * (MAX_HISTORY_CHARACTERS + 1)]).history
    assert kept == (Turn("user", "x" * MAX_HISTORY_CHARACTERS),)


def test_what_is_not_kept_of_a_conversation_is_not_checked() -> None:
    newer = [str(number) for number in range(MAX_HISTORY_TURNS)]
    kept = Request.parse("x", history=[{"role": "nobody"}, *newer]).history
    assert [turn.text for turn in kept] == newer


def test_half_a_character_spoils_no_conversation() -> None:
    assert Request.parse("x", history=["a\ud83d"]).history == (Turn("user", "a\ufffd"),)


@pytest.mark.parametrize("turn", ["", " ", "\x1b[0m", Turn("user", "")])
def test_a_turn_that_says_nothing_is_passed_over(turn: AnyTurn) -> None:
    assert Request.parse("x", history=[turn, "y"]).history == (Turn("user", "y"),)


def test_a_turn_of_no_known_form_is_told_by_its_position() -> None:
    with pytest.raises(InvalidRequest, match=r"^history\.1: a turn is"):
        Request.parse("x", history=["y", {"role": "nobody"}, "z"])


@given(st.text(), st.one_of(st.none(), st.text()))
def test_whatever_the_text_only_the_own_error_is_raised(text: str, scope: str | None) -> None:
    try:
        asked = Request.parse(text, scope=scope)
    except RouterError:
        return
    assert asked.text == visible(text)
    assert asked.scope == scope
