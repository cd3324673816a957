"""A request, checked and ready for the cascade. What cannot be used of what a caller gives raises
``InvalidRequest``, which names the part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

from router.errors import InvalidRequest, InvalidTurn

T = TypeVar("T")

MAX_REQUEST_CHARACTERS: Final = 20_000
MAX_HISTORY_TURNS: Final = 100
MAX_HISTORY_CHARACTERS: Final = 100_000
"""What is kept of a history: the newest turns, and of one that is too long its beginning. The
conversation of an agent grows without end."""
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
        text: the request as a person sees it (see ``visible``), 1 to 20,000 characters.
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
        text = read_text("request", text)
        names = None
        if available is not None:
            names = _ordered(tuple(names_in("available skills", available)))
        if scope is not None:
            check_text("scope", scope, MAX_SCOPE_CHARACTERS)
        group = available.label if isinstance(available, Group) else None
        return cls(text, names, kept_turns(history) if history else (), scope, group)


@lru_cache(maxsize=1024)
def _parse_text(text: str) -> Request:
    """A request of text alone. Remembered, because callers ask the same again and again, and then
    checking would take longer than the cache that answers."""
    return Request(read_text("request", text))


@lru_cache(maxsize=8)
def _ordered(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names in order, each once. Remembered, because callers name the same thousands of tools
    again and again, and sorting them would take longer than ranking them."""
    return tuple(sorted(set(names)))


def kept_turns(history: Sequence[AnyTurn]) -> tuple[Turn, ...]:
    """What is kept of a history, oldest first: see ``MAX_HISTORY_CHARACTERS``. Only that is
    checked, so that nothing in a long conversation can spoil it for ever.

    Raises:
        InvalidRequest: this is no list, or one of the newest turns is of no known form.
    """
    if isinstance(history, str | Mapping):
        kind = "string" if isinstance(history, str) else "turn"
        raise InvalidRequest(f"history: expected a list of turns, not one {kind}")
    given = listed("history", history)
    kept: list[Turn] = []
    left = MAX_HISTORY_CHARACTERS
    for position in range(len(given) - 1, -1, -1):
        if len(kept) == MAX_HISTORY_TURNS or left == 0:
            break
        try:
            turn = turn_of(given[position])
        except InvalidRequest as error:
            raise InvalidTurn(position, str(error)) from None
        if turn is not None:
            kept.append(Turn(turn.role, turn.text[:left]))
            left -= len(kept[-1].text)
    return tuple(reversed(kept))


def turn_of(given: AnyTurn) -> Turn | None:
    """A turn of the conversation; None for a message that says nothing in it: of another role, or
    without a text, such as the call of a tool."""
    if isinstance(given, str):
        given = Turn("user", given)
    elif not isinstance(given, Turn | Mapping):
        names = [name for name in ("role", "type", "content") if hasattr(given, name)]
        given = {name: getattr(given, name) for name in names}
    role: object
    said: object
    if isinstance(given, Turn):
        role, said = given.role, given.text
    else:
        kind = str(given.get("type"))
        role = given.get("role", _LANGCHAIN_ROLES.get(kind))
        if role is None and kind in _SILENT_ITEMS:
            return None
        if isinstance(role, str) and role in _SILENT_ROLES:
            return None
        said = _said(given["content"] if "content" in given else given.get("text", ...))
    if role not in ("user", "assistant") or not isinstance(said, str):
        raise InvalidRequest(
            "a turn is a string, Turn('user' | 'assistant', text), or a message such as "
            '{"role": "user", "content": "..."}'
        )
    text = CONTROL.sub("\ufffd", visible(said[:MAX_HISTORY_CHARACTERS]))
    return Turn(str(role), text) if text.strip() else None


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
    names = listed(part, given)
    if not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"{part}: every name must be a string")
    return names


def check_limit(limit: int) -> None:
    """Whether so many skills may be asked for: an integer from 1 to ``MAX_LIMIT``."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(f"limit: {limit!r}; expected 1 to {MAX_LIMIT:,}")


def listed(part: str, items: Iterable[T]) -> list[T]:
    """A list as a caller gave it; ``part`` is what errors call it."""
    try:
        return list(items)
    except TypeError:
        kind = type(items).__name__
        raise InvalidRequest(f"{part}: expected a list, not {kind}") from None


CONTROL: Final = re.compile("[\0-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Control characters but white space, and lone surrogates, which no file and no provider takes."""
_UNSEEN: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, movements of the cursor
    # Titles and links. Another beginning ends one, so that no text is read twice.
    "|(?:\x1b[]PX^_]|[\x90\x98\x9d-\x9f])[^\7\x1b\x90\x98\x9c-\x9f]*(?:\7|\x1b\\\\|\x9c)"
    "|\x1b[#%(-/]?[0-_]"  # sets of characters, and short ones
    "|[\0-\x08\x0e-\x1f\x7f-\x9f]"
)
"""What a terminal obeys in place of showing it: ANSI escape sequences (ECMA-48), and the other
control characters but white space."""


def visible(text: str) -> str:
    """The text as a person sees it who pastes it from a terminal: without escape sequences and
    control characters."""
    return _UNSEEN.sub("", text)


def read_text(part: str, text: str) -> str:
    """The text of a request, which people paste from terminals: see ``visible``. ``part`` is what
    errors call it.

    Raises:
        InvalidRequest: it is no string, says nothing, is too long, or holds half a character.
    """
    if isinstance(text, str) and len(text) <= MAX_REQUEST_CHARACTERS:
        text = visible(text)
    check_text(part, text, MAX_REQUEST_CHARACTERS)
    return text


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
