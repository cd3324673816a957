"""Answers that all processes share, in Redis: an ``AnswerCache``.

What Redis holds is what counts. When somebody drops an answer and is told that it is dropped, no
process gives that answer any more. An answer that Redis has evicted or lost is decided again.

Each process follows a stream of the answers that are learnt and dropped. From it the process makes
its own index of similar requests. It also learns from it which of the answers that it has read may
be given again without asking Redis (``router/cluster/near.py``).

While Redis cannot be used, a process keeps in its own memory the answers that it decides, and
forgets them when Redis is back. It does not keep an answer there that may have reached Redis
before, because another process may have dropped it since. A drop that could not be sent is sent
until Redis has it, and this process does not give the answer meanwhile.

The words of the code: an *entry* is the digest under which a request in its context is filed.
*Near* answers are those that this process has read and remembers. The *fallback* is the cache in
memory while Redis cannot be used. A *letter* is a change that is written down until Redis has it.
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
"""A decision that has taken longer than this is kept by nobody."""
MAX_CANDIDATES: Final = 4
"""Similar requests that one look-up reads answers of, where the nearest ones are gone."""

NOT_SHARED: Final = "not shared"
"""This stands in place of a token where the decision began while Redis could not be used."""
fencing_token: ContextVar[str] = ContextVar("fencing_token", default="")
"""The fencing token of the decision under way (``router/cluster/flight.py``); empty without one."""

_TOKEN_DIGITS: Final = 20
_ELSEWHERE: Final = RoutingResult(
    decision=Decision.ABSTAIN,
    selected_skills=(),
    reasoning="the answer is in Redis",
    confidence=0.0,
    stage=Stage.FUZZY,
)
"""Stands for every answer in the index of similar requests, which knows their texts only."""


class Letter(BaseModel):
    """An answer to keep, or with no ``value`` one to drop.

    Attributes:
        entry: what it is filed under.
        value: the answer and its basis, as they lie in Redis.
        catalog: the version of the catalog that it was decided over.
        similar: whether similar requests may be given it.
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
        """Nothing is read yet. The link is closed by who made it."""
        self._link = link
        self._reads = Reads(link)
        self._keys = keys
        self._settings = settings
        self._life = int(min(settings.exact.ttl_seconds, LONGEST_SECONDS) * 1000)
        self._length = 4 * settings.fuzzy.max_entries
        self._index = self._new_index()
        self._fallback = self._new_fallback()
        self._marks: LRUCache[str, bytes] = LRUCache(64)
        self._pending: Counter[str] = Counter()  # entries whose drop is not acknowledged
        self._left: frozenset[str] = frozenset()  # those that the file held when it was opened
        self._outbox = Outbox("answers", self._send, read=Letter.model_validate_json, most=1)
        self.follower = Follower(
            settings.cluster,
            keys.answers,
            take=self._take,
            missed=self._begin_anew,
            block_seconds=TRUST_SECONDS / 5,
        )
        self._near = NearAnswers(settings.exact, self.follower)
        link.when_back(self._come_back)

    def _new_index(self) -> FuzzyCache:
        fuzzy = self._settings.fuzzy
        return FuzzyCache(fuzzy.similarity_threshold, fuzzy.ttl_seconds, fuzzy.max_entries)

    def _new_fallback(self) -> LocalAnswers:
        return LocalAnswers(self._settings.exact, self._settings.fuzzy)

    async def open(self) -> None:
        letters = await self._outbox.open(self._settings.state_dir / "cluster.sqlite3")
        self._left = frozenset(filter(None, map(_entry_in, letters)))
        self.follower.start()

    def epoch(self) -> int:
        """A number that changes when answers may have been dropped. A request may wait for the
        answer to an identical one only if both began in one epoch (``router/cluster/near.py``).
        While Redis cannot be used there is a single epoch: nothing is read that others could drop.
        """
        return self._near.epoch() if self._link.is_up else -1

    async def find(self, text: str, context: str, *, similar: bool) -> Found:
        began = time.perf_counter()
        near = self._near.get(text, context)
        if near is not None:
            return Found(near, Stage.EXACT, text, None, (time.perf_counter() - began) * 1e6)
        if self._waits(entry_of(text, context)):
            return await self._fallback.find(text, context, similar=False)
        try:
            own = await self._read(text, context)
            looked = time.perf_counter()
            in_exact = (looked - began) * 1e6
            if own is not None or not similar:
                return Found(own, Stage.EXACT, text, None, in_exact)
            self._index.discard(text, context)
            recall = await self._similar(text, context)
        except NoRedis as fault:
            if self._link.is_up:  # one operation failed, and this process has no answers of its own
                return Found(None, alone=str(fault))
            found = await self._fallback.find(text, context, similar=similar)
            return replace(found, alone=str(fault))
        in_fuzzy = (time.perf_counter() - looked) * 1e6
        return Found(recall.kept, Stage.FUZZY, recall.matched or text, recall, in_exact, in_fuzzy)

    async def _similar(self, text: str, context: str) -> FuzzyMatch:
        """The answer to a similar request, as it is in Redis."""
        for _ in range(MAX_CANDIDATES):
            recall = self._index.find(text, context)
            if recall.kept is None or recall.matched is None:
                return recall
            kept = self._near.get(recall.matched, context)
            if kept is None and not self._waits(entry_of(recall.matched, context)):
                kept = await self._read(recall.matched, context)
            if kept is not None:
                return replace(recall, kept=kept)
            self._index.discard(recall.matched, context)
        return FuzzyMatch()

    async def _read(self, text: str, context: str) -> KeptAnswer | None:
        """An answer in Redis; None where there is none that this version can read."""
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
        letter = Letter(
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
        if was_up and not self._waits(entry) and fencing_token.get() != NOT_SHARED:
            with suppress(NoRedis):
                said = await self._write(letter, token=fencing_token.get())
                self._near.drop(text, context)
                if said == b"kept":
                    await self._learn(text, context, similar=similar)
                    if by_person:
                        await asyncio.sleep(SETTLE_SECONDS)
                return
        if was_up and not by_person:
            return  # it may have reached Redis, where others may drop it
        await self._fallback.keep(text, context, kept, similar=similar)
        if by_person:
            await self._post(letter)

    async def _write(self, letter: Letter, *, token: str = "") -> bytes:
        """What the fence says: ``kept``, or why not."""
        keys, entry = self._keys, letter.entry
        fence = (keys.answer(entry), keys.dropped(entry), keys.lease(entry), keys.catalog)
        said: bytes = await self._link.script(
            scripts.KEEP,
            (*fence, keys.token, keys.answers),
            *(letter.catalog, token, letter.value or "", self._life, LATE_SECONDS * 10**6),
            *(self._length, "learn" if letter.similar else "replace"),
            *(letter.text, letter.context, letter.by),
        )
        return said

    async def forget(self, text: str, context: str) -> None:
        """Drop an answer for every process.

        When this returns, either no process gives it any more, or Redis cannot be used: then this
        process does not, and the others are told as soon as they can be. It takes
        ``SETTLE_SECONDS``.

        Raises:
            StoreError: Redis cannot be used, and neither can the file of what is to be sent.
        """
        entry = entry_of(text, context)
        letter = Letter(entry=entry, text=text, context=context)
        self._pending[entry] += 1
        try:
            self._near.drop(text, context)
            self._near.end_epoch()
            self._index.discard(text, context)
            await self._fallback.forget(text, context)
            while self._link.is_up:
                with suppress(NoRedis):
                    await self._drop(letter)
                    break
            else:
                await self._post(letter)
                return
        finally:
            self._settled(entry)
        await asyncio.sleep(SETTLE_SECONDS)

    async def _drop(self, letter: Letter) -> None:
        keys, entry = self._keys, letter.entry
        await self._link.script(
            scripts.DROP,
            (keys.answer(entry), keys.dropped(entry), keys.token, keys.answers),
            *(LATE_SECONDS * 1000, self._length, letter.text, letter.context),
        )

    # What is to be sent

    async def _post(self, letter: Letter) -> None:
        """Write a letter down, and send it as soon as Redis can be used."""
        self._pending[letter.entry] += 1  # first: it may be sent before this goes on
        try:
            await self._outbox.put([letter.model_dump_json(exclude_none=True)])
        except Exception:
            self._settled(letter.entry)
            raise

    async def _send(self, letters: Sequence[Letter]) -> None:
        for letter in letters:
            await (self._drop(letter) if letter.value is None else self._write(letter))
            self._settled(letter.entry)

    def _settled(self, entry: str) -> None:
        """One thing less is to be sent about an entry."""
        self._pending[entry] -= 1
        if self._pending[entry] <= 0:
            del self._pending[entry]

    def _waits(self, entry: str) -> bool:
        """Whether something is to be sent about an entry."""
        left = entry in self._left and not self._outbox.caught_up
        return left or self._pending[entry] > 0

    async def _come_back(self) -> None:
        """Redis answers again: what it holds counts, and not what was decided meanwhile."""
        try:
            await self._outbox.deliver()
        finally:
            self._fallback = self._new_fallback()

    # The index of similar requests

    async def _take(self, records: list[Record]) -> None:
        for number, record in enumerate(records):
            text, context = record.get("text"), record.get("context")
            if text is None or context is None:
                continue  # a later version wrote it
            self._near.drop(text, context)
            if record.get("kind") == "drop":
                self._near.end_epoch()
            await self._learn(text, context, similar=record.get("kind") == "learn")
            if number % 20 == 19:
                await give_way()

    async def _learn(self, text: str, context: str, *, similar: bool) -> None:
        """Whether the answer in Redis may be given to similar requests."""
        if similar:
            await self._index.learn(text, _ELSEWHERE, context)
        else:
            self._index.discard(text, context)

    async def _begin_anew(self) -> None:
        self._near.clear()
        self._index = self._new_index()

    # The marks of catalogs

    async def keep_marks(self, catalog_version: str, marks: bytes) -> None:
        if self._marks.get(catalog_version) == marks or len(marks) > MAX_MARKS_BYTES:
            return
        key = self._keys.marks(catalog_version)
        try:
            await self._link.run(lambda redis: redis.set(key, marks, px=self._life))
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
        """Stop following and sending; what is not sent yet is sent by the next process that opens
        this ``state_dir``. Closing twice is fine."""
        await self.follower.aclose()
        await self._reads.aclose()
        await self._outbox.aclose()


def _entry_in(text: str) -> str:
    """What a letter is about; empty where it cannot be read."""
    try:
        return Letter.model_validate_json(text).entry
    except ValueError:
        return ""
