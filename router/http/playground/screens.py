"""What a screen is: a page with a form or two, and actions that give parts of it.

Each screen is one table entry in a file of its own, as the endpoints of the API are entries of one
table. An action gives a part; htmx puts it into the page, and a browser without scripts gets the
whole page with the part in its place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from starlette.responses import Response

from router.http.api import Api
from router.http.caller import Caller
from router.http.keys import Right
from router.http.playground.journal import Journal


@dataclass(frozen=True, slots=True)
class Visit:
    """One request of a person.

    Attributes:
        api: what the screens work on, as the endpoints do.
        journal: what happened lately.
        caller: who it is.
        identify: who it is at that moment; raises ``Refused`` where it is nobody any more.
        given: the fields of the form or of the query, and what the path holds.
    """

    api: Api
    journal: Journal
    caller: Caller
    identify: Callable[[], Caller]
    given: Mapping[str, str]

    def text(self, name: str) -> str:
        """A field without white space around it; empty when it is left out."""
        return self.given.get(name, "").strip()

    def lines(self, name: str) -> list[str]:
        """The lines of a field that hold anything."""
        return [line.strip() for line in self.given.get(name, "").splitlines() if line.strip()]


@dataclass(frozen=True, slots=True)
class Part:
    """What an action gives: a template and its values."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)


Values: TypeAlias = Callable[[Visit], Awaitable[Mapping[str, Any]]]
Run: TypeAlias = Callable[[Visit], Awaitable[Part | Response]]


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do on a screen, by ``POST`` where it changes anything or costs much."""

    method: Literal["GET", "POST"]
    path: str
    right: Right
    run: Run


@dataclass(frozen=True, slots=True)
class Screen:
    """One page, for callers who have the right; ``values`` are what its template shows before
    anything is asked."""

    path: str
    title: str
    template: str
    right: Right
    values: Values
    actions: tuple[Action, ...] = ()
