"""The answer cache that all processes of a cluster share, in Redis: an ``AnswerCache``.

Redis is the authority. Once the drop of an answer has been acknowledged, no process gives that
answer any more. An answer that Redis has evicted or lost is decided again.

Each process follows a stream of the answers that are stored and dropped. From it the process builds
its own index of similar requests, and knows which of the answers that it has read may be used again
without asking Redis (``router/cluster/near.py``).

While Redis cannot be used, a process stores the answers that it decides in its own memory, and
forgets them when Redis is back. It does not store an answer there that may already be in Redis,
because another process may drop it there. A drop that could not be sent is sent again until Redis
has it, and this process does not give the answer meanwhile.

The terms of the code: an *entry* is the digest of a request and its cache context, the key in
Redis. *Near* answers are those that this process has read and remembers. The *fallback* is the
cache in memory that is used while Redis cannot be used. A *change* is one to store or to drop an
answer; it is kept in the outbox until Redis has it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache
from pydantic import BaseModel

from router.cluster import scripts
from router.cluster.follower import Follower, Record
from router.cluster.keys import Keys, entry_of
from router.cluster.link import Link, NoRedis
from router.cluster.near import SETTLE_SECONDS, TRUST_SECONDS, NearAnswers
from router.cluster.outbox import Outbox
from router.cluster.reads import Reads
from router.concurrency.tasks import give_way
from router.result import Decision, RoutingResult, Stage
from router.stages.answers import Found, LocalAnswers
from router.stages.fuzzy import FuzzyCache, FuzzyMatch
from router.stages.validation import Basis, DecidedBy, KeptAnswer

if TYPE_CHECKING:
    from router.settings.settings import Settings

_log: Final = logging.getLogger(__name__)

MAX_ANSWER_BYTES: Final = 64 * 1024
MAX_MARKS_BYTES: Final = 2**20
LONGEST_SECONDS: Final = 10 * 365 * 24 * 3600
"""Answers are kept for ten years at most; the setting may say that they are kept for ever."""
LATE_SECONDS: Final = 3600
"""The answer of a decision that has taken longer than this is not stored."""
MAX_CANDIDATES: Final = 4
"""The number of similar requests that one look-up tries, where the answers of the nearest are
gone."""

NOT_SHARED: Final = "not shared"
"""The value of ``fencing_token`` for a decision that began while Redis could not be used."""
fencing_token: ContextVar[str] = ContextVar("fencing_token", default="")
"""The fencing token of the decision under way (``router/cluster/flight.py``); empty without one."""

_TOKEN_DIGITS: Final = 20
_PLACEHOLDER: Final = RoutingResult(
    decision=Decision.ABSTAIN,
    selected_skills=(),
    reasoning="the answer is in Redis",
    confidence=0.0,
    stage=Stage.FUZZY,
)
"""Takes the place of every answer in the index of similar requests, which has only their texts."""


class AnswerChange(BaseModel):
    """An answer to store or, without ``value``, to drop.

    Attributes:
        entry: the key of the answer.
        value: the answer and its basis, in the form of Redis.
        catalog: the version of the catalog that it was decided over.
        similar: whether similar requests may get this answer.
        by: who decided it.
    """

    entry: str
    text: str
    context: str
    value: str | None = None
    catalog: str = ""
    similar: bool = False
    by: str = DecidedBy.PERSON


class SharedAnswers:
    """The answers of a cluster. Only its private methods raise ``NoRedis``. Belongs to one event
    loop."""

    def __init__(self, link: Link, keys: Keys, settings: Settings) -> None:
        """Nothing is read yet. ``aclose`` does not close the link."""
        self._link = link
        self._reads = Reads(link)
        self._keys = keys
        self._settings = settings
        self._ttl_milliseconds = int(min(settings.exact.ttl_seconds, LONGEST_SECONDS) * 1000)
        self._stream_length = 4 * settings.fuzzy.max_entries
        self._index = self._new_index()
        self._fallback = self._new_fallback()
        self._marks: LRUCache[str, bytes] = LRUCache(64)
        self._pending: Counter[str] = Counter()  # the unsent changes of each entry
        self._unsent_at_open: frozenset[str] = (
            frozenset()
        )  # entries with changes in the file when it was opened
        self._outbox = Outbox(
            "answers", self._send, read=AnswerChange.model_validate_json, max_batch=1
        )
        self.follower = Follower(
            settings.cluster,
            keys.answers,
            take=self._apply_records,
            missed=self._on_missed_records,
            block_seconds=TRUST_SECONDS / 5,
        )
        self._near = NearAnswers(settings.exact, self.follower)
        link.when_back(self._on_reconnect)

    def _new_index(self) -> FuzzyCache:
        fuzzy = self._settings.fuzzy
        return FuzzyCache(fuzzy.similarity_threshold, fuzzy.ttl_seconds, fuzzy.max_entries)

    def _new_fallback(self) -> LocalAnswers:
        return LocalAnswers(self._settings.exact, self._settings.fuzzy)

    async def open(self) -> None:
        messages = await self._outbox.open(self._settings.state_dir / "cluster.sqlite3")
        self._unsent_at_open = frozenset(filter(None, map(_entry_of_message, messages)))
        self.follower.start()

    def epoch(self) -> int:
        """A number that changes when answers may have been dropped. A request may share the
        decision of an identical one only if both began in the same epoch
        (``router/cluster/near.py``). While Redis cannot be used there is one epoch, because then no
        answer of others is read."""
        return self._near.epoch() if self._link.is_up else -1

    async def find(self, text: str, context: str, *, similar: bool) -> Found:
        began = time.perf_counter()
        near = self._near.get(text, context)
        if near is not None:
            return Found(near, Stage.EXACT, text, None, (time.perf_counter() - began) * 1e6)
        if self._has_unsent_change(entry_of(text, context)):
            return await self._fallback.find(text, context, similar=False)
        try:
            exact = await self._read(text, context)
            exact_ended = time.perf_counter()
            exact_microseconds = (exact_ended - began) * 1e6
            if exact is not None or not similar:
                return Found(exact, Stage.EXACT, text, None, exact_microseconds)
            self._index.discard(text, context)
            match = await self._similar(text, context)
        except NoRedis as fault:
            if self._link.is_up:  # only this operation failed, so the fallback is empty
                return Found(None, alone=str(fault))
            found = await self._fallback.find(text, context, similar=similar)
            return replace(found, alone=str(fault))
        fuzzy_microseconds = (time.perf_counter() - exact_ended) * 1e6
        return Found(
            match.kept,
            Stage.FUZZY,
            match.matched or text,
            match,
            exact_microseconds,
            fuzzy_microseconds,
        )

    async def _similar(self, text: str, context: str) -> FuzzyMatch:
        """The best match among similar requests whose answer Redis still has."""
        for _ in range(MAX_CANDIDATES):
            match = self._index.find(text, context)
            if match.kept is None or match.matched is None:
                return match
            kept = self._near.get(match.matched, context)
            if kept is None and not self._has_unsent_change(entry_of(match.matched, context)):
                kept = await self._read(match.matched, context)
            if kept is not None:
                return replace(match, kept=kept)
            self._index.discard(match.matched, context)
        return FuzzyMatch()

    async def _read(self, text: str, context: str) -> KeptAnswer | None:
        """The answer in Redis; None where there is none, or none that this version can read."""
        changes = self._near.changes
        value = await self._reads.get(self._keys.answer(entry_of(text, context)))
        if value is None:
            return None
        try:
            result, basis = json.loads(value[_TOKEN_DIGITS:])
            kept = KeptAnswer(RoutingResult.from_dict(result), Basis.from_json(basis))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            _log.warning("an answer in Redis cannot be read: %s", error)
            return None
        self._near.put(text, context, kept, changes=changes)
        return kept

    async def keep(self, text: str, context: str, kept: KeptAnswer, *, similar: bool) -> None:
        basis, entry = kept.basis, entry_of(text, context)
        if basis is None:
            return
        value = json.dumps([kept.result.to_dict(), basis.to_json()])
        if len(value) > MAX_ANSWER_BYTES:
            return
        change = AnswerChange(
            entry=entry,
            text=text,
            context=context,
            value=value,
            catalog=basis.catalog,
            similar=similar,
            by=basis.decided_by,
        )
        by_person = basis.decided_by is DecidedBy.PERSON
        was_up = self._link.is_up
        if was_up and not self._has_unsent_change(entry) and fencing_token.get() != NOT_SHARED:
            with suppress(NoRedis):
                status = await self._write(change, token=fencing_token.get())
                self._near.drop(text, context)
                if status == b"kept":
                    await self._update_index(text, context, similar=similar)
                    if by_person:
                        await asyncio.sleep(SETTLE_SECONDS)
                return
        if was_up and not by_person:
            return  # it may be in Redis all the same, where others may drop it
        await self._fallback.keep(text, context, kept, similar=similar)
        if by_person:
            await self._queue(change)

    async def _write(self, change: AnswerChange, *, token: str = "") -> bytes:
        """Store an answer in Redis. Returns ``kept``, or why it was refused."""
        keys, entry = self._keys, change.entry
        fence = (keys.answer(entry), keys.dropped(entry), keys.lease(entry), keys.catalog)
        status: bytes = await self._link.script(
            scripts.KEEP,
            (*fence, keys.token, keys.answers),
            *(
                change.catalog,
                token,
                change.value or "",
                self._ttl_milliseconds,
                LATE_SECONDS * 10**6,
            ),
            *(self._stream_length, "learn" if change.similar else "replace"),
            *(change.text, change.context, change.by),
        )
        return status

    async def forget(self, text: str, context: str) -> None:
        """Drop an answer for every process.

        When this returns, no process gives it any more. If Redis cannot be used, this holds for
        this process only, and the others follow as soon as Redis is back. It takes
        ``SETTLE_SECONDS``.

        Raises:
            StoreError: Redis cannot be used, and neither can the file of the outbox.
        """
        entry = entry_of(text, context)
        change = AnswerChange(entry=entry, text=text, context=context)
        self._pending[entry] += 1
        try:
            self._near.drop(text, context)
            self._near.end_epoch()
            self._index.discard(text, context)
            await self._fallback.forget(text, context)
            while self._link.is_up:
                with suppress(NoRedis):
                    await self._drop(change)
                    break
            else:
                await self._queue(change)
                return
        finally:
            self._change_done(entry)
        await asyncio.sleep(SETTLE_SECONDS)

    async def _drop(self, change: AnswerChange) -> None:
        keys, entry = self._keys, change.entry
        await self._link.script(
            scripts.DROP,
            (keys.answer(entry), keys.dropped(entry), keys.token, keys.answers),
            *(LATE_SECONDS * 1000, self._stream_length, change.text, change.context),
        )

    # What is to be sent

    async def _queue(self, change: AnswerChange) -> None:
        """Put a change into the outbox, which sends it as soon as Redis can be used."""
        self._pending[change.entry] += 1  # before ``put``, because it may be sent at once
        try:
            await self._outbox.put([change.model_dump_json(exclude_none=True)])
        except Exception:
            self._change_done(change.entry)
            raise

    async def _send(self, messages: Sequence[AnswerChange]) -> None:
        for change in messages:
            await (self._drop(change) if change.value is None else self._write(change))
            self._change_done(change.entry)

    def _change_done(self, entry: str) -> None:
        """One change of an entry has been sent, or given up."""
        self._pending[entry] -= 1
        if self._pending[entry] <= 0:
            del self._pending[entry]

    def _has_unsent_change(self, entry: str) -> bool:
        """Whether the outbox holds a change of an entry."""
        was_unsent = entry in self._unsent_at_open and not self._outbox.caught_up
        return was_unsent or self._pending[entry] > 0

    async def _on_reconnect(self) -> None:
        """Redis answers again: send the outbox, and forget the answers decided meanwhile."""
        try:
            await self._outbox.deliver()
        finally:
            self._fallback = self._new_fallback()

    # The index of similar requests

    async def _apply_records(self, records: list[Record]) -> None:
        for number, record in enumerate(records):
            text, context = record.get("text"), record.get("context")
            if text is None or context is None:
                continue  # a later version wrote it
            self._near.drop(text, context)
            if record.get("kind") == "drop":
                self._near.end_epoch()
            await self._update_index(text, context, similar=record.get("kind") == "learn")
            if number % 20 == 19:
                await give_way()

    async def _update_index(self, text: str, context: str, *, similar: bool) -> None:
        """Note in the index whether similar requests may get the answer in Redis."""
        if similar:
            await self._index.learn(text, _PLACEHOLDER, context)
        else:
            self._index.discard(text, context)

    async def _on_missed_records(self) -> None:
        self._near.clear()
        self._index = self._new_index()

    # The marks of catalogs

    async def keep_marks(self, catalog_version: str, marks: bytes) -> None:
        if self._marks.get(catalog_version) == marks or len(marks) > MAX_MARKS_BYTES:
            return
        key = self._keys.marks(catalog_version)
        try:
            await self._link.run(lambda redis: redis.set(key, marks, px=self._ttl_milliseconds))
        except NoRedis:
            await self._fallback.keep_marks(catalog_version, marks)
        else:
            self._marks[catalog_version] = marks

    async def marks_of(self, catalog_version: str) -> bytes | None:
        marks = self._marks.get(catalog_version)
        if marks is not None:
            return marks
        key = self._keys.marks(catalog_version)
        try:
            found: bytes | None = await self._link.run(lambda redis: redis.get(key))
        except NoRedis:
            return await self._fallback.marks_of(catalog_version)
        if found is not None:
            self._marks[catalog_version] = found
        return found

    async def aclose(self) -> None:
        """Stop following and sending. The next process that opens this ``state_dir`` sends the
        rest. Closing twice is fine."""
        await self.follower.aclose()
        await self._reads.aclose()
        await self._outbox.aclose()


def _entry_of_message(text: str) -> str:
    """The entry of a message in the outbox; empty where it cannot be parsed."""
    try:
        return AnswerChange.model_validate_json(text).entry
    except ValueError:
        return ""
