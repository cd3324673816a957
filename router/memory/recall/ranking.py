"""One ranking of all items that several layers found for a query.

Scores of different layers cannot be compared, so the items are scored anew, by six signals:

* words: BM25, with the statistics of the items found. Of a long item its best section counts, and
  of an item with saved questions the best of its texts. A word that is in most items, such as the
  name of somebody whom every memory is about, decides little; a rare one decides much;
* relevance: the calibrated probability of each item by itself, which includes its meaning;
* meaning: the cosine of each item by itself, if it is above 0. Most probabilities are near 0 or 1,
  and among items of about equal probability the cosine still tells which is nearer;
* time: if the query speaks of a period, how near to it the item was created. It is no filter,
  because people write about an event in the weeks after it, and remember its date wrongly;
* session: the other items of the session that an item comes from. The turns of a conversation
  explain each other, so an item gains if more of its session was found. Of a session's items the
  best has the weight 1, and each further one seven tenths of the weight before, so that a long
  session does not win by its length;
* words of the session: BM25 of all items found of a session as one text, because the words of a
  question are often spread over several turns of a conversation.

The signals were chosen on all of LoCoMo, so figures measured on it are a little too good. The
constants were chosen by leaving out one of its conversations in turn; nearby values change little.
``benchmarks/locomo.py`` measures the ranking.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from datetime import datetime, timedelta
from typing import Final

from router.memory.model import MemoryItem, Period
from router.memory.recall.relevance import parts_of
from router.memory.stores.graph import with_relations
from router.memory.texts.bm25 import MEMORIES, TEXTBOOK
from router.memory.texts.questions import questions_of
from router.memory.texts.words import content_terms

RELEVANCE_WEIGHT: Final = 0.5
"""Weight of relevance beside that of words, which is 1."""
MEANING_WEIGHT: Final = 0.5
"""Weight of the cosine. The same value was best whichever conversation of LoCoMo was left out."""
SESSION_WEIGHT: Final = 0.3
"""Weight of the words of an item's whole session."""
TIME_WEIGHT: Final = 0.2
"""Weight of closeness in time. Without it the first five sessions of LoCoMo hold .916 of the
evidence in place of .922."""
DECAY_DAYS_BEFORE: Final = 3.0
DECAY_DAYS_AFTER: Final = 14.0
"""Days before and after a period at which ``closeness`` has fallen to 1/e. An event is mostly saved
in the weeks after it, and hardly ever before."""
DECAY: Final = 0.7
"""The weight of each further item of a session, divided by that of the one before."""


def rank(
    query: str,
    items: Sequence[MemoryItem],
    relevances: Sequence[float],
    cosines: Sequence[float],
    *,
    period: Period | None = None,
) -> list[float]:
    """How well each item answers the query in comparison with the others, in [0, 1]; the best has
    1. The items may be of any layers and in any order; no two have the same content. ``period`` is
    the one that the query speaks of."""
    parts = [
        (number, part)
        for number, item in enumerate(items)
        for part in (*parts_of(with_relations(item)), *questions_of(item))
    ]
    words = [0.0] * len(items)
    shares = MEMORIES.shares(content_terms(query), [part for _, part in parts])
    for (number, _), share in zip(parts, shares, strict=True):
        words[number] = max(words[number], share)
    groups = [session_of(item) for item in items]
    own = [
        word + RELEVANCE_WEIGHT * relevance + MEANING_WEIGHT * max(0.0, cosine)
        for word, relevance, cosine in zip(words, relevances, cosines, strict=True)
    ]
    if period is not None:
        own = [
            score + TIME_WEIGHT * closeness(item.created, period)
            for score, item in zip(own, items, strict=True)
        ]
    scores = with_session_evidence(own, groups)
    if any(group is not None for group in groups):
        texts: defaultdict[Hashable, list[str]] = defaultdict(list)
        keys = _keys(groups)
        for number, part in parts:
            texts[keys[number]].append(part)
        joined = TEXTBOOK.shares(content_terms(query), ["\n".join(some) for some in texts.values()])
        of_session = dict(zip(texts, joined, strict=True))
        scores = [
            score + SESSION_WEIGHT * of_session[key]
            for score, key in zip(scores, keys, strict=True)
        ]
    best = max(scores, default=0.0)
    return [score / best for score in scores] if best > 0 else scores


def with_session_evidence(
    scores: Sequence[float], groups: Sequence[Hashable | None]
) -> list[float]:
    """For each score the mean of it and the evidence of its group, in the range of the scores.

    A group's evidence is the sum of its scores, largest first, weighted by (1 - d), (1 - d)d,
    (1 - d)d², ... with d = ``DECAY``. The scores must not be negative. Without a group (None) a
    score stands for itself alone.
    """
    members: defaultdict[Hashable, list[float]] = defaultdict(list)
    keys = _keys(groups)
    for key, score in zip(keys, scores, strict=True):
        members[key].append(score)
    evidence = {
        key: math.fsum(
            (1 - DECAY) * DECAY**place * score
            for place, score in enumerate(sorted(some, reverse=True))
        )
        for key, some in members.items()
    }
    return [(score + evidence[key]) / 2 for key, score in zip(keys, scores, strict=True)]


def _keys(groups: Sequence[Hashable | None]) -> list[Hashable]:
    """A key for the group of each item; an item without a group gets a key of its own."""
    return [(number,) if group is None else group for number, group in enumerate(groups)]


def closeness(moment: datetime, period: Period) -> float:
    """1 within the period; exp(-distance / 3 days) before and exp(-distance / 14 days) after it."""
    before, after = period.start - moment, moment - period.end
    days = max(before / DECAY_DAYS_BEFORE, after / DECAY_DAYS_AFTER, timedelta()) / timedelta(
        days=1
    )
    return math.exp(-days)


def session_of(item: MemoryItem) -> str | None:
    """The session that an item comes from: its attribute ``session``; None when it has none.

    The session of its scope is not used. A query sees items of its own session only, so all items
    with a session in their scope would form one group, and gain over those without.
    """
    session = item.attributes.get("session")
    return session if isinstance(session, str) else None
