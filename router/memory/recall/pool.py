"""The pool of items found for one query: how relevant each is, and in which order they are given.

* **Relevance.** The relevance of an item's text is a probability (``relevance.py``). To its
  log-odds is added what the item's layer and time say (``_adjusted_relevance``).
* **Keywords.** An item that contains all words of a query of bare keywords bears on it, whatever
  its layer: keywords do not tell what is asked, and a rare word may say little to the encoder.
* **Confidence** of an answer is the relevance of its most relevant item. Combining several (1 minus
  the product of the doubts) would need independent errors; one model judges all of them, and ten
  unrelated items of 0.07 each would pass for an answer.
* **Listed items.** A query that names no subject ("Which tasks are overdue?") asks for everything
  that its layers list, and an answer need not share a word with it. So every item that a primary
  layer lists has a relevance of at least ``LISTED_RELEVANCE`` times the layer's weight, and stays
  in the layer's order. If the query asks for tasks ("What have I finished?"), only the items of the
  layer of tasks count as listed, with weight 1. If the query names a kind of memory and nothing
  else ("What are our conventions?"), the newest items of that kind count as listed.
* **Replacements.** Of two memories about one matter, the one that is valid at the time asked about
  comes first (``updates.py``). A memory that is marked as superseded is shown only if the query
  asks about the past, or contains a name that was replaced; in the past tense ("Did we ever use
  Jenkins?") that name makes it an answer. If the query does not ask for it in the past tense, the
  memory valid now is at least as relevant. "Our previous database" is the one before the present
  one, and not the oldest of three. "What did we use before MySQL?" is answered by what the memory
  about MySQL has replaced last, and "What did we use in March?" by everything that was valid then
  and has been replaced: both are as relevant as listed items.
* **Relations.** If the query asks for relations, items that the layer ``graph`` reached from a
  relevant item are relevant, too (``relations.py``).
* **Counts.** An item by which the layer ``meta`` counts others ("semantic: 3 items about Redis")
  comes last and gives no confidence if the query names a subject. A count of nothing is left out.

Items with equal content become one item, with the provenance of all; the one from the layer with
the higher weight stays. The list is ordered by similarity (``ranking.py``, which compares each item
with the others found), recency of last use and usefulness. Weights of 0.7, 0.1 and 0.2 for these
lost a point of recall on LoCoMo, where the memories that matter are old.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from router.memory.model import (
    COUNTING_LAYER,
    EVENT_LAYER,
    GRAPH_LAYER,
    PLANNING_LAYER,
    TASK_LAYER,
    USER_LAYER,
    LayerQuery,
    LayerReport,
    MemoryItem,
    Period,
    Scope,
    ScoreKind,
)
from router.memory.query.listing import (
    asks_for_kind,
    asks_for_tasks,
    asks_what_was_in_use,
    asks_when,
    bare_keywords,
    names_no_subject,
)
from router.memory.query.past import is_in_past_tense, names_only, stems_after_before
from router.memory.query.periods import ReferenceTime
from router.memory.query.rewrite import in_first_person
from router.memory.query.time_expressions import planned_times
from router.memory.recall.answers import RecalledItem
from router.memory.recall.confidence import SECONDS_A_DAY, conflicts_among
from router.memory.recall.memory_router import UNLIKELY_WEIGHT
from router.memory.recall.ranking import closeness, rank, session_of
from router.memory.recall.relations import follow_relations
from router.memory.recall.relevance import Judged
from router.memory.recall.updates import (
    LASTING_LAYERS,
    Update,
    asks_for_history,
    likelihood_of_replacement,
    replaces,
    tells_change,
    update_of,
    updates_among,
    valid_item,
    valid_items,
)
from router.memory.stores.graph import with_relations
from router.memory.stores.replacements import SUPERSEDED_BY
from router.memory.texts.contents import without_copies
from router.memory.texts.identifiers import identifiers_in, possible_identifiers_in
from router.memory.texts.words import content_words, words_of
from router.numeric import log_odds, logistic
from router.result import MEMORY_LAYERS
from router.text import stems, stems_of, tokens, word_set

RELEVANCE_FLOOR: Final = 0.14
"""If no item is as relevant as this, the answer is empty. The value follows from a choice of costs:
to miss a memory that bears on the query is six times as bad as to show one that does not. It is
below the default confidence threshold on purpose: a doubtful item is shown, and further layers are
read."""
MAX_RELEVANCE_RATIO: Final = 16
"""If the best item is above the floor, items below the floor follow it, down to the best relevance
divided by this, because the best item is sometimes the wrong one. Listed items are followed by
none."""
RELEVANCE_EXPONENT: Final = 0.7
"""An item's score is multiplied by the ratio of its relevance to the best relevance, to this power.
With a power of 1 relevance decides nearly alone, and the first five sessions that a recall gives on
LoCoMo contain less of the evidence; with 0.5 some answers of ``benchmarks/memory_finding.py`` no
longer come first."""
RELEVANCE_EXPONENT_IN_SESSION: Final = 0.2
"""The same for an item of a session. It is lower because the turns of a conversation explain each
other, and the ranking has already counted the relevance of all of them together. Chosen by leaving
out one conversation of LoCoMo in turn: the first five sessions of a recall contained .9071 of the
evidence with the other power, and .9096 with this one."""
LISTED_RELEVANCE: Final = 0.7
"""The lowest relevance of a listed item, and of an entity that the query names."""
LAYER_WEIGHT_EVIDENCE: Final = 1.9
"""Log-odds that are subtracted from items of a layer of weight 0, and in proportion for weights up
to 1; never from memory files, because they hold knowledge of any kind. This and the next three were
fitted together with the coefficients of ``relevance``."""
USER_LAYER_EVIDENCE: Final = 1.0
"""Log-odds that are added to items of the layer ``user`` where the query says "I" or "my"."""
TRANSIENT_EVIDENCE: Final = -1.0
"""Log-odds that are added to events and tasks, because most questions ask for lasting knowledge;
not if the query asks for their layer first."""
IN_PERIOD_EVIDENCE: Final = 4.0
"""Log-odds that are added to events within the period that the query names, less to those near
it."""
OF_THE_TIME: Final = 0.3
"""The least closeness of an event that may be meant: some days before the period that the query
names, or two weeks after it, when people tell what has happened."""
NAMES_TIME_EVIDENCE: Final = 1.5
"""Log-odds, not fitted, that are added to lasting knowledge whose text names the period of the
query: "Is the office open on Friday?" asks for what is said of Fridays."""
TELLS_NO_TIME_EVIDENCE: Final = -3.0
"""Log-odds, not fitted, that are added to a task without a date where the query asks when: "Renew
the passport" does not answer "When does my passport expire?"."""
RELEVANCE_AGAINST_REPLACEMENT: Final = 0.7
"""The weight of a difference of relevance, in log-odds, beside the likelihood of a replacement,
which has weight 1."""
SCORE_AGAINST_REPLACEMENT: Final = 0.5
"""The same for the logarithm of the ratio of the scores. Both were fitted together with the
coefficients of ``likelihood_of_replacement``."""
COUNT_TYPE: Final = "coverage"
"""The type of items that count what other layers hold."""
UNLISTED_SHARE: Final = 0.5
"""If a query asks for tasks, or for everything of a period, the scores of items that are not listed
are multiplied by this. In a query for tasks so is the relevance of plans for its period."""
KIND_WEIGHT: Final = 0.65
"""The weight of a layer whose newest items are listed for a query that names only their kind. It
keeps the confidence below the default threshold, because nobody has checked that an item of the
layer ``project`` is, for example, a convention."""
EVENT_LAYERS: Final = frozenset({EVENT_LAYER, "session"})
TRANSIENT_LAYERS: Final = EVENT_LAYERS | {TASK_LAYER}
LISTING_LAYERS: Final = TRANSIENT_LAYERS | {"governance", COUNTING_LAYER}
"""Built-in layers that list everything of a period or a kind; the others give the nearest items."""
SIMILARITY_WEIGHT: Final = 0.75
RECENCY_WEIGHT: Final = 0.05
USEFULNESS_WEIGHT: Final = 0.2
FRESH_DAYS: Final = 90.0
JUST_BELOW: Final = 0.999
"""An item's score times this is the score of an item that has to come directly after it."""
_FIRST_PERSON: Final = word_set("i me my mine i'm i've i'd i'll")
_TIME_PREPOSITIONS: Final = {*stems("in for on at of by during from until till before after the")}


class Pool:
    """The items found so far for one query, each content once, with their relevance. ``ranked`` are
    the relevant ones, best first."""

    def __init__(self, query: LayerQuery) -> None:
        self.query = query
        self.reports: list[LayerReport] = []
        self.items: list[MemoryItem] = []
        self.updates: list[Update] = []
        self.weights: dict[str, float] = {}
        self.ranked: list[RecalledItem] = []
        self._named: dict[tuple[Scope, str], list[MemoryItem]] = {}
        self._judged: dict[str, Judged] = {}
        self._listed: dict[str, float] = {}
        self._names_subject = not names_no_subject(query)
        self._asks_for_tasks = asks_for_tasks(query)
        self._asked_kind = asks_for_kind(query)
        self._future_period = _future_period(query)
        self._asks_when = asks_when(query.text)
        self._keywords = _keywords(query)
        self._codes = frozenset[str]().union(*identifiers_in(query.text).values())
        self._time_words = {*stems(query.text)} - {*stems(query.timeless)} - _TIME_PREPOSITIONS
        self._is_in_first_person = not _FIRST_PERSON.isdisjoint(tokens(in_first_person(query.text)))

    def add(self, reports: Sequence[LayerReport]) -> None:
        self.reports.extend(reports)
        new = [item for report in reports for item in report.items if not _is_gap(item)]
        # Of a memory that was moved to another layer the copy that was not replaced stays.
        found = sorted([*self.items, *new], key=lambda item: SUPERSEDED_BY in item.attributes)
        self.items = list(without_copies(found).values())
        self._named = {}
        for item in self.items:
            if item.layer in LASTING_LAYERS:
                self._named.setdefault((item.scope, item.id), []).append(item)

    def answers_from(self, layers: Collection[str]) -> bool:
        """Whether the best item is one of some layers."""
        return bool(self.ranked) and self.ranked[0].item.layer in layers

    def replacing(self, reports: Sequence[LayerReport]) -> list[LayerReport]:
        """Some reports with only those items that have replaced a relevant one, or that one of
        these has replaced, or that contradict one."""
        ranked = [one.item for one in self.ranked]
        return [
            replace(
                report,
                items=tuple(
                    item
                    for item in report.items
                    if any(
                        replaces(item, one) or replaces(one, item) or conflicts_among([item, one])
                        for one in ranked
                    )
                ),
            )
            for report in reports
        ]

    def note_listed(self, reports: Sequence[LayerReport], *, is_first: bool = True) -> None:
        """Note which items count as listed: those of a query that names no subject, or only a kind
        of memory. ``is_first`` says whether these are the layers that were read first."""
        if self._future_period is not None and not self._names_subject:
            self._note_plans(reports, self._future_period)
        layers, weight = LISTING_LAYERS, None
        if self._asks_for_tasks:
            layers, weight = frozenset({TASK_LAYER}), 1.0
        elif self._asked_kind is not None:
            layers, weight = frozenset({self._asked_kind}), KIND_WEIGHT
        elif self._names_subject or not is_first:
            return
        for report in reports:
            if report.layer in layers or report.layer not in MEMORY_LAYERS:
                share = LISTED_RELEVANCE * (report.weight if weight is None else weight)
                for item in report.items:
                    self._listed.setdefault(item.content, share)

    def _note_plans(self, reports: Sequence[LayerReport], future: Period) -> None:
        """Note the plans for the future period that the query names."""
        weight = UNLISTED_SHARE if self._asks_for_tasks else 1.0
        for report in reports:
            if report.layer == PLANNING_LAYER:
                plans = [i.content for i in report.items if self._is_planned(i, future)]
                self._listed |= dict.fromkeys(plans, LISTED_RELEVANCE * weight)

    def _is_planned(self, item: MemoryItem, future: Period) -> bool:
        made_at = item.created.astimezone(self.query.now.tzinfo)
        return any(
            time.start < future.end and future.start < time.end
            for time in planned_times(item.content, made_at)
        )

    def _names_the_time(self, item: MemoryItem) -> bool:
        """Whether an item contains the words by which the query names a period."""
        return bool(self._time_words) and self._time_words <= words_of(item.content).bag.keys()

    def unjudged(self) -> list[MemoryItem]:
        return [item for item in self.items if item.content not in self._judged]

    def judge(self, contents: Sequence[str], found: Sequence[Judged]) -> None:
        """Add the relevance of some contents, and rank all items anew."""
        self._judged.update(zip(contents, found, strict=True))
        judged = {
            item.content: RecalledItem(item, self._adjusted_relevance(item))
            for item in self.items
            if self._is_shown(item)
        }
        if is_in_past_tense(self.query.text):
            for content, one in judged.items():
                if one.relevance < RELEVANCE_FLOOR and self._is_named_as_replaced(one.item):
                    judged[content] = replace(one, relevance=RELEVANCE_FLOOR)
        leading = follow_relations(
            judged,
            self.query.text,
            graph_weight=self.weights.get(GRAPH_LAYER, 0.0),
            entity_relevance=LISTED_RELEVANCE,
        )
        self._follow_replacements(judged)
        successor = stems_after_before(self.query.text)
        successors = {
            content for content in judged if successor and successor <= words_of(content).bag.keys()
        }
        valid = self._follow_updates(judged, successors)
        scores = self._scores(list(judged.values()))
        self._prefer_likely_replacement(scores, judged)
        for item, update in valid:
            # The valid item gets the higher score of both, the other one comes directly after it.
            both = [update.older.content, update.newer.content]
            if scores.keys() >= {*both}:
                low, high = sorted(scores[content] for content in both)
                scores |= dict.fromkeys(both, min(low, JUST_BELOW * high)) | {item.content: high}
        # "Before MySQL": what MySQL has replaced comes before all items that only name MySQL.
        asked_for = {
            item.content
            for item, update in valid
            if item is update.older
            and update.newer.content in successors
            and item.content not in successors
        }
        if asked_for & scores.keys():
            most = max(scores.values())
            scores = {c: most if c in asked_for else JUST_BELOW * scores[c] for c in scores}
        related = [c for c in scores if judged[c].item.layer == GRAPH_LAYER]
        if not leading.isdisjoint(related):
            most = max(scores[content] for content in related)
            for content in related:
                scores[content] = (
                    most if content in leading else min(scores[content], JUST_BELOW * most)
                )
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
        """The scores by which the items that are relevant enough are ordered, by content."""
        similarities = rank(
            self.query.subject,
            [one.item for one in found],
            [one.relevance for one in found],
            [self._judged[one.item.content].cosine for one in found],
            period=self.query.period,
        )
        best = max((one.relevance for one in found if not self._only_counts(one.item)), default=0.0)
        others_follow = self._names_subject and self._asked_kind is None and best >= RELEVANCE_FLOOR
        lowest = RELEVANCE_FLOOR
        if others_follow:
            lowest = min(lowest, best / MAX_RELEVANCE_RATIO)
        return {
            one.item.content: one.relevance
            if one.item.content in self._listed
            else rerank_score(one.item, similarity, self.query.now)
            * min(1.0, one.relevance / max(RELEVANCE_FLOOR, best)) ** _relevance_exponent(one.item)
            * (UNLISTED_SHARE if self._is_unlisted(one.item) else 1.0)
            for one, similarity in zip(found, similarities, strict=True)
            if one.relevance >= lowest
        }

    def _prefer_likely_replacement(
        self, scores: dict[str, float], judged: dict[str, RecalledItem]
    ) -> None:
        """If the first item is probably not the valid one, because another item has replaced it or
        was valid at the time asked about, move that item to the place directly before it."""
        first = max(scores, key=scores.__getitem__, default=None)
        if first is None:
            return
        likeliest, best, first_item = first, 0.0, judged[first]
        for content, score in scores.items():
            other = judged[content]
            update = update_of(first_item.item, other.item)
            if update is None or not score or valid_item(update, self.query) is first_item.item:
                continue
            likelihood = likelihood_of_replacement(update)
            fits_better = log_odds(other.relevance) - log_odds(first_item.relevance)
            odds = likelihood + RELEVANCE_AGAINST_REPLACEMENT * fits_better
            odds += SCORE_AGAINST_REPLACEMENT * math.log(score / scores[first])
            if likelihood and odds > best:
                likeliest, best = content, odds
        if likeliest != first:
            scores[likeliest], scores[first] = scores[first], JUST_BELOW * scores[first]

    def _follow_updates(
        self, judged: dict[str, RecalledItem], successors: set[str]
    ) -> list[tuple[MemoryItem, Update]]:
        """Of each update raise the relevance of the item that is valid at the time asked about;
        these items with their updates. ``successors`` are the contents that contain what the query
        names after "before"."""
        asks_for_all_in_use = asks_what_was_in_use(self.query)
        among = updates_among(
            self.items,  # also what is not shown: what has replaced it twice is one matter
            lambda item: (
                self._highest_relevance(item, judged) >= RELEVANCE_FLOOR
                or item.content in successors
                or asks_for_all_in_use
            ),
        )
        self.updates = [
            update
            for update in among
            if judged.keys() >= {update.older.content, update.newer.content}
        ]
        pairs = valid_items(self.updates, self.query)
        for valid, update in pairs:
            # It answers what the other one answers, though it may share fewer words with the query.
            other = update.older if valid is update.newer else update.newer
            was_valid_then = valid is update.older and self._existed_by_then(valid)
            is_answer = other.content in successors or (asks_for_all_in_use and was_valid_then)
            least = max(judged[other.content].relevance, LISTED_RELEVANCE * is_answer)
            if was_valid_then:
                # The weight of its layer, which is low for questions about a time, does not count.
                least = max(least, self._judged[valid.content].relevance)
            if least > judged[valid.content].relevance:
                judged[valid.content] = RecalledItem(valid, least)
        return pairs

    def _highest_relevance(self, item: MemoryItem, judged: dict[str, RecalledItem]) -> float:
        """The relevance of an item's text, or that which it has been raised to."""
        of_text = self._judged[item.content].relevance
        return max(of_text, judged[item.content].relevance) if item.content in judged else of_text

    def _follow_replacements(self, judged: dict[str, RecalledItem]) -> None:
        """If a relevant item is marked as superseded, and the query does not ask for it, make the
        item that is valid in its place at least as relevant: that is the answer now, though it may
        share fewer words with the query."""
        for old in self.items:
            newest = self._replacement_of(old)
            if newest is None or newest.content not in judged:
                continue
            if valid_item(Update(old, newest), self.query) is old:
                continue
            newer, least = judged[newest.content], self._adjusted_relevance(old)
            if least > newer.relevance:
                judged[newest.content] = replace(newer, relevance=least)

    def _replacement_of(self, item: MemoryItem) -> MemoryItem | None:
        """The last item of those found to which the marks of replacement lead from an item; None if
        it is not marked, or what it is marked with was not found."""
        newest, passed = item, [item]
        while SUPERSEDED_BY in newest.attributes:
            marked_with = str(newest.attributes[SUPERSEDED_BY])
            named = self._named.get((newest.scope, marked_with), [])
            others = [one for one in named if one not in passed]
            of_its_layer = (one for one in others if one.layer == newest.layer)
            newer = next(of_its_layer, next(iter(others), None))
            if newer is None:
                break
            newest = newer
            passed.append(newer)
        return None if newest is item else newest

    def confidence(self, k: int) -> float:
        """Relevance of the most relevant item that an answer of ``k`` items gives; 0 without."""
        return max((one.relevance for one in self._given(k)), default=0.0)

    def settled(self, k: int) -> float:
        """The confidence as far as it makes it needless to read further layers: without events of
        another time than the query names, which may only share its words."""
        of_the_time = (one for one in self._given(k) if self._is_of_the_time(one.item))
        return max((one.relevance for one in of_the_time), default=0.0)

    def _given(self, k: int) -> Iterator[RecalledItem]:
        """The items of an answer of ``k`` items that are no mere counts of others."""
        return (one for one in self.ranked[:k] if not self._only_counts(one.item))

    def _is_of_the_time(self, item: MemoryItem) -> bool:
        period = self.query.period
        if period is None or item.layer not in EVENT_LAYERS:
            return True
        return closeness(item.created, period) >= OF_THE_TIME

    def conflicts(self, given: Sequence[RecalledItem]) -> list[tuple[MemoryItem, MemoryItem]]:
        """The pairs of given items that contradict each other, without those of which one is known
        to be replaced."""
        replaced = {update.older.content for update in self.updates if tells_change(update)}
        lasting = [one.item for one in given if one.item.layer in LASTING_LAYERS]
        return [
            (one, other)
            for one, other in conflicts_among(lasting)
            if replaced.isdisjoint((one.content, other.content))
        ]

    def _is_shown(self, item: MemoryItem) -> bool:
        is_valid = SUPERSEDED_BY not in item.attributes
        return is_valid or asks_for_history(self.query) or self._is_named_as_replaced(item)

    def _is_named_as_replaced(self, item: MemoryItem) -> bool:
        """Whether an item is marked as superseded, and the query contains a name of it that what
        is valid in its place has not."""
        newest = self._replacement_of(item)
        return newest is not None and names_only(self.query.text, item.content, newest.content)

    def _has_all_keywords(self, item: MemoryItem) -> bool:
        """Whether the query is bare keywords, and an item contains all of them, word for word."""
        if not self._keywords:
            return False
        text = with_relations(item)
        if not self._keywords <= words_of(text).bag.keys():
            return False
        return not self._codes - frozenset[str]().union(*possible_identifiers_in(text).values())

    def _existed_by_then(self, item: MemoryItem) -> bool:
        """Whether an item was saved before the end of the period that the query names."""
        period = self.query.period
        return period is not None and item.created < period.end

    def _is_unlisted(self, item: MemoryItem) -> bool:
        """Whether the query asks for tasks, or for everything of a period, there are such items,
        and this is none of them. Then a shared word says little: "What is on my plate?" shares one
        with number plates."""
        of_a_time = self.query.period is not None and not self._names_subject
        found = bool(self._listed) if of_a_time else LISTED_RELEVANCE in self._listed.values()
        return found and (of_a_time or self._asks_for_tasks) and item.content not in self._listed

    def _only_counts(self, item: MemoryItem) -> bool:
        return item.type == COUNT_TYPE and self._names_subject

    def _adjusted_relevance(self, item: MemoryItem) -> float:
        """The relevance of the text, adjusted by what the layer and the time say."""
        relevance = self._judged[item.content].relevance
        period = self.query.period
        weight = self.weights.get(item.layer, UNLIKELY_WEIGHT)
        evidence = 0.0 if _is_file(item) else LAYER_WEIGHT_EVIDENCE * (weight - 1)
        evidence += USER_LAYER_EVIDENCE * (item.layer == USER_LAYER and self._is_in_first_person)
        evidence += TRANSIENT_EVIDENCE * (item.layer in TRANSIENT_LAYERS and weight < 1)
        if period is not None and item.layer in EVENT_LAYERS:
            near = closeness(item.created, period)
            evidence += IN_PERIOD_EVIDENCE * near * (not self._asks_for_tasks)
        if period is not None and item.layer in LASTING_LAYERS and self._names_the_time(item):
            evidence += NAMES_TIME_EVIDENCE
        if self._asks_when and item.layer == TASK_LAYER and "due" not in item.attributes:
            evidence += TELLS_NO_TIME_EVIDENCE
        if self._has_all_keywords(item):
            relevance = max(relevance, RELEVANCE_FLOOR)
        elif evidence:
            relevance = logistic(log_odds(relevance) + evidence)
        if self._is_unlisted(item):
            relevance = min(relevance, max(self._listed.values()) * UNLISTED_SHARE)
        return max(relevance, self._listed.get(item.content, 0.0))


def _keywords(query: LayerQuery) -> frozenset[str]:
    """The stems of a query that is bare keywords, such as "redis timeout" or "What about Redis?";
    none of another query, or of one that asks for everything of a kind or a time."""
    named = bare_keywords(query.text)
    if not named or query.period is not None or names_no_subject(query):
        return frozenset()
    return frozenset(stems_of(content_words(named)))


def _future_period(query: LayerQuery) -> Period | None:
    """The part of the query's period from today on; None if it is over, or there is none."""
    if query.period is None or query.period.end <= query.now:
        return None
    return Period(max(ReferenceTime(query.now).today, query.period.start), query.period.end)


def _relevance_exponent(item: MemoryItem) -> float:
    return RELEVANCE_EXPONENT if session_of(item) is None else RELEVANCE_EXPONENT_IN_SESSION


def _is_file(item: MemoryItem) -> bool:
    """Whether an item is a memory file."""
    return any(origin.startswith("file:") for origin in item.provenance)


def _is_gap(item: MemoryItem) -> bool:
    """Whether an item only says that nothing is remembered."""
    return item.type == COUNT_TYPE and item.attributes.get("gap") is True


def rerank_score(item: MemoryItem, similarity: float, now: datetime) -> float:
    """The score that a recall orders by, in [0, 1]; see the module's text. ``similarity``, in [0,
    1], says how well the item answers in comparison with the others."""
    last_used = item.created if item.accessed is None else item.accessed
    days = max(0.0, (now - last_used).total_seconds() / SECONDS_A_DAY)
    fresh = max(0.0, 1 - days / FRESH_DAYS)
    return (
        SIMILARITY_WEIGHT * similarity
        + RECENCY_WEIGHT * fresh
        + USEFULNESS_WEIGHT * item.usefulness
    )
