"""Recaller: reads the layers that a query calls for, and says what memory has to say on it.

What the layers found is judged and put in order by ``Pool`` (``pool.py``). Further layers are read
only while the answer is not good enough.

* The classifier orders the layers and never vetoes: whoever calls recall wants memory read. Where
  it would read nothing, and for bare keywords, all layers but ``meta`` are read at once.
* One turn reads the next ``LAYERS_A_TURN`` secondary layers. The last turn allowed reads every
  layer that is left but ``meta``. So "Nothing relevant is stored" is said only after a look into
  all of them.
* Reading takes at most the router's deadline a turn; the first turn also waits for a memory
  service, for at most its ``probe_seconds``. Judging comes on top.
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
from router.memory.model import LayerReport, MemoryItem, Scope
from router.memory.query.rewrite import rewrite
from router.memory.recall.answers import CascadeStep, MemoryRoute, RecalledItem, RecallResult
from router.memory.recall.confidence import (
    ItemConfidence,
    age_days,
    completeness,
    consistencies,
    recency,
)
from router.memory.recall.memory_router import COUNTING_LAYER, MAX_K, MemoryRouter, check_k
from router.memory.recall.pool import RELEVANCE_FLOOR, Pool
from router.memory.recall.relevance import Judge
from router.memory.texts.questions import questions_of

_log = logging.getLogger(__name__)

LAYERS_A_TURN: Final = 2
"""They are read in parallel, at the price of one."""
MAX_DEPTH: Final = 10
_CANDIDATES_AN_ITEM: Final = 3
"""How many candidates a layer is asked for, for each item wanted: layers order by their own sense,
relevance and usefulness come after."""
SERVICE_QUALITY: Final = 0.7
"""How far what comes from beside the layers is to be trusted by its source alone."""
_COMPARED: Final = 30
"""Items among which contradictions are looked for."""
MANY_CHARACTERS: Final = 100_000
"""More are judged in a thread: some 20 ms, in which the event loop would serve nobody else."""
_ACCESSES_KEPT: Final = 1_000


class Recaller:
    """Answers queries from memory; see the module's text. Belongs to its router's event loop.

    Args:
        router: reads the layers; the caller closes it.
        relevance: judges what they found.
        accessed: told which items were given, in a thread and after the answer; it may block.
        beside: asked at the same time as the first layers, such as a memory service. It ends in
            bounded time and never raises.
        judges_in_thread: whether judging waits for something, such as a remote encoder.
    """

    def __init__(
        self,
        router: MemoryRouter,
        *,
        relevance: Judge,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        accessed: Callable[[Sequence[MemoryItem]], None] | None = None,
        judges_in_thread: bool = False,
        beside: Callable[[str, Scope, int], Awaitable[LayerReport | None]] | None = None,
    ) -> None:
        self._router = router
        self._relevance = relevance
        self._judges_in_thread = judges_in_thread
        self._beside = beside
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
        time_zone: tzinfo = UTC,
        layers: Sequence[str] | None = None,
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
        asked = rewrite(query, now=now)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(
                    self._ask_beside(query, scope, candidates, wanted=layers is None)
                )
                route = await self._router.read(
                    asked, scope=scope, k=candidates, layers=layers, always=True
                )
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        reports = (*route.results, *task.result())
        pool = Pool(asked)
        pool.weights |= {choice.name: choice.weight for choice in route.secondary}
        pool.weights |= {report.layer: report.weight for report in reports}
        pool.note_listed(route.results)
        await self._judge(pool, reports)
        path: list[CascadeStep] = []
        left = self._unread(route) if cascade and layers is None else []
        while left and len(path) < max_cascade_depth:
            before = pool.confidence(k)
            if before >= confidence_threshold:
                break
            turn = LAYERS_A_TURN if len(path) + 1 < max_cascade_depth else len(left)
            names, left = tuple(left[:turn]), left[turn:]
            more = await self._router.read(asked, scope=scope, k=candidates, layers=names)
            pool.note_listed(more.results, is_first=False)
            await self._judge(pool, more.results)
            path.append(CascadeStep(len(path) + 1, names, before, pool.confidence(k)))
        ranked = pool.ranked
        given = ranked[:k]
        if include_confidence_scores:
            given = self._with_confidence(given, ranked[: max(k, _COMPARED)], now)
        conflicts = pool.conflicts(given)
        reasoning: tuple[str, ...] = ()
        if explain_reasoning:
            whole = self._read_all(pool.reports)
            reasoning = (
                *route.classification.reasons,
                *_reasons(pool, path, len(given), whole=whole),
                *(_contradiction(given, pair) for pair in conflicts),
            )
        if self._accesses is not None and given:
            self._accesses.note([judged.item for judged in given])
        return RecallResult(
            id=route.id,
            query=query,
            items=tuple(given),
            confidence=pool.confidence(k),
            classification=route.classification,
            layers=tuple(pool.reports),
            cascade_path=tuple(path),
            conflicts=tuple((one.id, other.id) for one, other in conflicts),
            reasoning=reasoning,
            milliseconds=(self._monotonic() - started) * 1000,
        )

    async def aclose(self) -> None:
        """Wait until what was given has been told."""
        if self._accesses is not None:
            await self._accesses.told()

    async def _ask_beside(
        self, query: str, scope: Scope, k: int, *, wanted: bool
    ) -> tuple[LayerReport, ...]:
        report = await self._beside(query, scope, k) if self._beside and wanted else None
        return () if report is None else (report,)

    def _unread(self, route: MemoryRoute) -> list[str]:
        """The layers that were not read yet, the secondary ones first, best first."""
        read = {report.layer for report in route.results}
        names = [choice.name for choice in route.secondary]
        names += [name for name in self._router.specs if name != COUNTING_LAYER]
        return [name for name in dict.fromkeys(names) if name not in read]

    def _read_all(self, reports: Iterable[LayerReport]) -> bool:
        """Whether every layer but the one that counts had its say."""
        read = {report.layer for report in reports if report.is_complete}
        return self._router.specs.keys() - {COUNTING_LAYER} <= read

    async def _judge(self, pool: Pool, reports: Sequence[LayerReport]) -> None:
        """Add what layers found, with its relevance."""
        pool.add(reports)
        unjudged = pool.unjudged()
        contents = [item.content for item in unjudged]
        questions = [questions_of(item) for item in unjudged]

        def judge() -> None:
            pool.judge(contents, self._relevance(pool.query.subject, contents, questions))

        if self._judges_in_thread or sum(map(len, contents)) > MANY_CHARACTERS:
            await in_thread(judge)
        else:
            judge()

    def _with_confidence(
        self, given: Sequence[RecalledItem], among: Sequence[RecalledItem], now: datetime
    ) -> list[RecalledItem]:
        agreeing = consistencies([one.item for one in given], among=[one.item for one in among])
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
            for one, consistency in zip(given, agreeing, strict=True)
        ]


class _Accesses:
    """Tells which items were given: one call at a time, in a thread, bounded when it is slow."""

    def __init__(self, tell: Callable[[Sequence[MemoryItem]], None]) -> None:
        self._tell = tell
        self._waiting: deque[MemoryItem] = deque(maxlen=_ACCESSES_KEPT)
        self._telling: asyncio.Task[None] | None = None
        self._failing = False

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
                self._failing = False
            except Exception as error:  # noqa: BLE001 - the answer is given; a note must not matter
                if not self._failing:  # a full disk stays full, and would fill the log with it
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


def _contradiction(given: Sequence[RecalledItem], pair: tuple[MemoryItem, MemoryItem]) -> str:
    """The sentence about two given items, which it names by their places: a person is shown the
    texts in their order, and no ids."""
    items = [one.item for one in given]
    first, second = sorted(items.index(item) + 1 for item in pair)
    return f"Items {first} and {second} contradict each other, and nothing tells which one holds."


def _reasons(pool: Pool, path: Sequence[CascadeStep], given: int, *, whole: bool) -> Iterator[str]:
    for step in path:
        yield (
            f"The best answer so far bears on the query with probability {step.before:.2f}, which "
            f"is too low; reading {' and '.join(step.layers)} made it {step.after:.2f}."
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
    unfit = f"none of {found} items found fits"
    if found <= 1:
        unfit = "the one item found does not fit" if found else "nothing was found"
    where = "is stored" if whole else "was found in the layers that were read"
    yield f"Nothing relevant {where}: {unfit}."


def missing_layers(reports: Iterable[LayerReport]) -> tuple[str, ...]:
    """A sentence, without its full stop, on each layer that did not have its say."""
    return tuple(
        f"Layer {report.layer} is missing ({report.status}): {report.reason}"
        for report in reports
        if not report.is_complete
    )
