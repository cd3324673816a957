"""Memory files and the memory service as one: search, read, save, delete.

The files are canonical: they are written first and always searched, and if both sides hold the same
memory, the file's version is given. The service finds by meaning what a search for words does not
find. It may be absent, slow or down. The answer says so, and waits for it no longer than
``memory.service.probe_seconds``; after a failure it is not asked for 30 seconds. If it finds a
memory that was made from a file, the present text of that file is given, or nothing if the file is
gone.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from router.concurrency.tasks import in_thread
from router.errors import InvalidRequest, MemoryServiceError, StoreError, UnknownMemory
from router.memory.files.names import GLOBAL, parse_name
from router.memory.files.store import FileStore
from router.memory.model import (
    MAX_CONTENT_CHARACTERS,
    NOBODY,
    LayerReport,
    LayerStatus,
    MemoryItem,
    Scope,
)
from router.memory.services.delivery import FileDelivery, SyncReport
from router.memory.services.forgetful.client import LAYER, Forgetful, connect_service
from router.memory.services.forgetful.wire import ServiceLate, ServiceResting
from router.memory.services.merge import SERVICE_WEIGHT, MergeStrategy, merge
from router.memory.services.outbox import Intent, ServiceOutbox
from router.memory.texts.contents import content_key, name_from, without_copies
from router.plain_json import PlainJson
from router.request import check_text

if TYPE_CHECKING:
    from router.retrieval.encoders import Encoder
    from router.settings.settings import MemorySettings

_log: Final = logging.getLogger(__name__)

NO_SERVICE: Final = "no memory service is set (setting memory.service.url)"
NOT_SEEN: Final = "the service holds memories of a project that this scope does not see"
MAX_QUERY: Final = 500
MAX_LIMIT: Final = 100
SAVE_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 5.0
SYNC_SECONDS: Final = 600.0
_STATUS: Final = {ServiceLate: LayerStatus.TIMEOUT, ServiceResting: LayerStatus.SKIPPED}


@dataclass(frozen=True, slots=True)
class SourceReport(PlainJson):
    """How the search in one source went. ``reason`` is empty if it simply found something or
    nothing."""

    status: LayerStatus
    found: int
    milliseconds: float
    reason: str = ""


_Found: TypeAlias = tuple[Sequence[MemoryItem], SourceReport]


@dataclass(frozen=True, slots=True)
class UnifiedAnswer(PlainJson):
    """What a search found, and how each source's part went. The items are the best first, none
    twice by content; each has the score of its source, or a score of kind ``FUSED`` with the
    strategy ``weighted``."""

    items: tuple[MemoryItem, ...]
    files: SourceReport
    service: SourceReport
    layers: SourceReport


class ServiceFate(StrEnum):
    """Whether the memory service knows of a change to a file."""

    DELIVERED = "delivered"
    """It has confirmed the change."""
    QUEUED = "queued"
    """The change is queued on the disk and will be sent later."""
    FAILED = "failed"
    """The change could not be queued; ``sync`` will find the difference."""
    OFF = "off"
    """There is no service, or the change is not about a file."""


@dataclass(frozen=True, slots=True)
class SaveReport(PlainJson):
    """The result of a save or a deletion. The memory itself has been changed; otherwise an error is
    raised.

    Attributes:
        name: of the file, or the item's id.
        service: whether the memory service has been told; it is told of files only.
        reason: why it has not been told.
        layer: the layer that the item was saved to; None for a file.
        item: the item as it was saved; None for a file.
        supersedes: earlier memories that this one may replace. ``save`` with ``supersede`` marks
            them.
    """

    name: str
    service: ServiceFate
    reason: str = ""
    layer: str | None = None
    item: MemoryItem | None = None
    supersedes: tuple[MemoryItem, ...] = ()


@dataclass(frozen=True, slots=True)
class UnifiedStatus(PlainJson):
    """The state of both sides: the number of memory files, which are left out and why; whether the
    service is ``up``, ``down`` or ``off``, why, and how many changes it must still be told of."""

    files: int
    problems: tuple[str, ...]
    service: str
    reason: str
    waiting: int


class UnifiedMemory:
    """Files and service as one. Belongs to one event loop; ``aclose`` it.

    Args:
        files: the canonical store.
        delivery: tells the service of the files, and is closed by ``aclose``; None when there is
            no service.
        owner: who may see the files of the project, and the service; all see the global files.
        retry_seconds: pause of the delivery in the background between two attempts.
    """

    def __init__(
        self,
        files: FileStore,
        delivery: FileDelivery | None = None,
        *,
        owner: Scope = NOBODY,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self.files = files
        self._delivery = delivery
        self._owner = owner
        self._retry_seconds = retry_seconds
        self._delivering: asyncio.Task[None] | None = None

    @classmethod
    def open(cls, settings: MemorySettings, *, encoder: Encoder | None = None) -> UnifiedMemory:
        """The memories that the settings name. Blocks shortly.

        Each service has an outbox of its own, a file beside the other memories: what one service
        was told says nothing about another.

        Raises:
            ConfigurationError: a pattern or the service's URL cannot be used.
            StoreError: the outbox cannot be used.
        """
        files = FileStore(
            settings.project_directory,
            read_only=settings.read_only_patterns,
            ignored=settings.ignored_patterns,
        )
        given, owner = settings.service, Scope(project=settings.project)
        if given.url is None:
            return cls(files, owner=owner)
        connection = connect_service(given.url, protocol=given.protocol, token=given.token)
        key = hashlib.sha256(given.url.rstrip("/").encode()).hexdigest()[:16]
        outbox = ServiceOutbox(settings.directory / f"outbox-{key}.sqlite3", clock=time.time)
        service = Forgetful(connection, encoder=encoder, probe_seconds=given.probe_seconds)
        return cls(files, FileDelivery(files, service, outbox), owner=owner)

    async def search(
        self,
        query: str,
        *,
        scope: Scope = NOBODY,
        search_layers: Callable[[], Coroutine[Any, Any, _Found]] | None = None,
        limit: int = 10,
        lexical_only: bool = False,
        semantic_only: bool = False,
        strategy: MergeStrategy | str = MergeStrategy.PRIMARY_FIRST,
    ) -> UnifiedAnswer:
        """What bears on a query, from all sources at once. Who may not see the project's files is
        shown the global ones, and nothing of the service.

        Args:
            query: 1 to 500 characters of any language, with any signs.
            scope: who asks.
            search_layers: searches the memory layers; what it finds comes first, because its
                relevance has been judged. None leaves the layers out.
            limit: 1 to 100 items at most. The service gives 20 at most.
            lexical_only: ask the files alone.
            semantic_only: ask the service alone. If it is down the answer is empty and says why.
            strategy: how the lists of the files and of the service become one.

        Raises:
            InvalidRequest: an argument is out of its range, or both sources are excluded.
        """
        check_text("query", query, MAX_QUERY)
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidRequest(f"limit: {limit} is not in 1 to {MAX_LIMIT}")
        if lexical_only and semantic_only:
            raise InvalidRequest("lexical_only and semantic_only exclude each other")
        if strategy not in set(MergeStrategy):
            raise InvalidRequest(f"strategy: {strategy!r} is none of {', '.join(MergeStrategy)}")
        seen = scope.sees(self._owner)
        asked = (
            search_layers() if search_layers else _unasked("the layers were not asked"),
            _timed(in_thread(lambda: self.files.search(query, k=limit, only_global=not seen)))
            if not semantic_only
            else _unasked("semantic_only"),
            self._search_service(query, limit, alone=semantic_only)
            if seen and not lexical_only
            else _unasked("lexical_only" if lexical_only else NOT_SEEN),
        )
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(each) for each in asked]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        (judged, layers), (ours, files), (theirs, service) = [task.result() for task in tasks]
        items = merge(ours, theirs, strategy=MergeStrategy(strategy), limit=limit)
        found = tuple(without_copies([*judged, *items]).values())
        return UnifiedAnswer(found[:limit], files, service, layers)

    async def get(self, name: str, *, scope: Scope = NOBODY) -> MemoryItem:
        """One memory: of the files by its name, or of the service as ``forgetful:17``. Who may not
        see the project's files is given global ones alone.

        Raises as ``FileStore.get``, and MemoryServiceError if the service gave no answer.
        """
        if not scope.sees(self._owner):
            return await in_thread(lambda: self._global_file(name))
        kind, _, number = name.partition(":")
        if kind == LAYER and number.isdecimal() and self._delivery is not None:
            return await self._delivery.service.get(int(number))
        return await in_thread(lambda: self.files.get(name))

    async def save(
        self, content: str, *, name: str | None = None, tags: Sequence[str] = ()
    ) -> SaveReport:
        """Write a memory to its file, durably, and then tell the service, now or later. A name that
        is made from the content never replaces another memory. Raises as ``FileStore.save``."""
        check_text("content", content, MAX_CONTENT_CHARACTERS)
        chosen = name if name is not None else await in_thread(lambda: self._free_name(content))
        item = await in_thread(lambda: self.files.save(chosen, content, tags=tags))
        return await self._tell(item.id, Intent.SEND)

    async def delete(self, name: str, *, scope: Scope = NOBODY) -> SaveReport:
        """Delete a memory's file, durably, and then tell the service. Raises as ``save``, and
        UnknownMemory, also for a file that ``get`` would not give to this scope."""
        name = parse_name(name)
        if not scope.sees(self._owner):
            await in_thread(lambda: self._global_file(name))
        await in_thread(lambda: self.files.delete(name))
        return await self._tell(name, Intent.DELETE)

    async def forget_files(self) -> tuple[int, int]:
        """Delete every file of the project, not the global ones, and tell the service; how many
        there were, and of how many it has yet to be told. If one is protected (ReadOnlyMemory),
        none is deleted."""
        names = [
            name for name in await in_thread(self.files.names) if not name.startswith(f"{GLOBAL}/")
        ]
        for name in names:
            self.files.check_writable(name)
        fates = [(await self.delete(name, scope=self._owner)).service for name in names]
        told = (ServiceFate.DELIVERED, ServiceFate.OFF)
        return len(names), sum(fate not in told for fate in fates)

    async def sync(self, *, dry_run: bool = False, seconds: float = SYNC_SECONDS) -> SyncReport:
        """Bring the service to the state of the files, never the other way round. See
        ``FileDelivery.sync``; the rest is left for the next time after ``seconds``."""
        if self._delivery is None:
            return SyncReport(fault=NO_SERVICE)
        return await self._delivery.sync(dry_run=dry_run, seconds=seconds)

    async def resume(self) -> None:
        """Send to the service, in the background, the changes that an earlier process left
        queued."""
        if self._delivery is not None and await self._delivery.waiting():
            self._deliver_later()

    async def status(self) -> UnifiedStatus:
        """The state of both sides; waits for a service that is down as long as a search does."""
        names, problems = await in_thread(lambda: (self.files.names(), self.files.problems()))
        if self._delivery is None:
            return UnifiedStatus(len(names), problems, "off", NO_SERVICE, 0)
        fault = await self._delivery.service.probe()
        return UnifiedStatus(
            files=len(names),
            problems=problems,
            service="up" if fault is None else "down",
            reason=fault or "",
            waiting=await self._delivery.waiting(),
        )

    def _deliver_later(self) -> None:
        """Send the queued changes to the service in the background until none is left."""
        if self._delivering is None or self._delivering.done():
            self._delivering = asyncio.ensure_future(self._deliver())

    async def _deliver(self) -> None:
        assert self._delivery is not None  # noqa: S101 - whoever starts this has one
        try:
            while await self._delivery.waiting():
                await asyncio.sleep(self._retry_seconds)
                await self._delivery.run(seconds=SAVE_SECONDS)
        except StoreError as error:
            _log.warning("the memory service is told later: %s", error)

    async def recall_service(self, query: str, scope: Scope, k: int) -> LayerReport | None:
        """What the service finds for a recall; None if there is no service, or if the scope does
        not see the memory files."""
        if self._delivery is None or not scope.sees(self._owner):
            return None
        items, went = await self._search_service(query[:MAX_QUERY], k)
        return LayerReport(
            LAYER, SERVICE_WEIGHT, went.status, went.milliseconds, went.reason, tuple(items)
        )

    async def aclose(self) -> None:
        """Close connections and files. What is queued stays queued."""
        if self._delivering is not None:
            self._delivering.cancel()
            await asyncio.wait([self._delivering])
        if self._delivery is not None:
            await self._delivery.aclose()

    def _global_file(self, name: str) -> MemoryItem:
        """A global memory file. If there is none, no name of a file is suggested."""
        name = parse_name(name)
        if name.startswith(f"{GLOBAL}/"):
            with suppress(UnknownMemory):
                return self.files.get(name)
        raise UnknownMemory(name)

    async def _search_service(self, query: str, limit: int, *, alone: bool = False) -> _Found:
        if self._delivery is None:
            return await _unasked(NO_SERVICE)
        service, stores = self._delivery.service, self._delivery.stores
        patience = None if alone else service.probe_seconds

        async def found() -> list[MemoryItem]:
            given = await service.search(query, k=limit, within_seconds=patience)
            shown = await in_thread(lambda: [self._as_its_file_says(one, stores) for one in given])
            return [item for item in shown if item is not None]

        return await _timed(found())

    def _as_its_file_says(self, item: MemoryItem, stores: Mapping[str, Path]) -> MemoryItem | None:
        """What the service found; if it was made from a file of ours, what that says now under its
        name, and None if the file is gone."""
        root = stores.get(str(item.attributes.get("store")))
        if root is None:
            return item
        try:
            ours = self.files.get(str(item.attributes["file"]))
        except UnknownMemory:  # if the folder is away, that says nothing about the memory
            return None if root.is_dir() else item
        except InvalidRequest:  # somebody else made up where it comes from
            return item
        provenance = ours.provenance + item.provenance
        return replace(ours, provenance=provenance, score=item.score, score_kind=item.score_kind)

    async def _tell(self, name: str, intent: Intent) -> SaveReport:
        if self._delivery is None:
            return SaveReport(name, ServiceFate.OFF)
        try:
            await self._delivery.queue(name, intent)
            report = await self._delivery.run(seconds=SAVE_SECONDS, join=False)
            if await self._delivery.is_waiting(name):
                self._deliver_later()
                return SaveReport(name, ServiceFate.QUEUED, report.fault)
        except StoreError as error:
            return SaveReport(name, ServiceFate.FAILED, str(error))
        return SaveReport(name, ServiceFate.DELIVERED)

    def _free_name(self, content: str) -> str:
        """A name made from the content that no other memory has."""
        name = name_from(content)
        with suppress(UnknownMemory):
            if content_key(self.files.get(name).content) != content_key(content):
                return f"{name}-{content_key(content)[:8]}"
        return name


async def _timed(search: Coroutine[Any, Any, Sequence[MemoryItem]]) -> _Found:
    started = time.perf_counter()
    items: list[MemoryItem] = []
    reason = ""
    try:
        items = [*await search]
        status = LayerStatus.OK if items else LayerStatus.EMPTY
    except MemoryServiceError as error:
        status, reason = _STATUS.get(type(error), LayerStatus.ERROR), str(error)
    milliseconds = (time.perf_counter() - started) * 1000
    return items, SourceReport(status, len(items), milliseconds, reason)


async def _unasked(reason: str) -> _Found:
    return [], SourceReport(LayerStatus.SKIPPED, 0, 0.0, reason)
