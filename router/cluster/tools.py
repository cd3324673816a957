"""Tools that are put and dropped in one process reach the sources of the others.

Redis holds, for each shared source, the latest change of each tool by its name: a stamp that only
grows, and the digest of the definition, or none where the tool was dropped. Definitions lie under
their digests. Each change is announced on a stream. It is written down before it is sent, so one
that is made while Redis cannot be used arrives later.

Each process keeps the changes that it knows, in memory. One that begins, or may have missed some,
asks all to compare theirs with what Redis holds; so what was evicted or flushed comes back as long
as one process lives. What comes from Redis is parsed as a client's definition is, and changes no
file.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter

from router.cluster import scripts
from router.cluster.follower import Follower, Record
from router.cluster.keys import KEPT_SECONDS, STREAM_RECORDS, Keys
from router.cluster.link import Link, NoRedis
from router.cluster.outbox import Outbox
from router.concurrency.tasks import BackgroundTasks, in_thread
from router.errors import SourceError
from router.tools.folder import MAX_TOOLS, ToolFolder
from router.tools.sharing import MAX_DEFINITION_BYTES, SharedTools
from router.tools.source import ToolSource

if TYPE_CHECKING:
    from router.settings.settings import Settings
    from router.skills.sources import SkillSource

_log: Final = logging.getLogger(__name__)

BATCH: Final = 100
"""Changes that are sent before they are taken out of the file."""

_CHANGE: Final = TypeAdapter(tuple[str, str, str])
"""A change that is to be sent: the source, the tool's name, and its definition as JSON."""


class ToolSharing:
    """The shared sources of one process. Belongs to one event loop. Only private methods raise
    ``NoRedis``."""

    def __init__(self, link: Link, keys: Keys, settings: Settings) -> None:
        self._link = link
        self._keys = keys
        self._settings = settings
        self._sources: dict[str, SharedTools] = {}
        # The stamp of each change that is known, and the definition as JSON; empty where dropped.
        self._known: dict[tuple[str, str], tuple[int, str]] = {}
        self._turn = asyncio.Lock()
        self._asked = asyncio.Event()
        self._outbox = Outbox("tools", self._send, read=_CHANGE.validate_json, max_batch=BATCH)
        self._background = BackgroundTasks(_log)
        self.follower = Follower(
            settings.cluster, keys.tool_changes, take=self._take, missed=self._ask
        )

    async def open(self, sources: Iterable[SkillSource]) -> None:
        """Find those of the sources that are to be shared. Opening again does no harm.

        Raises:
            StoreError: the file of what is to be sent cannot be opened.
        """
        for source in sources:
            if isinstance(source, ToolFolder | ToolSource) and source.shared:
                self._sources[source.name] = source
        if self._sources:
            await self._outbox.open(self._settings.state_dir / "cluster.sqlite3")

    def begin(self) -> None:
        """Share them from here on."""
        if not self._sources:
            return
        for name, source in self._sources.items():
            source.share = partial(self._share, name)
        self._link.when_back(self._ask)
        self._background.run(self._stay_in_step())
        self.follower.start()
        self._background.run(self._ask())

    async def aclose(self) -> None:
        """Stop; what is not sent is sent by the next process that has this ``state_dir``. Closing
        twice is fine."""
        for source in self._sources.values():
            source.share = None
        await self.follower.aclose()
        await self._background.aclose()
        await self._outbox.aclose()

    # From here to the others

    def _share(self, source: str, name: str, definition: object) -> None:
        # As its size was measured: escapes would make some texts twice as long.
        text = "" if definition is None else json.dumps(definition, ensure_ascii=False)
        self._outbox.put_now([json.dumps([source, name, text])])

    async def _send(self, changes: Sequence[tuple[str, str, str]]) -> None:
        for source, name, text in changes:
            await self._change(source, name, text)

    async def _change(self, source: str, name: str, text: str, *, stamp: int | str = "") -> None:
        keys = self._keys
        digest = _digest(text.encode()) if text else ""
        said = await self._link.script(
            scripts.CHANGE_TOOL,
            (keys.tools(source), keys.tool(digest), keys.token, keys.tool_changes),
            *(source, name, digest, text, stamp, KEPT_SECONDS * 1000, STREAM_RECORDS, MAX_TOOLS),
        )
        if said == b"full":
            _log.error("the tool %r of %r is not shared: there are too many", name, source)

    # From the others

    async def _ask(self) -> None:
        """Have every process, this one too, compare what it knows with what Redis holds."""
        with suppress(NoRedis):
            await self._link.script(
                scripts.ASK_FOR_TOOLS, (self._keys.tool_changes,), STREAM_RECORDS
            )

    async def _take(self, records: list[Record]) -> None:
        changed: dict[str, list[str]] = {}
        for record in records:
            if record.get("kind") == "asked":
                self._asked.set()
            elif record.get("source") in self._sources and "name" in record:
                changed.setdefault(record["source"], []).append(record["name"])
        try:
            for source, names in changed.items():
                key = self._keys.tools(source)
                found = await self._link.run(lambda redis: redis.hmget(key, names))  # noqa: B023 - awaited
                await self._apply(source, dict(zip(names, found, strict=True)))
        except NoRedis:  # all is compared when Redis is back
            _log.debug("tools of others are not read yet")

    async def _stay_in_step(self) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            with suppress(NoRedis):
                for source in self._sources:
                    await self._compare(source)

    async def _compare(self, source: str) -> None:
        """Take from Redis what is newer, and send what it lacks."""
        key = self._keys.tools(source)
        found = await self._link.run(lambda redis: redis.hgetall(key))
        held = {name.decode("utf-8", "replace"): change for name, change in found.items()}
        await self._apply(source, held)
        for (of, name), (stamp, text) in list(self._known.items()):
            if of == source and _stamp(held.get(name)) < stamp:
                await self._change(source, name, text, stamp=stamp)

    async def _apply(self, source: str, changes: Mapping[str, bytes | None]) -> None:
        """Make the changes that are newer than what is known."""
        async with self._turn:
            for name, change in changes.items():
                stamp = _stamp(change)
                if change is None or stamp <= self._known.get((source, name), (0, ""))[0]:
                    continue
                digest = change.partition(b" ")[2].decode("utf-8", "replace")
                try:
                    text = await self._definition(digest) if digest else ""
                    if text is None:
                        await self._forget(source, name)
                        continue
                    definition = json.loads(text) if text else None
                    await in_thread(partial(self._sources[source].take, name, definition))
                except (SourceError, ValueError, RecursionError) as error:
                    _log.warning("the tool %r of %r in Redis is refused: %s", name, source, error)
                else:
                    self._known[source, name] = stamp, text

    async def _definition(self, digest: str) -> str | None:
        """What lies under a digest; None where it was evicted. Raises ValueError where it is
        something else."""
        key = self._keys.tool(digest)
        data: bytes = await self._link.run(
            lambda redis: redis.getrange(key, 0, MAX_DEFINITION_BYTES)
        )
        if not data:
            return None
        if _digest(data) != digest:
            raise ValueError("the definition has another digest than its name says")
        return data.decode()

    async def _forget(self, source: str, name: str) -> None:
        """The definition of a change was evicted: who has it sends the change again."""
        key = self._keys.tools(source)
        await self._link.run(lambda redis: redis.hdel(key, name))
        await self._ask()


def _stamp(change: bytes | None) -> int:
    """When a change was made; 0 where there is none, or it cannot be read."""
    stamp = b"" if change is None else change.partition(b" ")[0]
    return int(stamp) if stamp.isdigit() and len(stamp) <= 16 else 0


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
