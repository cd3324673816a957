"""Requests are bounded and checked before anything looks at them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from anthropic.types import Message as AnthropicMessage
from anthropic.types import TextBlock, Usage
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


@pytest.mark.parametrize("text", ["", " ", "\n\t", "\u3000"])
def test_an_empty_request_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="request: empty"):
        Request.parse(text)


@pytest.mark.parametrize("text", ["a\x00b", "\x1b[31mred", "a\x7fb"])
def test_control_characters_are_refused_with_their_position(text: str) -> None:
    with pytest.raises(InvalidRequest, match="request: control character U\\+"):
        Request.parse(text)


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


@pytest.mark.parametrize("available", ["git", [1], [None, "git"]])
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
    with pytest.raises(InvalidRequest, match="history: a turn is"):
        Request.parse("x", history=[turn])


@pytest.mark.parametrize(
    "history",
    [
        "one string",
        [3],
        [Turn("system", "x")],
        [Turn("user", "")],
        ["x" * (MAX_HISTORY_CHARACTERS + 1)],
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
    assert [turn.text for turn in kept] == ["z", half]


@given(st.text(), st.one_of(st.none(), st.text()))
def test_whatever_the_text_only_the_own_error_is_raised(text: str, scope: str | None) -> None:
    try:
        asked = Request.parse(text, scope=scope)
    except RouterError:
        return
    assert asked.text == text
    assert asked.scope == scope
