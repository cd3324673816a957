"""Recaller: what memory has to say on a query, as one ranked list that can be believed.

``Recaller.answer`` reads the layers that the query calls for, judges every item's relevance, and
turns to further layers only while the answer is not good enough. Decisions:

* The confidence of an answer is the calibrated relevance of its most relevant item. Combining
  several (1 minus the product of the doubts) would need them to be independent; one model judges
  all of them against one query, so its errors are not, and ten unrelated items of 0.07 each would
  pass for an answer.
* An item below ``RELEVANCE_FLOOR`` is no answer. A floor of 0.1 means: to miss a memory that bears
  on the query is taken to be nine times as bad as to show one that does not. It lies below the
  default threshold on purpose: a doubtful item is shown, and further layers are tried.
* A query that names no subject ("Which tasks are overdue?") asks for whatever its layers list, and
  no word of it need be in an answer. What a primary layer lists for it is taken to bear on it with
  probability ``LISTED`` times the layer's weight, if its words do not make it more.
* One turn reads the next ``LAYERS_A_TURN`` secondary layers. Two, because they are read in
  parallel at the price of one.
* Copies of one content are one item, with the provenance of all; the copy from the heavier layer
  stays. Then 0.75 similarity + 0.05 recency of last use over 90 days + 0.2 usefulness orders them.
  (The usual 0.7 and 0.1 lost a point of recall on LoCoMo, where what matters is old.)
  Similarity is that of ``ranking``, which sees what relevance cannot: the other items found.

A turn takes at most the router's deadline, so an answer takes at most that many deadlines, and a
query without relevant memories ends the same way: empty, and saying so.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from router.errors import InvalidRequest
from router.flight import in_thread
from router.memory.model import MemoryItem, Scope, ScoreKind
from router.memory.query.listing import names_no_subject
from router.memory.query.rewrite import rewrite
from router.memory.recall.answers import CascadeStep, LayerReport, RecalledItem, RecallResult
from router.memory.recall.confidence import (
    SECONDS_A_DAY,
    ItemConfidence,
    age_days,
    completeness,
    consistencies,
    recency,
)
from router.memory.recall.memory_router import MAX_K, MemoryRouter
from router.memory.recall.ranking import rank
from router.memory.recall.relevance import RelevanceModel
from router.memory.texts.contents import content_key

_log = logging.getLogger(__name__)

RELEVANCE_FLOOR: Final = 0.1
LISTED: Final = 0.7
LAYERS_A_TURN: Final = 2
MAX_DEPTH: Final = 10
SIMILARITY_WEIGHT: Final = 0.75
RECENCY_WEIGHT: Final = 0.05
USEFULNESS_WEIGHT: Final = 0.2
FRESH_DAYS: Final = 90.0
_CANDIDATES_AN_ITEM: Final = 3
"""How many candidates a layer is asked for, for each item wanted: layers order by their own sense,
relevance and usefulness come after."""
_COMPARED: Final = 30
"""Items among which contradictions are looked for."""
_ACCESSES_KEPT: Final = 1_000


class Recaller:
    """Answers queries from memory; see the module's text. Belongs to its router's event loop.

    Args:
        router: reads the layers; the caller closes it.
        relevance: judges what they found.
        clock: seconds since the epoch.
        monotonic: seconds that never run backwards.
        accessed: told which items were given, in a thread and after the answer; it may block.
        judges_in_thread: whether judging waits for something, such as a remote encoder.
    """

    def __init__(
        self,
        router: MemoryRouter,
        *,
        relevance: RelevanceModel,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        accessed: Callable[[Sequence[MemoryItem]], None] | None = None,
        judges_in_thread: bool = False,
    ) -> None:
        self._router = router
        self._relevance = relevance
        self._judges_in_thread = judges_in_thread
        self._clock = clock
        self._monotonic = monotonic
        self._accesses = None if accessed is None else _Accesses(accessed)

    async def answer(
        self,
        query: str,
        context: Scope | Mapping[str, object] | None = None,
        *,
        k: int = 5,
        cascade: bool = True,
        confidence_threshold: float = 0.5,
        max_cascade_depth: int = 2,
        include_confidence_scores: bool = True,
        explain_reasoning: bool = True,
    ) -> RecallResult:
        """What memory has to say; an empty answer when nothing stored bears on the query.

        Args:
            query: 1 to 2,000 characters of any language.
            context: who asks: a scope, or a mapping of its names (user, project, session). None
                is nobody in particular, who sees only what belongs to all.
            k: items at most, 1 to 100.
            cascade: whether to turn to secondary layers at all.
            confidence_threshold: an answer below it, in [0, 1], turns to them.
            max_cascade_depth: how often at most, 0 to 10.
            include_confidence_scores: whether to score each item's five factors.
            explain_reasoning: whether to say why.

        Raises:
            InvalidRequest: an argument cannot be used.
            EncoderError: relevance cannot be judged, because the encoder fails.
        """
        started = self._monotonic()
        scope = Scope.parse(context)
        _check(k, confidence_threshold, max_cascade_depth)
        candidates = min(MAX_K, k * _CANDIDATES_AN_ITEM)
        route = await self._router.route(query, scope=scope, k=candidates)
        pool = _Pool(query, datetime.fromtimestamp(self._clock(), UTC))
        pool.take_listed(route.results)
        await self._judge(pool, route.results)
        path: list[CascadeStep] = []
        left = list(route.secondary) if cascade and route.results else []
        while left and len(path) < max_cascade_depth:
            before = pool.confidence(k)
            if before >= confidence_threshold:
                break
            turn, left = left[:LAYERS_A_TURN], left[LAYERS_A_TURN:]
            names = tuple(choice.name for choice in turn)
            more = await self._router.route(query, scope=scope, k=candidates, layers=names)
            await self._judge(pool, more.results)
            path.append(CascadeStep(len(path) + 1, names, before, pool.confidence(k)))
        ranked = pool.ranked()
        given = ranked[:k]
        confidences: Sequence[ItemConfidence | None] = [None] * len(given)
        if include_confidence_scores:
            confidences = self._confidences(given, ranked[: max(k, _COMPARED)], pool.now)
        reasoning: tuple[str, ...] = ()
        if explain_reasoning:
            reasoning = _reasons(pool, route.classification.reasons, path, len(ranked), len(given))
        if self._accesses is not None and given:
            self._accesses.note([judged.item for judged in given])
        return RecallResult(
            id=route.id,
            query=query,
            items=tuple(
                RecalledItem(judged.item, judged.relevance, confidence)
                for judged, confidence in zip(given, confidences, strict=True)
            ),
            confidence=pool.confidence(k),
            classification=route.classification,
            layers=tuple(pool.reports),
            cascade_path=tuple(path),
            reasoning=reasoning,
            milliseconds=(self._monotonic() - started) * 1000,
        )

    async def aclose(self) -> None:
        """Wait until what was given has been told."""
        if self._accesses is not None:
            await self._accesses.told()

    async def _judge(self, pool: _Pool, reports: Sequence[LayerReport]) -> None:
        """Add what layers found, with its relevance."""
        pool.add(reports)
        unjudged = pool.unjudged()
        judging = partial(self._relevance.of, pool.query, unjudged)
        pool.judge(unjudged, await in_thread(judging) if self._judges_in_thread else judging())

    def _confidences(
        self, given: Sequence[_Judged], among: Sequence[_Judged], now: datetime
    ) -> list[ItemConfidence]:
        agreeing = consistencies(
            [judged.item for judged in given], among=[judged.item for judged in among]
        )
        return [
            ItemConfidence(
                relevance=judged.relevance,
                source_quality=self._router.specs[judged.item.layer].quality,
                recency=recency(age_days(judged.item, now)),
                consistency=consistency,
                completeness=completeness(judged.item),
            )
            for judged, consistency in zip(given, agreeing, strict=True)
        ]


def merge_duplicates(items: Iterable[MemoryItem]) -> list[MemoryItem]:
    """The items without copies, in order: the first copy stays, and names where the others are.

    Provenance of an item that has none is its layer and id.
    """
    copies: dict[str, list[MemoryItem]] = {}
    for item in items:
        copies.setdefault(content_key(item.content), []).append(item)
    return [_merged(same) for same in copies.values()]


def _merged(copies: Sequence[MemoryItem]) -> MemoryItem:
    first = copies[0]
    if len(copies) == 1:
        return first
    origins = [origin for copy in copies for origin in copy.provenance or (_origin(copy),)]
    return replace(first, provenance=tuple(dict.fromkeys(origins)))


def _origin(item: MemoryItem) -> str:
    return f"{item.layer}:{item.id}"


def rerank_score(item: MemoryItem, similarity: float, now: datetime) -> float:
    """What a recall orders by, in [0, 1]; see the module's text.

    Args:
        similarity: how well the item answers beside the others, in [0, 1].
    """
    used = item.created if item.accessed is None else item.accessed
    days = max(0.0, (now - used).total_seconds() / SECONDS_A_DAY)
    fresh = max(0.0, 1 - days / FRESH_DAYS)
    return (
        SIMILARITY_WEIGHT * similarity
        + RECENCY_WEIGHT * fresh
        + USEFULNESS_WEIGHT * item.usefulness
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """An item, with its place in the ranking as its score, and its relevance."""

    item: MemoryItem
    relevance: float


@dataclass(slots=True, eq=False)
class _Pool:
    """What was found so far for one query, without copies, and how relevant it is."""

    query: str
    now: datetime
    reports: list[LayerReport] = field(default_factory=list)
    items: list[MemoryItem] = field(default_factory=list)
    _relevance: dict[str, float] = field(default_factory=dict)
    _listed: dict[str, float] = field(default_factory=dict)
    _ranked: list[_Judged] = field(default_factory=list)

    def add(self, reports: Sequence[LayerReport]) -> None:
        self.reports.extend(reports)
        new = [item for report in reports for item in report.items]
        self.items = merge_duplicates([*self.items, *new])

    def take_listed(self, reports: Sequence[LayerReport]) -> None:
        """Note what primary layers list for a query that names no subject."""
        if names_no_subject(rewrite(self.query, now=self.now)):
            for report in reports:
                for item in report.items:
                    self._listed.setdefault(item.content, LISTED * report.weight)

    def unjudged(self) -> list[str]:
        return [item.content for item in self.items if item.content not in self._relevance]

    def judge(self, contents: Sequence[str], relevances: Sequence[float]) -> None:
        """Take up how relevant contents are, and put everything in order."""
        for content, relevance in zip(contents, relevances, strict=True):
            self._relevance[content] = max(relevance, self._listed.get(content, 0.0))
        judged = [_Judged(item, self._relevance[item.content]) for item in self.items]
        similarities = rank(
            self.query,
            self.items,
            [one.relevance for one in judged],
            period=rewrite(self.query, now=self.now).period,
        )
        scored = [
            (rerank_score(one.item, similarity, self.now), one)
            for one, similarity in zip(judged, similarities, strict=True)
            if one.relevance >= RELEVANCE_FLOOR
        ]
        scored.sort(key=lambda pair: pair[0], reverse=True)  # stable: heavier layers first
        self._ranked = [
            replace(one, item=one.item.scored(score, ScoreKind.RERANKED)) for score, one in scored
        ]

    def ranked(self) -> list[_Judged]:
        """What bears on the query, best first."""
        return self._ranked

    def confidence(self, k: int) -> float:
        """Relevance of the most relevant item that an answer of ``k`` items gives; 0 without."""
        return max((judged.relevance for judged in self.ranked()[:k]), default=0.0)


class _Accesses:
    """Tells which items were given: one call at a time, in a thread, bounded when it is slow."""

    def __init__(self, tell: Callable[[Sequence[MemoryItem]], None]) -> None:
        self._tell = tell
        self._waiting: deque[MemoryItem] = deque(maxlen=_ACCESSES_KEPT)
        self._telling: asyncio.Task[None] | None = None

    def note(self, items: Iterable[MemoryItem]) -> None:
        self._waiting.extend(items)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.ensure_future(self._tell_all())

    async def told(self) -> None:
        if self._telling is not None:
            await self._telling

    async def _tell_all(self) -> None:
        while self._waiting:
            items = tuple(self._waiting)
            self._waiting.clear()
            try:
                await in_thread(partial(self._tell, items))
            except Exception:  # noqa: BLE001 - the answer is given; a note about it must not matter
                _log.warning("cannot note which memories were given", exc_info=True)


def _check(k: int, confidence_threshold: float, max_cascade_depth: int) -> None:
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_K:
        raise InvalidRequest(f"k: {k!r} is no whole number from 1 to {MAX_K}")
    if not isinstance(confidence_threshold, int | float) or not 0 <= confidence_threshold <= 1:
        raise InvalidRequest(f"confidence_threshold: {confidence_threshold!r} is not in [0, 1]")
    if not isinstance(max_cascade_depth, int) or not 0 <= max_cascade_depth <= MAX_DEPTH:
        raise InvalidRequest(
            f"max_cascade_depth: {max_cascade_depth!r} is no whole number from 0 to {MAX_DEPTH}"
        )


def _reasons(
    pool: _Pool,
    classified: Sequence[str],
    path: Sequence[CascadeStep],
    relevant: int,
    given: int,
) -> tuple[str, ...]:
    reasons = list(classified)
    reasons.extend(
        f"The best answer so far bears on the query with probability {step.before:.2f}, which is "
        f"too low; reading {' and '.join(step.layers)} made it {step.after:.2f}."
        for step in path
    )
    reasons.extend(
        f"Layer {report.layer} is missing ({report.status}): {report.reason}."
        for report in pool.reports
        if not report.is_complete
    )
    if not pool.reports:
        reasons.append("Answering this needs no memory, so none was read.")
    elif not relevant:
        reasons.append(f"Nothing relevant is stored: {_unfit(len(pool.items))}.")
    else:
        bear = f"{relevant} bears" if relevant == 1 else f"{relevant} bear"
        best = "best is" if given == 1 else f"best {given} are"
        items = "1 item" if len(pool.items) == 1 else f"{len(pool.items)} items"
        reasons.append(
            f"Of {items} found, {bear} on the query with probability {RELEVANCE_FLOOR} or more; "
            f"the {best} given."
        )
    return tuple(reasons)


def _unfit(found: int) -> str:
    if found <= 1:
        return "the one item found does not fit" if found else "nothing was found"
    return f"none of {found} items found fits"
