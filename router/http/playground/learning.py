"""Learning: the account of the error bound, who answers, and answers that wait for a judgement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from router.events import Routed
from router.http.keys import Right
from router.http.playground.journal import BY
from router.http.playground.screens import Screen, Visit
from router.learning.evidence import Source

LABELS: Final = 15
TO_JUDGE: Final = 10
LOOKED_THROUGH: Final = 500
"""How many of the latest answers are searched for those that are least sure."""
COLUMNS: Final = 60


async def _page(visit: Visit) -> Mapping[str, Any]:
    spans = list(visit.journal.spans)[-COLUMNS:]
    answers = {name: sum(span.answers[name] for span in spans) for name in BY}
    return {
        "status": visit.api.service.learning_now(),
        "by": BY,
        "spans": spans,
        "answers": answers,
        "all_answers": sum(answers.values()),
        "most": max((span.answers.total() for span in spans), default=1),
        "labels": list(visit.journal.labels)[:LABELS],
        "to_judge": _to_judge(visit),
        "may_say": Right.FEEDBACK in visit.caller.rights,
    }


def _to_judge(visit: Visit) -> list[Routed]:
    """The answers whose judgement would teach most: decided anew, by nobody corrected yet, least
    sure first; each request once."""
    judged = {
        label.request for _, label in visit.journal.labels if label.source == Source.FEEDBACK.value
    }
    waiting = {
        event.request: event
        for event in visit.api.decisions.latest(visit.caller, LOOKED_THROUGH)
        if not event.result.from_cache
        and event.request not in judged
        and event.result.id not in visit.journal.judged
    }
    return sorted(waiting.values(), key=lambda event: event.result.confidence)[:TO_JUDGE]


SCREEN: Final = Screen("/learning", "Learning", "learning.html", Right.MANAGE, _page)
