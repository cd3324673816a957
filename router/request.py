"""A request, checked and ready for the cascade."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar

from router.errors import InvalidRequest

T = TypeVar("T")

MAX_REQUEST_CHARACTERS: Final = 20_000
MAX_HISTORY_TURNS: Final = 100
MAX_HISTORY_CHARACTERS: Final = 100_000
MAX_SCOPE_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier turn of the conversation: who spoke (``user`` or ``assistant``), and what."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """What one call of ``route`` asks.

    Attributes:
        text: the request as given, 1 to 20,000 characters, no control characters but white space.
        available: names of the skills that may be chosen, sorted; None means all installed ones.
        history: earlier turns, oldest first.
        scope: whose request it is (a tenant, user or session); answers never cross scopes.
    """

    text: str
    available: tuple[str, ...] | None = None
    history: tuple[Turn, ...] = ()
    scope: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the request is nothing but its text."""
        return self.available is None and not self.history and self.scope is None

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        available: Iterable[str] | None = None,
        history: Sequence[Turn | str] = (),
        scope: str | None = None,
    ) -> Request:
        """Check what a caller gave and freeze it. A bare string in ``history`` is a user's turn.

        Raises:
            InvalidRequest: a part is of the wrong type, empty, too long, or holds control
                characters; the message names the part.
        """
        if available is None and not history and scope is None and isinstance(text, str):
            return _parse_text(text)
        check_text("request", text, MAX_REQUEST_CHARACTERS)
        if isinstance(available, str):
            raise InvalidRequest("available_skills: expected a list of names, not one string")
        names = None
        if available is not None:
            given = _listed("available_skills", available)
            if not all(isinstance(name, str) for name in given):
                raise InvalidRequest("available_skills: every name must be a string")
            names = tuple(sorted(set(given)))
        if scope is not None:
            check_text("scope", scope, MAX_SCOPE_CHARACTERS)
        return cls(text, names, _parse_history(history) if history else (), scope)


@lru_cache(maxsize=1024)
def _parse_text(text: str) -> Request:
    """A request of text alone. Remembered, because callers ask the same again and again, and then
    checking would take longer than the cache that answers."""
    check_text("request", text, MAX_REQUEST_CHARACTERS)
    return Request(text)


def _parse_history(history: Sequence[Turn | str]) -> tuple[Turn, ...]:
    if isinstance(history, str):
        raise InvalidRequest("history: expected a list of turns, not one string")
    given = _listed("history", history)
    turns = tuple(Turn("user", turn) if isinstance(turn, str) else turn for turn in given)
    if len(turns) > MAX_HISTORY_TURNS:
        raise InvalidRequest(f"history: {len(turns)} turns; at most {MAX_HISTORY_TURNS}")
    for turn in turns:
        if not isinstance(turn, Turn) or turn.role not in ("user", "assistant"):
            raise InvalidRequest("history: a turn is a string or Turn('user' | 'assistant', text)")
        check_text("history", turn.text, MAX_HISTORY_CHARACTERS)
    if sum(len(turn.text) for turn in turns) > MAX_HISTORY_CHARACTERS:
        raise InvalidRequest(f"history: over {MAX_HISTORY_CHARACTERS:,} characters in all")
    return turns


def _listed(part: str, items: Iterable[T]) -> list[T]:
    try:
        return list(items)
    except TypeError:
        kind = type(items).__name__
        raise InvalidRequest(f"{part}: expected a list, not {kind}") from None


def check_text(part: str, text: object, limit: int) -> None:
    """Whether a text from outside can be used: a string with something in it, bounded, and free of
    control characters but white space.

    Raises:
        InvalidRequest: it cannot; the message names the part.
    """
    if not isinstance(text, str):
        raise InvalidRequest(f"{part}: expected a string, not {type(text).__name__}")
    if not text or text.isspace():
        raise InvalidRequest(f"{part}: empty")
    if len(text) > limit:
        raise InvalidRequest(f"{part}: {len(text):,} characters; at most {limit:,}")
    # isprintable is one pass in C; only texts that fail it are looked at character by character.
    if not text.isprintable():
        for position, character in enumerate(text):
            category = unicodedata.category(character)
            if category == "Cs" or (category == "Cc" and character not in "\t\n\r\f\v"):
                raise InvalidRequest(
                    f"{part}: control character U+{ord(character):04X} at position {position}"
                )
