"""One ranking of everything that several layers found for a query.

Scores of different layers do not compare, so what was found is scored anew. Five signals count:

* words: BM25, with the statistics of what was found; of a long item that of its best section, and
  of one that brings questions that of the best of its texts. A word that is everywhere, such as the
  name of somebody whom every memory is about, decides little; a rare one decides much;
* relevance: the calibrated probability of each item by itself, which sees meaning too;
* meaning: the cosine of each item by itself, if it is above 0. Most probabilities are near 0 or 1,
  and of items that are about equally probable it still tells which is nearer;
* session: the other items of the session that an item comes from. What one item says is explained
  by those around it, so an item gains where more of its session was found. A session's evidence is
  its best item, and of each further one the seven tenths of the share before, so that a long
  session does not win by its length;
* words of the session: BM25 of what was found of each session, as one text. The words of a question
  are often spread over several turns of one talk.

The signals were chosen on all of LoCoMo, so its figures flatter them a little; the constants by
leaving out one of its conversations in turn, and near them little changes.
``benchmarks/locomo.py`` measures the ranking.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Final

from router.memory.model import MemoryItem
from router.memory.recall.relevance import parts_of
from router.memory.texts.bm25 import MEMORIES, TEXTBOOK
from router.memory.texts.questions import questions_of
from router.memory.texts.words import content_terms

RELEVANCE_WEIGHT: Final = 0.5
"""Weight of relevance beside that of words, which is 1."""
MEANING_WEIGHT: Final = 0.5
"""Weight of the cosine, the same whichever conversation of LoCoMo is left out."""
SESSION_WEIGHT: Final = 0.3
"""Weight of the words of an item's whole session."""
DECAY: Final = 0.7
"""What each further item of a session counts, beside the one before."""


def rank(
    query: str,
    items: Sequence[MemoryItem],
    relevances: Sequence[float],
    cosines: Sequence[float],
) -> list[float]:
    """How well each item answers the query beside the others, in [0, 1]; 1 for the best. The items
    are of any layers, in any order, no content twice."""
    parts = [
        (number, part)
        for number, item in enumerate(items)
        for part in (*parts_of(item.content), *questions_of(item))
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
    """For each score its mean with the evidence of its group, in the range of the scores.

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
    """The groups; an item without one is a group of its own."""
    return [(number,) if group is None else group for number, group in enumerate(groups)]


def session_of(item: MemoryItem) -> str | None:
    """The session that an item comes from: its attribute ``session``; None when it has none.

    Not the session of its scope: a query sees items of its own session alone, so that one would
    put no item before another, but all of them before those of no session.
    """
    session = item.attributes.get("session")
    return session if isinstance(session, str) else None
