"""Which processes there are, and which catalog counts.

Each process says every few seconds that it is alive and which catalog of skills it has. The catalog
that most living processes have is the one that counts: answers over another one are not kept by
others' caches, so a process whose skills are behind or ahead writes nothing until most agree with
it. What it reads is checked against its own skills, as everywhere.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from contextlib import suppress
from typing import Final

from router.cluster import scripts
from router.cluster.keys import Keys
from router.cluster.link import Link, NoRedis
from router.concurrency.tasks import BackgroundTasks

_log: Final = logging.getLogger(__name__)

BEAT_SECONDS: Final = 2.0
LIFE_SECONDS: Final = 10.0
"""Without a word for so long, a process counts as gone."""


class Members:
    """One process among the others. Belongs to one event loop.

    Attributes:
        name: of this process; random.
    """

    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys
        self.name = secrets.token_hex(8)
        self._version = ""
        self._background = BackgroundTasks(_log)

    async def begin(self, catalog_version: str) -> None:
        """Join with a catalog, and stay."""
        await self.changed(catalog_version)
        self._background.run(self._stay())

    async def changed(self, catalog_version: str) -> None:
        """This process has another catalog now. That the server cannot be told is no error."""
        self._version = catalog_version
        await self._beat()

    async def aclose(self) -> None:
        """Leave. Closing twice is fine."""
        await self._background.aclose()
        if self._version:
            self._version = ""
            await self._beat()

    async def _stay(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            await self._beat()

    async def _beat(self) -> None:
        keys = (self._keys.members, self._keys.versions, self._keys.catalog)
        life = int(LIFE_SECONDS * 1000)
        with suppress(NoRedis):
            await self._link.script(scripts.BEAT, keys, self.name, self._version, life)
