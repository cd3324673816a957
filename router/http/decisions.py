"""The latest decisions, for those who ask later why. A sink of the router's events."""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from typing import Final

from router.events import Event, Routed
from router.http.caller import Caller
from router.http.problems import Refused

MAX_DECISIONS: Final = 2_000
"""As many as feedback can be given on."""


class DecisionLog:
    """The latest answers by their id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Routed] = OrderedDict()

    def __call__(self, event: Event) -> None:
        """Take an event in."""
        if isinstance(event, Routed):
            self._kept[event.result.id] = event
            if len(self._kept) > MAX_DECISIONS:
                self._kept.popitem(last=False)

    def find(self, decision_id: str, caller: Caller) -> Routed:
        """An answer that the caller may see.

        Raises:
            Refused: there is none of this id, or it is another's: nobody learns which.
        """
        found = self._kept.get(decision_id)
        if found is not None and caller.may_see(found.scope):
            return found
        raise Refused(
            404,
            "there is no such decision",
            f"the server keeps the latest {MAX_DECISIONS:,} that it has made since it started",
        )

    def latest(self, caller: Caller, limit: int) -> list[Routed]:
        """The latest answers that the caller may see, newest first."""
        seen = (event for event in reversed(self._kept.values()) if caller.may_see(event.scope))
        return list(islice(seen, limit))
