"""The processes of a cluster, and the catalog that most of them have.

Each process reports every few seconds that it is alive, and which catalog it has. Answers are
stored only if they were decided over the catalog that most living processes have. So a process
whose skills are older or newer writes no answers until most processes have the same. The answers
that it reads are validated over its own skills, as everywhere.
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
"""A process that has not reported for this long counts as gone."""


class Members:
    """The membership of this process. Belongs to one event loop.

    Attributes:
        name: the random name of this process.
    """

    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys
        self.name = secrets.token_hex(8)
        self._version = ""
        self._background = BackgroundTasks(_log)

    async def begin(self, catalog_version: str) -> None:
        """Join with a catalog, and report regularly from then on."""
        await self.changed(catalog_version)
        self._background.run(self._stay())

    async def changed(self, catalog_version: str) -> None:
        """Report another catalog. It is no error where the server cannot be reached."""
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
