"""What the user has said and the model has called in a list of messages of a chat API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def user_turns(messages: Iterable[object]) -> list[str]:
    """The texts of the user's messages, oldest first.

    A message is ``{"role", "content"}``, its content a text or a list of parts; parts that are no
    text, such as images and results of tools, are left out, and so are messages without any text.
    """
    turns = []
    for message in messages:
        if isinstance(message, Mapping) and message.get("role") == "user":
            text = _text(message.get("content"))
            if text.strip():
                turns.append(text)
    return turns


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, Iterable):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, Mapping))
    return "\n".join(part for part in parts if isinstance(part, str))


def called_tools(messages: Iterable[object]) -> list[str]:
    """The names of the tools that the model has called: ``tool_calls`` of a message of the chat
    API, ``function_call`` items of the Responses API, ``tool_use`` blocks of Anthropic."""
    names: list[object] = []
    for message in messages:
        calls = _listed(field_of(message, "tool_calls"))
        items = (message, *_listed(field_of(message, "content")))
        names += (field_of(field_of(call, "function"), "name") for call in calls)
        names += (
            field_of(item, "name")
            for item in items
            if field_of(item, "type") in ("function_call", "tool_use")
        )
    return [name for name in names if isinstance(name, str)]


def _listed(value: object) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, list | tuple) else ()


def field_of(item: object, name: str) -> Any:
    """A field of a message or a part of one, which is a dict or an object of an SDK."""
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
