"""What was found for one query: how relevant each item is, and in which order the items are given.

* **Relevance.** That of an item's text is a probability (``relevance.py``). What its layer and its
  time say is added to the log-odds.
* **Confidence** of an answer is the relevance of its most relevant item. Combining several (1 minus
  the product of the doubts) would need independent errors; one model judges all of them, and ten
  unrelated items of 0.07 each would pass for an answer.
* **Listed items.** A query that names no subject ("Which tasks are overdue?") asks for whatever its
  layers list, and no word of it need be in an answer. So the relevance of what a primary layer
  lists is at least ``LISTED_RELEVANCE`` times the layer's weight, and the layer's order stays. If
  the query asks for tasks ("What have I finished?"), only the layer of tasks lists, with weight 1.
  A query that names a kind of memory and nothing else ("What are our conventions?") asks for the
  newest of that kind.
* **Replacements.** Of two memories about one matter the one that holds at the time asked about
  comes first (``updates.py``). One that is marked as superseded is shown only to who asks for the
  past, and what has superseded it is at least as relevant. "What did we use before MySQL?" is
  answered by what the memory about MySQL has replaced, and "What did we use in March?" by all that
  held then and has been replaced: both are as relevant as what is listed.
* **Relations.** If the query asks for relations, what the layer ``graph`` reached from a relevant
  item is relevant, too. An entity that the query names and that no item is about counts as a
  relevant item, for items that state a relation such as the query asks for: "Who owns Redis?" is
  not answered by what uses it.
* **Counts.** What the layer ``meta`` counts ("semantic: 3 items about Redis") comes last and gives
  no confidence where the query names a subject. That it counts nothing is no item at all.

Copies of one content are one item, with the provenance of all; the copy from the heavier layer
stays. The list is ordered by similarity (``ranking.py``, which sees the other items found), recency
of last use and usefulness. Weights of 0.7, 0.1 and 0.2 lost a point of recall on LoCoMo, where what
matters is old.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from router.memory.model import LayerQuery, LayerReport, MemoryItem, Period, ScoreKind
from router.memory.query.listing import (
    asks_for_kind,
    asks_for_tasks,
    asks_what_was_in_use,
    asks_when,
    names_no_subject,
)
from router.memory.query.past import followed_by
from router.memory.query.periods import ReferenceTime
from router.memory.query.rewrite import in_first_person
from router.memory.query.time_expressions import planned_times
from router.memory.recall.answers import RecalledItem
from router.memory.recall.confidence import SECONDS_A_DAY, conflicts_among
from router.memory.recall.memory_router import COUNTING_LAYER, UNLIKELY_WEIGHT
from router.memory.recall.ranking import rank, session_of
from router.memory.recall.relevance import Judged
from router.memory.recall.updates import (
    LASTING_LAYERS,
    SUPERSEDED_BY,
    USER_LAYER,
    Update,
    asks_for_history,
    held_then,
    likelihood_of_replacement,
    tells_change,
    update_of,
    updates_among,
)
from router.memory.stores.graph import relations_away, states_relation
from router.memory.stores.rows import TASKS
from router.memory.texts.contents import without_copies
from router.memory.texts.words import words_of
from router.numeric import log_odds, logistic
from router.result import MEMORY_LAYERS
from router.text import stems, tokens, word_set

RELEVANCE_FLOOR: Final = 0.14
"""Where no item is as relevant, the answer is empty: to miss a memory that bears on the query is
taken to be six times as bad as to show one that does not. It lies below the default threshold on
purpose: a doubtful item is shown, and further layers are read."""
MAX_RELEVANCE_RATIO: Final = 16
"""Where the best item is above the floor, items below the floor follow it, down to its relevance
divided by this: the best item is sometimes the wrong one. Nothing follows what was listed."""
RELEVANCE_EXPONENT: Final = 0.7
"""An item's score is multiplied by its relevance, as a share of the best one's, to this power. With
1 relevance decides nearly alone, and the first five sessions of LoCoMo hold less of the evidence;
with 0.5 some answers of ``benchmarks/memory_finding.py`` no longer come first."""
RELEVANCE_EXPONENT_IN_SESSION: Final = 0.2
"""The same for an item of a session: what one turn of a talk says is explained by those around it,
and the ranking has counted the relevance of all of them together. Chosen by leaving out one
conversation of LoCoMo in turn, where the first five sessions of a recall held .9071 of the evidence
with the other power, and .9096 with this one."""
LISTED_RELEVANCE: Final = 0.7
"""The least relevance of what a layer lists, and of an entity that the query names."""
LAYER_WEIGHT_EVIDENCE: Final = 1.9
"""Log-odds that are taken off what a layer of weight 0 found, and half of it at a weight of 0.5;
never off memory files, which hold knowledge of any kind. This and the next three were fitted
together with the coefficients of ``relevance``."""
USER_LAYER_EVIDENCE: Final = 1.0
"""Log-odds that are added to items of the layer ``user`` where the query says "I" or "my"."""
PASSING_EVIDENCE: Final = -1.0
"""Log-odds that are added to events and tasks, because most questions ask for what lasts; not where
their layer is what the query asks for first."""
IN_PERIOD_EVIDENCE: Final = 4.0
"""Log-odds that are added to events of the time spoken of, less to those near it."""
NAMES_TIME_EVIDENCE: Final = 1.5
"""Log-odds, not fitted, that are added to what lasts and names the time spoken of: "Is the office
open on Friday?" asks for what is said of Fridays."""
TELLS_NO_TIME_EVIDENCE: Final = -3.0
"""Log-odds, not fitted, that are added to a task without a date where the query asks when: "Renew
the passport" does not answer "When does my passport expire?"."""
RELEVANCE_AGAINST_REPLACEMENT: Final = 0.7
"""What a difference of relevance, in log-odds, counts beside the likelihood of a replacement ..."""
SCORE_AGAINST_REPLACEMENT: Final = 0.5
"""... and what the logarithm of the ratio of the scores counts. Both were fitted together with the
coefficients of ``likelihood_of_replacement``."""
GRAPH_LAYER: Final = "graph"
KEPT_OVER_RELATION: Final = 0.7
"""The share of a relevance that is passed on over each relation."""
ASKS_FOR_RELATIONS: Final = 0.5
"""Weight of the layer ``graph`` from which on a query is taken to ask for relations."""
COUNT_TYPE: Final = "coverage"
"""The type of items that count what other layers hold."""
PLANNING_LAYER: Final = "planning"
BESIDE_LISTED: Final = 0.5
"""What other items count beside tasks that are asked for, plans of the time asked for included."""
KIND_SHARE: Final = 0.65
"""The weight of a layer whose newest items are asked for by their kind alone. It keeps them below
the default threshold: whether these are conventions nobody has said."""
DAYS_BEFORE: Final = 3.0
DAYS_AFTER: Final = 14.0
"""Days before and after a period at which closeness has fallen to 1/e: what happened is told in the
weeks that follow, and hardly ever before."""
EVENT_LAYERS: Final = frozenset({"episodic", "session"})
PASSING_LAYERS: Final = EVENT_LAYERS | {TASKS}
LISTING_LAYERS: Final = PASSING_LAYERS | {"governance", COUNTING_LAYER}
"""Built-in layers that list what they hold of a time or a kind; the others give what is nearest."""
SIMILARITY_WEIGHT: Final = 0.75
RECENCY_WEIGHT: Final = 0.05
USEFULNESS_WEIGHT: Final = 0.2
FRESH_DAYS: Final = 90.0
JUST_BELOW: Final = 0.999
"""Times the score of one item, that of another which comes after it."""
_ONESELF: Final = word_set("i me my mine i'm i've i'd i'll")
_TIME_PREPOSITIONS: Final = {*stems("in for on at of by during from until till before after the")}


class Pool:
    """What was found so far for one query, without copies, and how relevant it is; ``ranked`` is
    what bears on the query, best first."""

    def __init__(self, query: LayerQuery) -> None:
        self.query = query
        self.reports: list[LayerReport] = []
        self.items: list[MemoryItem] = []
        self.updates: list[Update] = []
        self.weights: dict[str, float] = {}
        self.ranked: list[RecalledItem] = []
        self._judged: dict[str, Judged] = {}
        self._listed: dict[str, float] = {}
        self._names_subject = not names_no_subject(query)
        self._for_tasks = asks_for_tasks(query)
        self._kind = asks_for_kind(query)
        self._to_come = _time_to_come(query)
        self._asks_when = asks_when(query.text)
        self._time_words = {*stems(query.text)} - {*stems(query.timeless)} - _TIME_PREPOSITIONS
        self._speaks_of_oneself = not _ONESELF.isdisjoint(tokens(in_first_person(query.text)))

    def add(self, reports: Sequence[LayerReport]) -> None:
        self.reports.extend(reports)
        new = [item for report in reports for item in report.items if not _is_gap(item)]
        self.items = list(without_copies([*self.items, *new]).values())

    def note_listed(self, reports: Sequence[LayerReport], *, is_first: bool = True) -> None:
        """Note what layers list for a query that names no subject, or a kind of memory alone."""
        if self._to_come is not None and not self._names_subject:
            self._note_plans(reports, self._to_come)
        layers, weight = LISTING_LAYERS, None
        if self._for_tasks:
            layers, weight = frozenset({TASKS}), 1.0
        elif self._kind is not None:
            layers, weight = frozenset({self._kind}), KIND_SHARE
        elif self._names_subject or not is_first:
            return
        for report in reports:
            if report.layer in layers or report.layer not in MEMORY_LAYERS:
                share = LISTED_RELEVANCE * (report.weight if weight is None else weight)
                for item in report.items:
                    self._listed.setdefault(item.content, share)

    def _note_plans(self, reports: Sequence[LayerReport], to_come: Period) -> None:
        """Note the plans that are about the time to come that the query speaks of."""
        weight = BESIDE_LISTED if self._for_tasks else 1.0
        for report in reports:
            if report.layer == PLANNING_LAYER:
                plans = [i.content for i in report.items if self._is_planned(i, to_come)]
                self._listed |= dict.fromkeys(plans, LISTED_RELEVANCE * weight)

    def _is_planned(self, item: MemoryItem, to_come: Period) -> bool:
        told = item.created.astimezone(self.query.now.tzinfo)
        return any(
            time.start < to_come.end and to_come.start < time.end
            for time in planned_times(item.content, told)
        )

    def _names_the_time(self, item: MemoryItem) -> bool:
        """Whether an item holds the words by which the query speaks of a time."""
        return bool(self._time_words) and self._time_words <= words_of(item.content).bag.keys()

    def unjudged(self) -> list[MemoryItem]:
        return [item for item in self.items if item.content not in self._judged]

    def judge(self, contents: Sequence[str], found: Sequence[Judged]) -> None:
        """Take up how relevant contents are, and put everything in order."""
        self._judged.update(zip(contents, found, strict=True))
        judged = {
            item.content: RecalledItem(item, self._adjusted_relevance(item))
            for item in self.items
            if self._is_shown(item)
        }
        self._follow_relations(judged)
        self._follow_replacements(judged)
        successor = followed_by(self.query.text)
        following = {
            content for content in judged if successor and successor <= words_of(content).bag.keys()
        }
        held = self._follow_updates(judged, following)
        scores = self._scores(list(judged.values()))
        self._prefer_what_holds(scores, judged)
        for item, update in held:
            # It gets the higher score of both, the other one stays just below.
            both = [update.older.content, update.newer.content]
            if scores.keys() >= {*both}:
                low, high = sorted(scores[content] for content in both)
                scores |= dict.fromkeys(both, min(low, JUST_BELOW * high)) | {item.content: high}
        # What has been replaced by what the query names comes before all that only names it.
        asked_for = {
            item.content
            for item, update in held
            if item is update.older and update.newer.content in following
        }
        if asked_for & scores.keys():
            most = max(scores.values())
            scores = {c: most if c in asked_for else JUST_BELOW * scores[c] for c in scores}
        for content in scores:
            if self._only_counts(judged[content].item):
                scores[content] = 0.0

        self.ranked = [
            replace(judged[content], item=judged[content].item.scored(score, ScoreKind.RERANKED))
            for content, score in sorted(  # stable: heavier layers first
                scores.items(), key=lambda entry: entry[1], reverse=True
            )
        ]

    def _scores(self, found: Sequence[RecalledItem]) -> dict[str, float]:
        """What the items that are relevant enough are ordered by."""
        similarities = rank(
            self.query.subject,
            [one.item for one in found],
            [one.relevance for one in found],
            [self._judged[one.item.content].cosine for one in found],
        )
        best = max((one.relevance for one in found if not self._only_counts(one.item)), default=0.0)
        others_follow = self._names_subject and self._kind is None and best >= RELEVANCE_FLOOR
        lowest = RELEVANCE_FLOOR
        if others_follow:
            lowest = min(lowest, best / MAX_RELEVANCE_RATIO)
        return {
            one.item.content: one.relevance
            if one.item.content in self._listed
            else rerank_score(one.item, similarity, self.query.now)
            * min(1.0, one.relevance / max(RELEVANCE_FLOOR, best)) ** _relevance_exponent(one.item)
            * (BESIDE_LISTED if self._is_beside_listed(one.item) else 1.0)
            for one, similarity in zip(found, similarities, strict=True)
            if one.relevance >= lowest
        }

    def _prefer_what_holds(self, scores: dict[str, float], judged: dict[str, RecalledItem]) -> None:
        """Where the first item has likely been replaced by another one, or held only later than the
        time asked about, give that one the score of the first, which stays just below."""
        first = max(scores, key=scores.__getitem__, default=None)
        if first is None:
            return
        likeliest, best, given = first, 0.0, judged[first]
        for content, score in scores.items():
            other = judged[content]
            update = update_of(given.item, other.item)
            if update is None or held_then(update, self.query) is given.item or not score:
                continue
            likelihood = likelihood_of_replacement(update)
            fits_better = log_odds(other.relevance) - log_odds(given.relevance)
            odds = likelihood + RELEVANCE_AGAINST_REPLACEMENT * fits_better
            odds += SCORE_AGAINST_REPLACEMENT * math.log(score / scores[first])
            if likelihood and odds > best:
                likeliest, best = content, odds
        if likeliest != first:
            scores[likeliest], scores[first] = scores[first], JUST_BELOW * scores[first]

    def _follow_updates(
        self, judged: dict[str, RecalledItem], following: set[str]
    ) -> list[tuple[MemoryItem, Update]]:
        """Raise what held at the time asked about, and give it with the update that it is part of.
        ``following`` are the contents that name what the query says came afterwards."""
        asks_for_all_in_use = asks_what_was_in_use(self.query)
        self.updates = updates_among(
            [one.item for one in judged.values()],
            lambda item: (
                max(judged[item.content].relevance, self._judged[item.content].relevance)
                >= RELEVANCE_FLOOR
                or item.content in following
                or asks_for_all_in_use
            ),
        )
        pairs = [(held_then(update, self.query), update) for update in self.updates]
        for held, update in pairs:
            # What replaced an answer is one, though it may share fewer words with the question.
            other = update.older if held is update.newer else update.newer
            is_answer = other.content in following or (
                asks_for_all_in_use and held is update.older and self._existed_by_then(held)
            )
            least = max(judged[other.content].relevance, LISTED_RELEVANCE * is_answer)
            if held is update.older and self._existed_by_then(held):
                # Its layer, which holds what lasts, says nothing against what held once.
                least = max(least, self._judged[held.content].relevance)
            if least > judged[held.content].relevance:
                judged[held.content] = RecalledItem(held, least)
        return pairs

    def _follow_replacements(self, judged: dict[str, RecalledItem]) -> None:
        """Raise what is marked as having replaced what bears on the query: it is the answer now,
        though it may share fewer words with the question."""
        places = {(one.item.layer, one.item.scope, one.item.id): one for one in judged.values()}
        for old in self.items:
            by = old.attributes.get(SUPERSEDED_BY)
            newer = places.get((old.layer, old.scope, str(by)))
            if newer is None or self._is_shown(old):
                continue
            content, least = newer.item.content, self._adjusted_relevance(old)
            if least > judged[content].relevance:
                judged[content] = replace(newer, relevance=least)

    def _follow_relations(self, judged: dict[str, RecalledItem]) -> None:
        """Raise what the graph reached from items that bear on the query."""
        if self.weights.get(GRAPH_LAYER, 0.0) < ASKS_FOR_RELATIONS:
            return
        away = {
            content: hops
            for content, one in judged.items()
            if one.item.layer == GRAPH_LAYER
            for hops in [relations_away(one.item)]
            if hops is not None
        }
        starts = [judged[content].relevance for content, hops in away.items() if not hops]
        for content, hops in away.items():
            known = starts or states_relation(judged[content].item, self.query.text)
            reached = max(starts, default=LISTED_RELEVANCE) * KEPT_OVER_RELATION**hops
            if hops and known and reached > judged[content].relevance:
                judged[content] = replace(judged[content], relevance=reached)

    def confidence(self, k: int) -> float:
        """Relevance of the most relevant item that an answer of ``k`` items gives; 0 without."""
        given = (one for one in self.ranked[:k] if not self._only_counts(one.item))
        return max((judged.relevance for judged in given), default=0.0)

    def conflicts(self, given: Sequence[RecalledItem]) -> list[tuple[MemoryItem, MemoryItem]]:
        """The given items that contradict each other, where no item says that it has replaced one
        of them."""
        replaced = {update.older.content for update in self.updates if tells_change(update)}
        lasting = [one.item for one in given if one.item.layer in LASTING_LAYERS]
        return [
            (one, other)
            for one, other in conflicts_among(lasting)
            if replaced.isdisjoint((one.content, other.content))
        ]

    def _is_shown(self, item: MemoryItem) -> bool:
        return SUPERSEDED_BY not in item.attributes or asks_for_history(self.query)

    def _existed_by_then(self, item: MemoryItem) -> bool:
        """Whether an item was there in the time that the query speaks of, or before it."""
        period = self.query.period
        return period is not None and item.created < period.end

    def _is_beside_listed(self, item: MemoryItem) -> bool:
        """Whether tasks, or what there was at a time, are asked for and found, and this is none:
        "What is on my plate?" shares a word with number plates, too."""
        of_a_time = self.query.period is not None and not self._names_subject
        found = bool(self._listed) if of_a_time else LISTED_RELEVANCE in self._listed.values()
        return found and (of_a_time or self._for_tasks) and item.content not in self._listed

    def _only_counts(self, item: MemoryItem) -> bool:
        return item.type == COUNT_TYPE and self._names_subject

    def _adjusted_relevance(self, item: MemoryItem) -> float:
        """The relevance of the text, with what the layer and the time say."""
        relevance = self._judged[item.content].relevance
        period = self.query.period
        weight = self.weights.get(item.layer, UNLIKELY_WEIGHT)
        evidence = 0.0 if _is_file(item) else LAYER_WEIGHT_EVIDENCE * (weight - 1)
        evidence += USER_LAYER_EVIDENCE * (item.layer == USER_LAYER and self._speaks_of_oneself)
        evidence += PASSING_EVIDENCE * (item.layer in PASSING_LAYERS and weight < 1)
        if period is not None and item.layer in EVENT_LAYERS:
            near = closeness(item.created, period)
            evidence += IN_PERIOD_EVIDENCE * near * (not self._for_tasks)
        if period is not None and item.layer in LASTING_LAYERS and self._names_the_time(item):
            evidence += NAMES_TIME_EVIDENCE
        if self._asks_when and item.layer == TASKS and "due" not in item.attributes:
            evidence += TELLS_NO_TIME_EVIDENCE
        if evidence:
            relevance = logistic(log_odds(relevance) + evidence)
        if self._is_beside_listed(item):
            relevance = min(relevance, max(self._listed.values()) * BESIDE_LISTED)
        return max(relevance, self._listed.get(item.content, 0.0))


def _time_to_come(query: LayerQuery) -> Period | None:
    """The time that a query speaks of, from today on; None if it is over, or speaks of none."""
    if query.period is None or query.period.end <= query.now:
        return None
    return Period(max(ReferenceTime(query.now).today, query.period.start), query.period.end)


def closeness(moment: datetime, period: Period) -> float:
    """1 within the period; outside of it exp(-distance / 3 days) before and exp(-distance / 14
    days) after it."""
    before, after = period.start - moment, moment - period.end
    days = max(before / DAYS_BEFORE, after / DAYS_AFTER, timedelta()) / timedelta(days=1)
    return math.exp(-days)


def _relevance_exponent(item: MemoryItem) -> float:
    return RELEVANCE_EXPONENT if session_of(item) is None else RELEVANCE_EXPONENT_IN_SESSION


def _is_file(item: MemoryItem) -> bool:
    """Whether an item is a memory file."""
    return any(origin.startswith("file:") for origin in item.provenance)


def _is_gap(item: MemoryItem) -> bool:
    """Whether an item only says that nothing is remembered."""
    return item.type == COUNT_TYPE and item.attributes.get("gap") is True


def rerank_score(item: MemoryItem, similarity: float, now: datetime) -> float:
    """What a recall orders by, in [0, 1]; see the module's text. ``similarity``, in [0, 1], says
    how well the item answers beside the others."""
    used = item.created if item.accessed is None else item.accessed
    days = max(0.0, (now - used).total_seconds() / SECONDS_A_DAY)
    fresh = max(0.0, 1 - days / FRESH_DAYS)
    return (
        SIMILARITY_WEIGHT * similarity
        + RECENCY_WEIGHT * fresh
        + USEFULNESS_WEIGHT * item.usefulness
    )
