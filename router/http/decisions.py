"""The latest decisions, for those who ask later why. A sink of the router's events."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from typing import Final

from router.errors import UnknownAnswer
from router.events import Event, Routed
from router.http.caller import Caller, asking

MAX_DECISIONS: Final = 2_000
"""How many decisions are remembered: as many as feedback can be given on."""


@dataclass(frozen=True, slots=True)
class _Kept:
    event: Routed
    namespaces: tuple[str, ...]

    def may_be_seen_by(self, caller: Caller) -> bool:
        """Whether it was asked in a scope and over namespaces that are the caller's."""
        if not caller.may_see(self.event.scope):
            return False
        if not caller.namespaces:
            return True
        return bool(self.namespaces) and set(self.namespaces) <= set(caller.namespaces)


class DecisionLog:
    """The latest answers by their id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Routed):
            caller = asking.get()
            namespaces = () if caller is None else caller.namespaces
            self._kept[event.result.id] = _Kept(event, namespaces)
            if len(self._kept) > MAX_DECISIONS:
                self._kept.popitem(last=False)

    def __contains__(self, decision_id: object) -> bool:
        return decision_id in self._kept

    def find(self, decision_id: str, caller: Caller) -> Routed:
        """An answer that the caller may see.

        Raises:
            UnknownAnswer: no answer has this id, or it is another caller's. Which of both it is, is
                not told.
        """
        found = self._kept.get(decision_id)
        if found is not None and found.may_be_seen_by(caller):
            return found.event
        kept = f"the latest {MAX_DECISIONS:,} that it has made since it started"
        raise UnknownAnswer(f"the server keeps {kept}")

    def latest(self, caller: Caller, limit: int) -> list[Routed]:
        """The latest answers that the caller may see, newest first."""
        seen = (kept.event for kept in reversed(self._kept.values()) if kept.may_be_seen_by(caller))
        return list(islice(seen, limit))
