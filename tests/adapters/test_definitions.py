"""What the messages of a chat say: the user's words, and the tools that the model has called."""

from __future__ import annotations

from router.adapters.definitions import called_tools, user_turns


def test_only_what_the_user_said_counts() -> None:
    messages: list[object] = [
        {"role": "system", "content": "You are kind."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "second"}]},
        {"role": "user", "content": [{"type": "tool_result", "content": "42"}]},
        object(),
    ]
    assert user_turns(messages) == ["first", "second"]


def test_what_the_model_has_called_is_read_in_every_form() -> None:
    messages: list[object] = [
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "a"}}]},
        {"type": "function_call", "name": "b", "arguments": "{}"},
        {"role": "assistant", "content": [{"type": "text"}, {"type": "tool_use", "name": "c"}]},
        {"role": "user", "content": "use d"},
        object(),
    ]
    assert called_tools(messages) == ["a", "b", "c"]
