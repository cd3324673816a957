"""A client for the memory service Forgetful: it decides when to ask it, and ranks its answers.

If a call fails or is late, a circuit breaker stops further calls for 30 seconds; then one trial
call decides. So only one caller has to wait for a service that is down. A successful call shows
that the service is up, so no extra call is needed to find out.

Forgetful gives the best matches but sorts them by importance, and older versions give no
similarity. So the answers are ordered again: by the service's similarity if all of them have one,
else by the cosine of the local encoder and the share of the query's words that are in the memory.
Contents of more than 2,000 characters are sent in parts, which become one item again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import SecretStr

from router.concurrency.breaker import BreakerState, CircuitBreaker
from router.concurrency.tasks import in_thread
from router.errors import EncoderError, MemoryServiceError
from router.memory.model import MemoryItem, ScoreKind
from router.memory.services.forgetful.http import HttpMemoryService
from router.memory.services.forgetful.mcp import McpMemoryService
from router.memory.services.forgetful.wire import (
    MAX_CONTENT,
    MAX_CONTEXT,
    MAX_K,
    MAX_TAGS,
    MAX_TITLE,
    ForgetfulService,
    Match,
    NewMemory,
    Origin,
    RemoteMemory,
    RequestRefused,
    ServiceResting,
    within,
)
from router.memory.texts.chunking import split
from router.memory.texts.contents import readable, title_of
from router.memory.texts.words import content_terms
from router.text import stems, tokens

if TYPE_CHECKING:
    from router.retrieval.encoders import Encoder

LAYER: Final = "forgetful"
FRESH_SECONDS: Final = 30.0
"""How long the service counts as up after a success, and as down after a failure."""
COSINE_SHARE: Final = 0.7
"""The weight of the cosine in a score; the rest is the share of the query's words. Only used if the
service gives no similarities."""
_MAX_KEYWORDS: Final = 10

T = TypeVar("T")


def connect_service(
    url: str, *, protocol: str = "http", token: SecretStr | None = None
) -> ForgetfulService:
    """The service behind a URL, over ``http`` or ``mcp``; nothing is sent yet. Raises as
    ``check_endpoint``, and ConfigurationError if the extra ``mcp`` is not installed."""
    made = McpMemoryService if protocol == "mcp" else HttpMemoryService
    return made(url, token=None if token is None else token.get_secret_value())


class Forgetful:
    """A memory service that may be slow, down, or give no scores. Belongs to one event loop.

    Every call raises MemoryServiceError if the service fails, is late, or is not asked because of
    an earlier failure.

    Args:
        service: the connection; ``aclose`` closes it.
        encoder: a local one, for services that give no similarity; without it only words count.
        clock: monotonic seconds.
        probe_seconds: how long ``probe`` waits for an answer. Other calls have the timeout of
            ``service``, unless the caller gives another one.
    """

    def __init__(
        self,
        service: ForgetfulService,
        *,
        encoder: Encoder | None = None,
        clock: Callable[[], float] = time.monotonic,
        probe_seconds: float,
    ) -> None:
        self._service = service
        self._encoder = encoder
        self._clock = clock
        self.probe_seconds = probe_seconds
        self._breaker = CircuitBreaker(failures=1, reset_seconds=FRESH_SECONDS, clock=clock)
        self._answered_at = -math.inf
        self._fault = ""

    async def probe(self) -> str | None:
        """Why the service cannot be used now; None if it can. After a call in the last 30 seconds
        its result is used, and nothing is sent."""
        age = self._clock() - self._answered_at
        if age < FRESH_SECONDS and self._breaker.state is BreakerState.CLOSED:
            return None
        try:
            await self._call(self._service.probe(), self.probe_seconds)
        except MemoryServiceError as error:
            return str(error)
        return None

    async def search(
        self, query: str, *, k: int, within_seconds: float | None = None
    ) -> list[MemoryItem]:
        """At most ``k`` items, best first: similarities of kind ``COSINE``, or scores in [-0.7, 1]
        of kind ``FUSED`` where the service gives none.

        Their attributes are ``title``, ``importance``, ``remote_ids`` and, if they were made from a
        file, ``file`` and ``store``.
        """
        parts = min(MAX_K, 2 * k)  # parts of one file become one item
        found = await self._call(self._service.search(query, k=parts), within_seconds)
        scores, kind = await self._scores(query, found)
        memories = [match.memory for match in found]
        ranked = sorted(zip(scores, memories, strict=True), key=lambda pair: -pair[0])
        return _items(ranked, kind)[:k]

    async def get(self, memory_id: int) -> MemoryItem:
        return _item([await self._call(self._service.get(memory_id))])

    async def create(self, memory: NewMemory) -> int:
        """Store one part of a file; its id."""
        return await self._call(self._service.create(memory), memory_may_be_at_fault=True)

    async def find(self, memory: NewMemory) -> int | None:
        """The id of a memory made from the same part of the same file, if the service finds one."""
        found = await self._call(
            self._service.search(memory.content[:500], k=MAX_K), memory_may_be_at_fault=True
        )
        same = (each.id for each, _ in found if each.source_url == memory.source_url)
        return next(same, None)

    async def holds(self, memory_id: int, *, of: tuple[str, str]) -> bool:
        """Whether the service has this memory, obsolete or not, and it was made from this file
        (store and name)."""
        return await self._ours(memory_id, of) is not None

    async def obsolete(
        self, memory_id: int, *, of: tuple[str, str], reason: str, superseded_by: int | None
    ) -> bool:
        """Mark a memory as obsolete, which is how the service deletes; returns whether that was
        done.

        Ids are used again after the service was wiped. So first its ``source_url`` must say that
        the memory was made from this file (store and name). A memory of another origin is not
        changed.
        """
        found = await self._ours(memory_id, of)
        if found is None or found.is_obsolete:
            return False
        marking = self._service.obsolete(memory_id, reason=reason, superseded_by=superseded_by)
        try:
            await self._call(marking, memory_may_be_at_fault=True)
        except RequestRefused:
            return False
        return True

    async def _ours(self, memory_id: int, of: tuple[str, str]) -> RemoteMemory | None:
        """The memory, if there is one and it was made from this file."""
        try:
            found = await self._call(self._service.get(memory_id), memory_may_be_at_fault=True)
        except RequestRefused:
            return None
        origin = found.origin
        return found if origin is not None and (origin.store, origin.name) == of else None

    async def aclose(self) -> None:
        await self._service.aclose()

    async def _call(
        self,
        work: Coroutine[Any, Any, T],
        seconds: float | None = None,
        *,
        memory_may_be_at_fault: bool = False,
    ) -> T:
        """The result of one call. After a failure the service is not asked for a while.

        Args:
            memory_may_be_at_fault: this one memory may be the reason of a failure, so a failure
                does not count if the service answers a probe.
        """
        call = self._breaker.try_call()
        if call is None:
            work.close()
            raise ServiceResting(
                f"the memory service is left alone for up to {FRESH_SECONDS:g} s after a failure: "
                f"{self._fault}"
            )
        with call:
            try:
                result = await (work if seconds is None else within(work, seconds))
            except MemoryServiceError as error:
                if isinstance(error, RequestRefused) or (
                    memory_may_be_at_fault and await self._answers()
                ):
                    call.succeeded()
                else:
                    call.failed()
                    self._fault = str(error)
                raise
            call.succeeded()
            self._answered_at = self._clock()
            return result

    async def _answers(self) -> bool:
        """Whether the service answers a probe now."""
        try:
            await within(self._service.probe(), self.probe_seconds)
        except MemoryServiceError:
            return False
        return True

    async def _scores(self, query: str, found: Sequence[Match]) -> tuple[list[float], ScoreKind]:
        similarities = [each.similarity for each in found if each.similarity is not None]
        if len(similarities) == len(found):
            return [min(1.0, max(-1.0, each)) for each in similarities], ScoreKind.COSINE
        texts = [f"{each.memory.title}\n{each.memory.content}" for each in found]
        wanted = set(content_terms(query))
        shares = [len(wanted.intersection(stems(text))) / max(len(wanted), 1) for text in texts]
        cosines = await self._cosines(query, texts)
        if cosines is None:
            return shares, ScoreKind.FUSED
        return [
            COSINE_SHARE * cosine + (1 - COSINE_SHARE) * share
            for cosine, share in zip(cosines, shares, strict=True)
        ], ScoreKind.FUSED

    async def _cosines(self, query: str, texts: Sequence[str]) -> list[float] | None:
        """The cosine of each text with the query; None without an encoder, or if it fails."""
        encoder = self._encoder
        if encoder is None:
            return None

        def work() -> list[float]:
            from router.retrieval.encoders import checked

            rows = checked(encoder.encode([query, *texts]), 1 + len(texts), encoder.identity)
            return [float(value) for value in rows[1:] @ rows[0]]

        try:
            return work() if encoder.static else await in_thread(work)
        except EncoderError:
            return None


def new_memories(
    name: str, *, store: str, digest: str, content: str, tags: Sequence[str]
) -> list[NewMemory]:
    """The content of a file in parts that the service accepts, cut between paragraphs or
    sentences."""
    pieces = split(content, limit=MAX_CONTENT)
    made = []
    for number, piece in enumerate(pieces, start=1):
        mark = "" if len(pieces) == 1 else f" ({number}/{len(pieces)})"
        made.append(
            NewMemory(
                title=title_of(content)[: MAX_TITLE - len(mark)] + mark,
                content=piece,
                context=f"From the memory file {name}{mark}."[:MAX_CONTEXT],
                keywords=tuple(dict.fromkeys(tokens(name)))[:_MAX_KEYWORDS],
                tags=tuple(tags)[:MAX_TAGS],
                source_url=Origin(name, store, digest, number, len(pieces)).to_url(),
            )
        )
    return made


def _items(ranked: Sequence[tuple[float, RemoteMemory]], kind: ScoreKind) -> list[MemoryItem]:
    """One item for each memory, or for each file, in the order and with the score of its best
    part."""
    groups: dict[object, list[tuple[float, RemoteMemory]]] = {}
    for score, memory in ranked:
        origin = memory.origin
        key = memory.id if origin is None else (origin.store, origin.name, origin.digest)
        groups.setdefault(key, []).append((score, memory))
    return [
        _item([memory for _, memory in group]).scored(group[0][0], kind)
        for group in groups.values()
    ]


def _item(memories: Sequence[RemoteMemory]) -> MemoryItem:
    """One item of the parts of a file, or of one memory."""
    parts = {0 if m.origin is None else m.origin.part: m for m in memories}
    ordered = [parts[number] for number in sorted(parts)]
    best, origin = memories[0], memories[0].origin
    attributes: dict[str, str | int | tuple[str, ...]] = {
        "title": readable(best.title),
        "importance": best.importance,
        "remote_ids": tuple(str(memory.id) for memory in ordered),
    }
    if origin is not None:
        attributes |= {"file": origin.name, "store": origin.store}
    return MemoryItem(
        id=str(best.id),
        layer=LAYER,
        content=readable("\n\n".join(memory.content for memory in ordered)),
        created=min(memory.created for memory in ordered),
        tags=tuple(best.tags),
        provenance=tuple(f"{LAYER}:{memory.id}" for memory in ordered),
        attributes=attributes,
    )
