"""Recaller: reads the layers that a query needs, and makes one ranked answer of what they found.

``Pool`` (``pool.py``) judges how relevant the found items are, and ranks them. Further layers are
read only while the confidence of the answer is too low (the cascade).

* The classifier chooses which layers come first, but it cannot decide that none is read: whoever
  calls ``recall`` wants memory to be read. If it would read none, and for bare keywords, all layers
  but ``meta`` are read at once.
* Each step of the cascade reads the next ``LAYERS_A_STEP`` secondary layers. The last step that is
  allowed reads every layer that is left but ``meta``. Where not all of them were read, an empty
  answer says so. It never says that nothing is stored, because what is stored in other words may
  be missed.
* If the best item is in one of the ``FACT_LAYERS``, the others of these are read in any case, but
  only for items that have replaced one of those found, or that one of these has replaced.
* Reading takes at most the router's deadline for each step. The first time it also waits for a
  memory service, for at most its ``probe_seconds``. The time to judge comes on top.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Final

from router.concurrency.tasks import in_thread
from router.errors import InvalidRequest
from router.memory.model import COUNTING_LAYER, LayerReport, MemoryItem, Scope
from router.memory.query.rewrite import rewrite
from router.memory.recall.answers import CascadeStep, MemoryRoute, RecalledItem, RecallResult
from router.memory.recall.confidence import (
    ItemConfidence,
    age_days,
    completeness,
    consistencies,
    recency,
)
from router.memory.recall.memory_router import MAX_K, MemoryRouter, check_k
from router.memory.recall.pool import RELEVANCE_FLOOR, Pool
from router.memory.recall.relevance import Judge
from router.memory.recall.updates import replaces
from router.memory.stores.graph import with_relations
from router.memory.texts.questions import questions_of

_log = logging.getLogger(__name__)

LAYERS_A_STEP: Final = 2
"""They are read at the same time, so two take no longer than one."""
MAX_DEPTH: Final = 10
FACT_LAYERS: Final = ("semantic", "project", "user")
"""Layers into which people put the same kind of facts. To read all layers of lasting knowledge, and
not only these, costs twice as much time."""
_CANDIDATES_AN_ITEM: Final = 3
"""Candidates that each layer is asked for, for one item of the answer. Each layer ranks by its own
score, and the ranking by relevance and usefulness, which comes later, must have a choice."""
SERVICE_QUALITY: Final = 0.7
"""The source quality of items from the memory service; for layers it is in their ``LayerSpec``."""
_COMPARED: Final = 30
"""Items among which contradictions are looked for."""
MAX_CHARACTERS_ON_LOOP: Final = 100_000
"""Longer contents are judged in a thread: this takes some 20 ms, and would block the event loop."""
_MAX_WAITING_ACCESSES: Final = 1_000


class Recaller:
    """Answers queries from memory; see the module's text. Belongs to its router's event loop.

    Args:
        router: reads the layers; the caller closes it.
        relevance: judges what they found.
        mark_accessed: called with the items of an answer, in a thread and after the answer; it may
            block.
        ask_service: asks a memory service, at the same time as the first layers are read. It must
            end in bounded time and must not raise.
        judges_in_thread: whether judging waits for something, such as a remote encoder.
    """

    def __init__(
        self,
        router: MemoryRouter,
        *,
        relevance: Judge,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        mark_accessed: Callable[[Sequence[MemoryItem]], None] | None = None,
        judges_in_thread: bool = False,
        ask_service: Callable[[str, Scope, int], Awaitable[LayerReport | None]] | None = None,
    ) -> None:
        self._router = router
        self._relevance = relevance
        self._judges_in_thread = judges_in_thread
        self._ask_service = ask_service
        self._clock = clock
        self._monotonic = monotonic
        self._accesses = None if mark_accessed is None else _AccessRecorder(mark_accessed)

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
        time_zone: tzinfo = UTC,
        layers: Sequence[str] | None = None,
    ) -> RecallResult:
        """What memory holds that bears on the query, best first; empty if there is nothing.

        Args:
            query: 1 to 2,000 characters of any language.
            context: the scope of who asks, or a mapping of its names (user, project, session). None
                sees only what belongs to everybody.
            k: items at most, 1 to 100.
            cascade: whether to read secondary layers at all.
            confidence_threshold: they are read while the confidence is below this, in [0, 1].
            max_cascade_depth: steps of the cascade at most, 0 to 10.
            include_confidence_scores: whether to compute the five factors of each item.
            explain_reasoning: whether to give reasons.
            time_zone: of who asks; "yesterday" is a day there.
            layers: read these and no others; None lets the query decide.

        Raises:
            InvalidRequest: an argument cannot be used.
            EncoderError: relevance cannot be judged, because the encoder fails.
        """
        started = self._monotonic()
        scope = Scope.parse(context)
        _check(k, confidence_threshold, max_cascade_depth)
        candidates = min(MAX_K, k * _CANDIDATES_AN_ITEM)
        now = datetime.fromtimestamp(self._clock(), time_zone)
        layer_query = rewrite(query, now=now)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(
                    self._service_reports(query, scope, candidates, wanted=layers is None)
                )
                route = await self._router.read(
                    layer_query, scope=scope, k=candidates, layers=layers, even_if_unneeded=True
                )
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        reports = (*route.results, *task.result())
        pool = Pool(layer_query)
        pool.weights |= {choice.name: choice.weight for choice in route.secondary}
        pool.weights |= {report.layer: report.weight for report in reports}
        pool.note_listed(route.results)
        await self._judge(pool, reports)
        path: list[CascadeStep] = []
        unread = self._unread(route) if cascade and layers is None else []
        while unread and len(path) < max_cascade_depth:
            before = pool.settled(k)
            if before >= confidence_threshold:
                break
            count = LAYERS_A_STEP if len(path) + 1 < max_cascade_depth else len(unread)
            names, unread = tuple(unread[:count]), unread[count:]
            more = await self._router.read(layer_query, scope=scope, k=candidates, layers=names)
            pool.note_listed(more.results, is_first=False)
            await self._judge(pool, more.results)
            path.append(CascadeStep(len(path) + 1, names, before, pool.settled(k)))
        names = tuple(name for name in unread if name in FACT_LAYERS)
        if names and pool.answers_from(FACT_LAYERS):
            # What has replaced the answer may be in a layer that was not needed for finding it.
            more = await self._router.read(layer_query, scope=scope, k=k, layers=names)
            replacing = pool.replacing(more.results)
            if any(report.items for report in replacing):
                await self._judge(pool, replacing)
            else:
                pool.add(replacing)
        ranked = pool.ranked
        items = ranked[:k]
        if include_confidence_scores:
            items = self._with_confidence(items, ranked[: max(k, _COMPARED)], now)
        conflicts = pool.conflicts(items)
        reasoning: tuple[str, ...] = ()
        if explain_reasoning:
            all_read = self._are_all_read(pool.reports)
            reasoning = (
                *route.classification.reasons,
                *_reasons(pool, path, len(items), all_read=all_read),
                *(_contradiction(items, pair) for pair in conflicts),
            )
        if self._accesses is not None and items:
            self._accesses.record([judged.item for judged in items])
        return RecallResult(
            id=route.id,
            query=query,
            items=tuple(replace(one, item=one.item.in_zone(time_zone)) for one in items),
            confidence=pool.confidence(k),
            classification=route.classification,
            layers=tuple(pool.reports),
            cascade_path=tuple(path),
            conflicts=tuple((one.id, other.id) for one, other in conflicts),
            reasoning=reasoning,
            milliseconds=(self._monotonic() - started) * 1000,
        )

    async def aclose(self) -> None:
        """Wait until the accesses of all answers are recorded."""
        if self._accesses is not None:
            await self._accesses.flush()

    async def _service_reports(
        self, query: str, scope: Scope, k: int, *, wanted: bool
    ) -> tuple[LayerReport, ...]:
        ask = self._ask_service if wanted else None
        report = None if ask is None else await ask(query, scope, k)
        return () if report is None else (report,)

    def _unread(self, route: MemoryRoute) -> list[str]:
        """The layers that were not read yet: the secondary ones, best first, then the others."""
        read = {report.layer for report in route.results}
        names = [choice.name for choice in route.secondary]
        names += [name for name in self._router.specs if name != COUNTING_LAYER]
        return [name for name in dict.fromkeys(names) if name not in read]

    def _are_all_read(self, reports: Iterable[LayerReport]) -> bool:
        """Whether every layer but ``meta``, which only counts, was read completely."""
        read = {report.layer for report in reports if report.is_complete}
        return self._router.specs.keys() - {COUNTING_LAYER} <= read

    async def _judge(self, pool: Pool, reports: Sequence[LayerReport]) -> None:
        """Add what layers found to the pool, with its relevance."""
        pool.add(reports)
        unjudged = pool.unjudged()
        contents = [item.content for item in unjudged]
        texts = [with_relations(item) for item in unjudged]
        questions = [questions_of(item) for item in unjudged]

        def judge() -> None:
            pool.judge(contents, self._relevance(pool.query.subject, texts, questions))

        if self._judges_in_thread or sum(map(len, texts)) > MAX_CHARACTERS_ON_LOOP:
            await in_thread(judge)
        else:
            judge()

    def _with_confidence(
        self, items: Sequence[RecalledItem], among: Sequence[RecalledItem], now: datetime
    ) -> list[RecalledItem]:
        agreeing = consistencies([one.item for one in items], among=[one.item for one in among])
        qualities = {name: spec.quality for name, spec in self._router.specs.items()}
        return [
            replace(
                one,
                confidence=ItemConfidence(
                    relevance=one.relevance,
                    source_quality=qualities.get(one.item.layer, SERVICE_QUALITY),
                    recency=recency(age_days(one.item, now)),
                    consistency=consistency,
                    completeness=completeness(one.item),
                ),
            )
            for one, consistency in zip(items, agreeing, strict=True)
        ]


class _AccessRecorder:
    """Records which items were given in answers: one call at a time, in a thread. If that is slow,
    the oldest that wait are dropped."""

    def __init__(self, mark: Callable[[Sequence[MemoryItem]], None]) -> None:
        self._mark = mark
        self._waiting: deque[MemoryItem] = deque(maxlen=_MAX_WAITING_ACCESSES)
        self._task: asyncio.Task[None] | None = None
        self._failing = False

    def record(self, items: Iterable[MemoryItem]) -> None:
        self._waiting.extend(items)
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._mark_all())

    async def flush(self) -> None:
        if self._task is not None:
            await self._task

    async def _mark_all(self) -> None:
        while self._waiting:
            items = tuple(self._waiting)
            self._waiting.clear()
            try:
                await in_thread(partial(self._mark, items))
                self._failing = False
            except Exception as error:  # noqa: BLE001 - a record must not spoil an answer
                if not self._failing:  # log a lasting fault, such as a full disk, only once
                    _log.warning("it is not noted which memories are given: %s", error)
                self._failing = True


def _check(k: int, confidence_threshold: float, max_cascade_depth: int) -> None:
    check_k(k)
    if not isinstance(confidence_threshold, int | float) or not 0 <= confidence_threshold <= 1:
        raise InvalidRequest(f"confidence_threshold: {confidence_threshold!r} is not in [0, 1]")
    if not isinstance(max_cascade_depth, int) or not 0 <= max_cascade_depth <= MAX_DEPTH:
        raise InvalidRequest(
            f"max_cascade_depth: {max_cascade_depth!r} is no whole number from 0 to {MAX_DEPTH}"
        )


def _contradiction(answer: Sequence[RecalledItem], pair: tuple[MemoryItem, MemoryItem]) -> str:
    """The sentence about two items of an answer. It names them by their places, because a person
    sees the texts in this order, and no ids."""
    items = [one.item for one in answer]
    first, second = sorted(items.index(item) + 1 for item in pair)
    older, newer = sorted(pair, key=lambda item: item.created)
    tells = "nothing tells which one holds"
    if replaces(newer, older):
        tells = f"item {items.index(newer) + 1}, the later one, may have replaced the other"
    return f"Items {first} and {second} contradict each other, and {tells}."


def _reasons(
    pool: Pool, path: Sequence[CascadeStep], given: int, *, all_read: bool
) -> Iterator[str]:
    """Sentences on the steps of the cascade, the layers that failed, and the ``given`` items."""
    apart = "" if pool.query.period is None else ", without events of another time,"
    for step in path:
        yield (
            f"The best answer so far{apart} bears on the query with probability "
            f"{step.before:.2f}, which is too low; reading {' and '.join(step.layers)} made it "
            f"{step.after:.2f}."
        )
    for missing in missing_layers(pool.reports):
        yield f"{missing}."
    found = len(pool.items)
    relevant = sum(1 for one in pool.ranked if one.relevance >= RELEVANCE_FLOOR)
    if relevant:
        bear = f"{relevant} bears" if relevant == 1 else f"{relevant} bear"
        best = "best is" if given == 1 else f"best {given} are"
        items = "1 item" if found == 1 else f"{found} items"
        yield (
            f"Of {items} found, {bear} on the query with probability {RELEVANCE_FLOOR} or more; "
            f"the {best} given."
        )
        return
    unfit = f"none of {found} items fits"
    if found <= 1:
        unfit = "the one item does not fit" if found else "the layers gave no item"
    where = "" if all_read else " in the layers that were read"
    yield f"Nothing relevant was found{where}: {unfit}."


def missing_layers(reports: Iterable[LayerReport]) -> tuple[str, ...]:
    """A sentence, without its full stop, on each layer that gave no complete answer."""
    return tuple(
        f"Layer {report.layer} is missing ({report.status}): {report.reason}"
        for report in reports
        if not report.is_complete
    )
