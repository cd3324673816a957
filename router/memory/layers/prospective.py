"""The layer ``prospective``: tasks that are still to be done, soonest first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from router.memory.layers.stored import StoredLayer
from router.memory.model import LayerQuery, MemoryItem, Period, Scope, TaskStatus
from router.memory.query.listing import (
    BLOCKED,
    IN_PROGRESS,
    TASK_STEMS,
    TO_DO,
    is_keyword,
    names_no_subject,
)
from router.memory.stores.spaces import EVERYTHING, Filter
from router.text import stem

_BEGINNING: Final = datetime(1, 1, 2, tzinfo=UTC)
_DONE: Final = re.compile(
    r"(?<!\bbe )(?<!\bget )(?<!\bnot )(?<!n't )(?<!\bnot been )(?<!n't been )"
    r"\b(?:done|completed|finished|closed|resolved)\b"
    r"|\bdid (?!.*\bnot\b).*\b(?:finish|complete|close|resolve)\b",
    re.IGNORECASE,
)
_CANCELLED: Final = re.compile(
    r"\b(?:cancell?ed|dropped|abandoned)\b|\bdid (?!.*\bnot\b).*\b(?:cancel|drop|abandon)\b",
    re.IGNORECASE,
)
_OVERDUE: Final = re.compile(r"\b(?:overdue|past due|late|missed)\b", re.IGNORECASE)
MAX_OPEN: Final = 1_000
"""Open tasks, at most, among which those that are blocked or in progress are looked for."""


class ProspectiveLayer(StoredLayer):
    """Tasks by status and due date.

    Attributes of its items: ``status`` (a ``TaskStatus``; ``open`` by default) and ``due``, an ISO
    date or time. A query finds tasks that are still to be done, unless it asks for others ("what
    have I finished?"). A period in the query is the time when they are due: without a subject only
    those tasks are found, with a subject they are preferred. Bare keywords find tasks of any
    status. "Blocked" and "in progress" find the tasks of that status only, if the query has no
    subject.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        where = _filter(query)
        subject = [term for term in query.terms if stem(term) not in TASK_STEMS]
        if not subject or names_no_subject(query):
            only = _only_status(query.text)
            most = k if only is None else MAX_OPEN
            tasks = self._store.soonest(self.spec.name, scope=scope, k=most, where=where)
            return [t for t in tasks if only in (None, t.attributes.get("status"))][:k]
        any_status = is_keyword(query.text) and len(subject) == len(query.terms)
        return self._candidates(
            query,
            scope=scope,
            k=k,
            words=" ".join(subject),
            where=EVERYTHING if any_status else replace(where, due=None),
            prefer=where if where.due else EVERYTHING,
        )[:k]


def _only_status(text: str) -> str | None:
    """The open status that a query asks for; None if it asks for all of them."""
    if BLOCKED.search(text):
        return TaskStatus.BLOCKED
    return TaskStatus.IN_PROGRESS if IN_PROGRESS.search(text) else None


def _filter(query: LayerQuery) -> Filter:
    due = query.period
    is_for_now = due is None or due.start <= query.now
    if IN_PROGRESS.search(query.text) or (TO_DO.search(query.text) and is_for_now):
        due = None  # such tasks count whenever they are due
    elif _DONE.search(query.text):
        return Filter(status="done", due=due)
    elif _CANCELLED.search(query.text):
        return Filter(status="cancelled", due=due)
    if due is None and _OVERDUE.search(query.text):
        due = Period(_BEGINNING, query.now)
    return Filter(status="open", due=due)
