"""Sends the changes in the outbox to the memory service. Nothing is ever copied back to the files.

The service may have stored a part although no confirmation arrived (the connection broke, or the
process was killed). So a part is looked for before it is sent again, and no second copy is made.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from router.concurrency.tasks import in_thread
from router.errors import MemoryServiceError, UnknownMemory
from router.memory.files.store import FileStore
from router.memory.model import MemoryItem
from router.memory.services.forgetful.client import Forgetful, new_memories
from router.memory.services.outbox import Delivered, Intent, QueuedFile, ServiceOutbox
from router.memory.texts.contents import memory_digest
from router.plain_json import PlainJson


@dataclass(frozen=True, slots=True)
class SyncReport(PlainJson):
    """What a delivery did, or in a dry run what it would do.

    Attributes:
        sent: files whose present state the service has taken.
        deleted: files that are gone here, and now there.
        unchanged: files that the service holds already, or that cannot be read now.
        kept: files that were not found, in a folder that could not be read completely; they may
            still exist, so nothing is deleted.
        failed: entries that the service refused or did not answer; they are tried again later.
        waiting: entries that are still in the outbox.
        fault: the reason of the first failure; empty if there was none.
    """

    sent: int = 0
    deleted: int = 0
    unchanged: int = 0
    kept: int = 0
    failed: int = 0
    waiting: int = 0
    fault: str = ""


class FileDelivery:
    """Sends files to a service. Belongs to one event loop; ``aclose`` closes the service and the
    outbox."""

    def __init__(self, files: FileStore, service: Forgetful, outbox: ServiceOutbox) -> None:
        self.service = service
        self.stores = {store_id(root): root for root in files.roots}
        self._files = files
        self._outbox = outbox
        self._one_at_a_time = asyncio.Lock()

    async def aclose(self) -> None:
        """Close the connection and the outbox. What is queued stays queued."""
        await self.service.aclose()
        await in_thread(self._outbox.close)

    async def queue(self, name: str, intent: Intent) -> None:
        """Note durably what is to be done."""
        await in_thread(lambda: self._outbox.add([(self._store_of(name), name, intent)]))

    async def is_waiting(self, name: str) -> bool:
        """Whether something is still to be done about a name."""
        waiting = await in_thread(lambda: self._outbox.queued(self.stores))
        return (self._store_of(name), name) in waiting

    async def waiting(self) -> int:
        return len(await in_thread(lambda: self._outbox.queued(self.stores)))

    async def run(self, *, seconds: float, join: bool = True) -> SyncReport:
        """Process the entries that are due, oldest first, until none is left, the service fails, or
        the time is over. There is one run at a time; without ``join`` a call returns at once if
        another run is under way."""
        if self._one_at_a_time.locked() and not join:
            return SyncReport(waiting=await self.waiting(), fault="a delivery is under way")
        ends = time.monotonic() + seconds
        report = SyncReport()
        async with self._one_at_a_time:
            while time.monotonic() < ends:
                fault = await self.service.probe()
                if fault is not None:  # do not reserve an entry that cannot be sent
                    report = replace(report, fault=report.fault or fault)
                    break
                entry = await in_thread(lambda: self._outbox.take(self.stores))
                if entry is None:
                    break
                report = await self._attempt(entry, report)
        return replace(report, waiting=await self.waiting())

    async def sync(self, *, dry_run: bool, seconds: float) -> SyncReport:
        """Queue every file that the service does not have in its present state, and a deletion for
        every one that it has and that is gone; then ``run``, with postponed entries. A service that
        was wiped gets all files again."""
        snapshot = await in_thread(self._files.snapshot)
        held = await in_thread(lambda: self._outbox.delivered(self.stores))
        if await self._is_wiped(held):
            held = {}
            if not dry_run:
                await in_thread(lambda: self._outbox.lose(self.stores))
        queued = await in_thread(lambda: self._outbox.queued(self.stores))
        whole = {store_id(root) for root in snapshot.whole}
        intents: list[tuple[str, str, Intent]] = []
        unchanged = kept = 0
        for name, digest in snapshot.digests.items():
            key = self._store_of(name), name
            if digest is None or (key in held and held[key].digest == digest):
                unchanged += 1
            else:
                intents.append((*key, Intent.SEND))
        for store, name in held:
            if name in snapshot.digests:
                continue
            if store in whole:
                intents.append((store, name, Intent.DELETE))
            else:
                kept += 1
        if dry_run:
            sent = sum(intent is Intent.SEND for _, _, intent in intents)
            return SyncReport(sent, len(intents) - sent, unchanged, kept)
        # Another run may be sending an entry that is queued already; it must not be sent twice.
        new = [(store, name, what) for store, name, what in intents if (store, name) not in queued]
        await in_thread(lambda: self._outbox.add(new))
        await in_thread(lambda: self._outbox.make_due(self.stores))
        report = await self.run(seconds=seconds)
        return replace(report, unchanged=unchanged, kept=kept)

    async def _is_wiped(self, held: Mapping[tuple[str, str], Delivered]) -> bool:
        """Whether the service has lost its data: the first and the last memory that it should have
        are gone, or are not made from the same files any more."""
        ids = {one.ids[-1]: key for key, one in held.items() if one.ids}
        try:
            for number in {min(ids), max(ids)} if ids else ():
                if await self.service.holds(number, of=ids[number]):
                    return False
        except MemoryServiceError:  # a service that does not answer need not have lost anything
            return False
        return bool(ids)

    def _store_of(self, name: str) -> str:
        return store_id(self._files.root_of(name))

    async def _attempt(self, entry: QueuedFile, report: SyncReport) -> SyncReport:
        try:
            done = await self._do(entry)
        except (MemoryServiceError, _Unseen) as error:
            fault = str(error)
            await in_thread(lambda: self._outbox.postpone(entry, fault))
            return replace(report, failed=report.failed + 1, fault=report.fault or fault)
        if done is Intent.SEND:
            return replace(report, sent=report.sent + 1)
        return replace(report, deleted=report.deleted + 1)

    async def _do(self, entry: QueuedFile) -> Intent:
        """Process one entry; returns what was done. If the file is gone by now, its memories are
        deleted, whatever was intended."""
        item = await in_thread(lambda: self._read(entry))
        before = await in_thread(lambda: self._outbox.held(entry.store, entry.name))
        if item is None:
            await self._obsolete(entry, (*before.ids, *entry.sent), "its file was deleted", None)
            await in_thread(lambda: self._outbox.settle(entry, None))
            return Intent.DELETE
        digest = memory_digest(item.content, item.tags)
        now = before if before.digest == digest else await self._send(entry, item, digest)
        stale = [old for old in (*before.ids, *entry.sent) if old not in now.ids]
        await self._obsolete(entry, stale, "its file was changed", now.ids[0])
        await in_thread(lambda: self._outbox.settle(entry, now))
        return Intent.SEND

    def _read(self, entry: QueuedFile) -> MemoryItem | None:
        """The file's memory; None when it is gone. Raises _Unseen if that is not certain."""
        try:
            return self._files.get(entry.name)
        except UnknownMemory:
            snapshot = self._files.snapshot()
            is_seen = self.stores[entry.store] in snapshot.whole
            if entry.intent is Intent.DELETE or (is_seen and entry.name not in snapshot.digests):
                return None
        raise _Unseen(f"memory {entry.name!r} cannot be read now")

    async def _send(self, entry: QueuedFile, item: MemoryItem, digest: str) -> Delivered:
        parts = new_memories(
            entry.name, store=entry.store, digest=digest, content=item.content, tags=item.tags
        )
        ids: list[int] = []
        if entry.sent_digest == digest:
            ids += entry.sent
        else:  # delete old parts first: after a failure below nobody would know their ids
            await self._obsolete(entry, entry.sent, "its file was changed", None)
        for part in parts[len(ids) :]:
            made: int | None = None
            if entry.attempts > 1:
                made = await self.service.find(part)
            if made is None:
                made = await self.service.create(part)
            ids.append(made)
            await in_thread(lambda: self._outbox.note_sent(entry, digest, ids))
        return Delivered(digest, tuple(ids))

    async def _obsolete(
        self, entry: QueuedFile, ids: Iterable[int], reason: str, by: int | None
    ) -> None:
        for memory_id in ids:
            await self.service.obsolete(
                memory_id,
                of=(entry.store, entry.name),
                reason=reason,
                superseded_by=by,
            )


class _Unseen(Exception):
    """It is not certain whether a file exists: it or its folder cannot be read."""


def store_id(root: Path) -> str:
    """An id for a folder of memories: 16 hexadecimal digits."""
    return hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]
