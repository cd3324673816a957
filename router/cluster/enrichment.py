"""What an LLM was asked once serves every process: enrichments, by the digest of the skill's text.

A process puts the enrichments of its own files into Redis, each under the digest of the skill that
it was written for, and announces it on a stream. A process that has a skill of that digest and no
enrichment of its own for it uses that one, in memory; nothing is written into a folder of skills.
What was evicted is a miss until the next process with the file begins.

What comes from Redis is read as strictly as a line of a file, and filtered as an import is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from router.cluster import scripts
from router.cluster.follower import Follower, Record
from router.cluster.keys import KEPT_SECONDS, STREAM_RECORDS, Keys
from router.cluster.link import Link, NoRedis
from router.concurrency.tasks import BackgroundTasks, in_thread
from router.enrichment.question import Written
from router.enrichment.worth import Filter
from router.skills.diagnostics import Report
from router.skills.enrichment import Enrichment, parse_line

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from router.settings.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.manager import SkillManager
    from router.skills.manifest import SkillManifest

_log: Final = logging.getLogger(__name__)

MAX_BYTES: Final = 64 * 1024
"""The largest enrichment: 64 requests and as many near misses of some sentences each."""
BATCH: Final = 50
"""Enrichments of one write, and of one read."""


class SharedEnrichment:
    """The enrichments of one process and those of the others. Belongs to one event loop. Only
    private methods raise ``NoRedis``."""

    def __init__(self, link: Link, keys: Keys, settings: Settings) -> None:
        self._link = link
        self._keys = keys
        self._manager: SkillManager | None = None
        self._put: dict[str, Enrichment] = {}  # what Redis has of this process, by digest
        self._asked: set[str] = set()  # digests that were looked for
        self._peer_enrichments: dict[str, Enrichment] = {}
        self._turn = asyncio.Lock()
        self._background = BackgroundTasks(_log)
        self.follower = Follower(
            settings.cluster, keys.enrichments, take=self._take, missed=self._begin_anew
        )
        link.when_back(self._begin_anew)

    def begin(self, manager: SkillManager) -> None:
        """Share the enrichments of the manager's skills."""
        self._manager = manager
        self.follower.start()
        self.skills_changed()

    def skills_changed(self) -> None:
        """There is another catalog: put what it has, and look for what it lacks."""
        if self._manager is not None:
            self._background.run(self._share(self._manager))

    async def aclose(self) -> None:
        """Stop. Closing twice is fine."""
        self._manager = None
        await self.follower.aclose()
        await self._background.aclose()

    async def _begin_anew(self) -> None:
        self._put.clear()
        self._asked.clear()
        self.skills_changed()

    async def _take(self, records: list[Record]) -> None:
        self._asked.difference_update(record.get("digest", "") for record in records)
        self.skills_changed()

    async def _share(self, manager: SkillManager) -> None:
        async with self._turn:
            with suppress(NoRedis):  # all is done again when Redis is back
                await self._put_own(manager.registry.catalog)
                await self._look_for(manager)

    async def _put_own(self, catalog: Catalog) -> None:
        news = {
            skill.digest: skill.enrichment
            for skill in catalog.skills.values()
            if skill.enrichment is not None
            and skill.enrichment.digest == skill.digest
            and skill.enrichment != self._peer_enrichments.get(skill.digest)
            and skill.enrichment != self._put.get(skill.digest)
        }
        lines = [(digest, one.to_line().encode("utf-8", "replace")) for digest, one in news.items()]
        lines = [item for item in lines if len(item[1]) <= MAX_BYTES]
        for start in range(0, len(lines), BATCH):
            batch = lines[start : start + BATCH]
            keys = [self._keys.enrichment(digest) for digest, _ in batch]
            await self._link.script(
                scripts.PUT_ENRICHMENTS,
                (self._keys.enrichments, *keys),
                *(STREAM_RECORDS, KEPT_SECONDS * 1000),
                *(part for item in batch for part in item),
            )
            self._put.update((digest, news[digest]) for digest, _ in batch)

    async def _look_for(self, manager: SkillManager) -> None:
        catalog = manager.registry.catalog
        lacking = {
            skill.digest: skill
            for skill in catalog.routable
            if skill.enrichment is None
            or skill.enrichment_is_stale
            or skill.enrichment == self._peer_enrichments.get(skill.digest)
        }
        self._asked &= lacking.keys()
        wanted = [digest for digest in lacking if digest not in self._asked]
        found: dict[str, bytes] = {}
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            found.update(zip(batch, await self._read(batch), strict=True))
        self._asked.update(wanted)
        lines = [(lacking[digest], line) for digest, line in found.items() if line]
        read = await in_thread(lambda: _parsed(catalog, lines)) if lines else {}
        peer_enrichments = {d: e for d, e in self._peer_enrichments.items() if d in lacking} | read
        if peer_enrichments != self._peer_enrichments:
            self._peer_enrichments = peer_enrichments
            await manager.use_enrichments(peer_enrichments)

    async def _read(self, digests: Iterable[str]) -> list[bytes]:
        """What lies under the digests, and no more of it than ``MAX_BYTES``."""

        async def read(redis: Redis) -> list[Any]:
            pipeline = redis.pipeline(transaction=False)
            for digest in digests:
                pipeline.getrange(self._keys.enrichment(digest), 0, MAX_BYTES)
            return await pipeline.execute(raise_on_error=False)

        found = await self._link.run(read)
        return [value if isinstance(value, bytes) else b"" for value in found]


def _parsed(
    catalog: Catalog, lines: Iterable[tuple[SkillManifest, bytes]]
) -> dict[str, Enrichment]:
    """The enrichments that can be used, by digest; the others are named in the log."""
    report = Report(Path("Redis"))
    read: dict[str, Enrichment] = {}
    judge = Filter(catalog.routable)
    for skill, line in lines:
        try:
            if len(line) > MAX_BYTES:
                raise ValueError(f"it has over {MAX_BYTES:,} bytes")
            enrichment = parse_line(line, 1, report)
            if enrichment.digest != skill.digest:
                raise ValueError("it was written for another text")
        except ValueError as error:
            _log.warning("the enrichment of %r in Redis is refused: %s", skill.name, error)
            continue
        kept = judge.keep(skill, Written(enrichment.requests, enrichment.near_misses))
        if kept.left_out:
            _log.warning("of the enrichment of %r in Redis: %s", skill.name, kept.left_out)
        if not kept.is_usable:
            continue
        read[skill.digest] = replace(
            enrichment, skill=skill.name, requests=kept.requests, near_misses=kept.near_misses
        )
    return read
