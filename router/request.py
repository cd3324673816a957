"""A request, checked and ready for the cascade. What cannot be used of what a caller gives raises
``InvalidRequest``, which names the part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

from router.errors import InvalidRequest

T = TypeVar("T")

MAX_REQUEST_CHARACTERS: Final = 20_000
MAX_HISTORY_TURNS: Final = 100
MAX_HISTORY_CHARACTERS: Final = 100_000
"""What is kept of a history: the newest turns. An agent's conversation grows without end."""
MAX_SCOPE_CHARACTERS: Final = 200
MAX_LIMIT: Final = 1_000
"""How many skills a ranking may be asked for."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier turn of the conversation: who spoke (``user`` or ``assistant``), and what."""

    role: str
    text: str


class Message(Protocol):
    """A message as an object, which agents append to their list: of the SDKs of OpenAI and
    Anthropic with a ``role``, of LangChain with a ``type``."""

    @property
    def content(self) -> Any: ...


AnyTurn: TypeAlias = Turn | str | Mapping[str, Any] | Message
"""A turn as callers give it: a bare string is the user's; a message of a chat API is a mapping or
an object with ``role`` and ``content``, which is a text or a list of parts; one of LangChain has
``type`` in place of ``role``."""
_SILENT_ROLES: Final = frozenset(("system", "developer", "tool", "function"))
"""Roles of messages that are no turn of the user or the assistant."""
_SILENT_ITEMS: Final = frozenset(("function_call", "function_call_output", "reasoning"))
"""Types of items of the Responses API that have no role."""
_LANGCHAIN_ROLES: Final = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",  # an answer that was put together while it was streamed
    "system": "system",
    "tool": "tool",
    "function": "function",
}
"""What the types of LangChain's messages, which have no role, are called elsewhere."""


class Group(tuple[str, ...]):
    """Names of skills whose members may change while their meaning stays, such as the tools of a
    namespace. Cached answers are kept under its label, and checked against the names when they are
    read.

    Attributes:
        label: says what the names are.
    """

    label: str

    def __new__(cls, label: str, names: Iterable[str]) -> Self:
        """A group of these names."""
        made = super().__new__(cls, names)
        made.label = label
        return made


@dataclass(frozen=True, slots=True)
class Request:
    """What one call of ``route`` asks.

    Attributes:
        text: the request as given, 1 to 20,000 characters, no control characters but white space.
        available: names of the skills that may be chosen, sorted; None means all installed ones.
        history: earlier turns, oldest first; of a long conversation the newest.
        scope: whose request it is (a tenant, user or session); answers never cross scopes.
        group: the label of ``available``, where these are a ``Group``.
    """

    text: str
    available: tuple[str, ...] | None = None
    history: tuple[Turn, ...] = ()
    scope: str | None = None
    group: str | None = None

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        available: Iterable[str] | None = None,
        history: Sequence[AnyTurn] = (),
        scope: str | None = None,
    ) -> Request:
        """Check what a caller gave and freeze it. See ``AnyTurn`` for what ``history`` may hold."""
        if available is None and not history and scope is None and isinstance(text, str):
            return _parse_text(text)
        check_text("request", text, MAX_REQUEST_CHARACTERS)
        names = None
        if available is not None:
            names = _ordered(tuple(names_in("available skills", available)))
        if scope is not None:
            check_text("scope", scope, MAX_SCOPE_CHARACTERS)
        group = available.label if isinstance(available, Group) else None
        return cls(text, names, _parse_history(history) if history else (), scope, group)


@lru_cache(maxsize=1024)
def _parse_text(text: str) -> Request:
    """A request of text alone. Remembered, because callers ask the same again and again, and then
    checking would take longer than the cache that answers."""
    check_text("request", text, MAX_REQUEST_CHARACTERS)
    return Request(text)


@lru_cache(maxsize=8)
def _ordered(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names in order, each once. Remembered, because callers name the same thousands of tools
    again and again, and sorting them would take longer than ranking them."""
    return tuple(sorted(set(names)))


def _parse_history(history: Sequence[AnyTurn]) -> tuple[Turn, ...]:
    if isinstance(history, str):
        raise InvalidRequest("history: expected a list of turns, not one string")
    given = _listed("history", history)
    turns = tuple(turn for turn in map(turn_of, given) if turn is not None)
    first, left = len(turns), MAX_HISTORY_CHARACTERS
    for turn in reversed(turns[-MAX_HISTORY_TURNS:]):
        left -= len(turn.text)
        if left < 0:
            break
        first -= 1
    return turns[first:]


def turn_of(given: AnyTurn) -> Turn | None:
    """A turn of the conversation; None for a message that says nothing in it: of another role, or
    without a text, such as the call of a tool."""
    if not isinstance(given, Turn | str | Mapping):
        names = [name for name in ("role", "type", "content") if hasattr(given, name)]
        given = {name: getattr(given, name) for name in names}
    turn: object = given
    if isinstance(given, str):
        turn = Turn("user", given)
    elif isinstance(given, Mapping):
        kind = str(given.get("type"))
        role = given.get("role", _LANGCHAIN_ROLES.get(kind))
        if role is None and kind in _SILENT_ITEMS:
            return None
        if isinstance(role, str):
            if role in _SILENT_ROLES:
                return None
            said = _said(given["content"] if "content" in given else given.get("text", ...))
            if said is not None:
                if not said.strip():
                    return None
                turn = Turn(role, said)
    if not isinstance(turn, Turn) or turn.role not in ("user", "assistant"):
        raise InvalidRequest(
            "history: a turn is a string, Turn('user' | 'assistant', text), or a message such as "
            '{"role": "user", "content": "..."}'
        )
    check_text("history", turn.text, MAX_HISTORY_CHARACTERS)
    return turn


def _said(content: object) -> str | None:
    """The text of a message, of all its parts; None where it is of no known form."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [one if isinstance(one, Mapping) else getattr(one, "__dict__", None) for one in content]
    if None in parts:
        return None
    texts = [part.get("text") for part in parts if part]
    return "\n".join(text for text in texts if isinstance(text, str))


def names_in(part: str, given: Iterable[str]) -> list[str]:
    """A list of names as a caller gave it, which no string is; ``part`` is what errors call it."""
    if isinstance(given, str):
        raise InvalidRequest(f"{part}: expected a list of names, not one string")
    names = _listed(part, given)
    if not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"{part}: every name must be a string")
    return names


def check_limit(limit: int) -> None:
    """Whether so many skills may be asked for: an integer from 1 to ``MAX_LIMIT``."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(f"limit: {limit!r}; expected 1 to {MAX_LIMIT:,}")


def _listed(part: str, items: Iterable[T]) -> list[T]:
    try:
        return list(items)
    except TypeError:
        kind = type(items).__name__
        raise InvalidRequest(f"{part}: expected a list, not {kind}") from None


CONTROL: Final = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but white space, and lone surrogates, which no file and no provider takes."""


def check_text(part: str, text: object, limit: int) -> None:
    """Whether a text from outside can be used: a string with something in it, bounded, and free of
    control characters but white space."""
    if not isinstance(text, str):
        raise InvalidRequest(f"{part}: expected a string, not {type(text).__name__}")
    if not text or text.isspace():
        raise InvalidRequest(f"{part}: empty")
    if len(text) > limit:
        raise InvalidRequest(f"{part}: {len(text):,} characters; at most {limit:,}")
    if (found := CONTROL.search(text)) is not None:
        code = ord(found.group())
        what = "control character" if code < 0xD800 else "not UTF-8, or half a character:"
        raise InvalidRequest(f"{part}: {what} U+{code:04X} at position {found.start()}")
