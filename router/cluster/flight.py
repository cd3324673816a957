"""Makes identical requests in several processes share one decision.

A process that finds no cached answer asks for the lease of the request. One process, the leader,
gets it, checks the cache once more, and decides; the others wait. When the leader is done, they
find its answer in the cache or, if it may not be cached, under the key of the outcome. When the
leader dies, its lease expires, and one of the others becomes the leader.

The lease has a fencing token. A leader that was stopped for longer than its lease has an old token,
and its writes are refused (``scripts.KEEP``).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from router.cluster import scripts
from router.cluster.answers import MAX_ANSWER_BYTES, NOT_SHARED, fencing_token
from router.cluster.keys import Keys, entry_of
from router.cluster.link import Link, NoRedis
from router.concurrency.tasks import BackgroundTasks
from router.result import Outcome, RoutingResult, Stage

_log: Final = logging.getLogger(__name__)

LEASE_SECONDS: Final = 3.0
"""A leader that has not renewed its lease for this long counts as dead."""
OUTCOME_SECONDS: Final = 5.0
"""How long an outcome is kept for the processes that wait for it."""
FIRST_PAUSE: Final = 0.005
LONGEST_PAUSE: Final = 0.05
"""The pauses, in seconds, after which a waiting process checks again; they grow from the first to
the longest."""


class SharedFlight:
    """Decides each request once. Belongs to one event loop.

    Attributes:
        waiting: the number of requests that wait for another process now.
    """

    def __init__(self, link: Link, keys: Keys) -> None:
        self._link = link
        self._keys = keys
        self._life = int(LEASE_SECONDS * 1000)
        self.waiting = 0
        self._random = random.Random()  # noqa: S311 - spreads those who wait; nothing secret

    async def once(
        self,
        text: str,
        context: str,
        catalog_version: str,
        *,
        look: Callable[[], Awaitable[RoutingResult | None]],
        decide: Callable[[], Awaitable[RoutingResult]],
    ) -> RoutingResult:
        """The answer that another process is deciding, or the result of ``decide``.

        Args:
            text: the request.
            context: its cache context.
            catalog_version: an outcome over another catalog is not used.
            look: returns the cached answer that is valid over this catalog, if there is one.
            decide: decides the request, and stores a sure answer in the caches.
        """
        entry, waited_for, pause = entry_of(text, context), "", FIRST_PAUSE
        while True:
            try:
                state, value = await self._join(entry, waited_for)
            except NoRedis:
                if not self._link.is_up:
                    return await _decide_unshared(decide)
                await asyncio.sleep(FIRST_PAUSE)  # one slow answer; the breaker ends this
                continue
            if state == "lead":
                return await self._lead(entry, value, look, decide)
            if state == "outcome":
                result = _read(value)
                if result is not None and result.catalog_version == catalog_version:
                    return result
                waited_for = ""
                continue
            if waited_for and value != waited_for and (found := await look()) is not None:
                return found
            waited_for = value
            self.waiting += 1
            try:
                await asyncio.sleep(pause * self._random.uniform(0.5, 1))
            finally:
                self.waiting -= 1
            pause = min(1.5 * pause, LONGEST_PAUSE)

    async def _join(self, entry: str, waited_for: str) -> tuple[str, str]:
        """``lead`` and the token of this process; ``wait`` and the token of the one that decides;
        or ``outcome`` and what the process that was waited for has decided."""
        keys = (self._keys.lease(entry), self._keys.outcome(entry), self._keys.token)
        state, value = await self._link.script(scripts.JOIN, keys, self._life, waited_for)
        return state.decode(), value.decode("utf-8", "replace")

    async def _lead(
        self,
        entry: str,
        token: str,
        look: Callable[[], Awaitable[RoutingResult | None]],
        decide: Callable[[], Awaitable[RoutingResult]],
    ) -> RoutingResult:
        decided: RoutingResult | None = None
        marker = fencing_token.set(token)
        try:
            async with self._renewed(entry, token):
                found = await look()
                if found is None:
                    found = decided = await decide()
                return found
        finally:
            fencing_token.reset(marker)
            await self._release(entry, token, "" if decided is None else _outcome(decided))

    @asynccontextmanager
    async def _renewed(self, entry: str, token: str) -> AsyncIterator[None]:
        """Renews the lease while the block runs."""
        key = self._keys.lease(entry)

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._life / 3000)
                with suppress(NoRedis):
                    await self._link.script(scripts.RENEW, (key,), token, self._life)

        renewing = BackgroundTasks(_log)
        renewing.run(renew())
        try:
            yield
        finally:
            await renewing.aclose()

    async def _release(self, entry: str, token: str, outcome: str) -> None:
        keys = (self._keys.lease(entry), self._keys.outcome(entry), self._keys.dropped(entry))
        life = int(OUTCOME_SECONDS * 1000)
        with suppress(NoRedis):  # it runs out by itself
            await self._link.script(scripts.RELEASE, keys, token, outcome, life)


async def _decide_unshared(decide: Callable[[], Awaitable[RoutingResult]]) -> RoutingResult:
    """Decide without the others. Even if Redis is back at the end, the answer is not shared,
    because it may have been dropped in the meantime."""
    marker = fencing_token.set(NOT_SHARED)
    try:
        return await decide()
    finally:
        fencing_token.reset(marker)


def _outcome(result: RoutingResult) -> str:
    """The outcome for waiting processes, as JSON; empty where they must decide for themselves. Only
    answers for which an LLM was asked are shared: a local answer must be on the account of the
    error bound of the process that gives it."""
    asked = any(
        entry.stage is Stage.LLM and entry.outcome is not Outcome.SKIPPED for entry in result.trace
    )
    text = result.to_json() if asked else ""
    return text if len(text) <= MAX_ANSWER_BYTES else ""


def _read(text: str) -> RoutingResult | None:
    try:
        return RoutingResult.from_json(text)
    except ValueError as error:
        _log.warning("the outcome of another process cannot be read: %s", error)
        return None
