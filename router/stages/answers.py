"""The interface of answer caches, and the cache of one machine.

The router uses every cache through ``AnswerCache``. ``LocalAnswers`` is the one of this machine:
the exact cache in memory, and the fuzzy cache in memory and in an SQLite file that processes share.
Other caches are tested with ``router.stages.conformance``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, Self

from router.concurrency.tasks import in_thread
from router.result import Stage
from router.settings.plugins import ANSWER_CACHES, load_plugin
from router.settings.settings import ExactSettings, FuzzySettings, Settings
from router.stages.exact import ExactCache
from router.stages.fuzzy import FuzzyCache, FuzzyMatch
from router.stages.fuzzy_store import EVERYTHING, drop_digest
from router.stages.validation import KeptAnswer

_EXACT: Final = ExactSettings()
_FUZZY: Final = FuzzySettings()
WRITE_SECONDS: Final = 0.1
"""Answers are written to the file after this pause, many at a time, so that no request waits for
the file. If the process is killed, the answers of the last pause are lost and decided again."""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a cache look-up.

    Attributes:
        kept: the answer; None on a miss.
        stage: the cache that holds it, ``exact`` or ``fuzzy``.
        text: the request that the answer was stored for.
        similar: the result of the search for similar requests; None where none was made.
        exact_microseconds: time spent in the exact cache.
        fuzzy_microseconds: time spent in the fuzzy cache.
        alone: why only this process's own answers were searched, and not those that processes
            share; empty where the shared ones were searched.
    """

    kept: KeptAnswer | None
    stage: Stage = Stage.EXACT
    text: str = ""
    similar: FuzzyMatch | None = None
    exact_microseconds: float = 0.0
    fuzzy_microseconds: float = 0.0
    alone: str = ""


def configured_cache(settings: Settings) -> AnswerCache:
    """The cache that the settings name. Nothing is opened yet.

    Raises:
        ConfigurationError: it is a plug-in that cannot be used.
    """
    if settings.answer_cache == "local":
        return LocalAnswers.configured(settings)
    cache: AnswerCache = load_plugin(
        ANSWER_CACHES, settings.answer_cache, AnswerCache, "answer_cache"
    )
    return cache


class AnswerCache(Protocol):
    """Stores answers by the text of the request and by its cache context, and finds them again.

    A cache never raises when it fails (its file or server cannot be used): it finds nothing, stores
    nothing and logs why. It is shared by the requests of one event loop.
    """

    async def open(self) -> None:
        """Open files and connections. Called once, before anything else."""

    async def find(self, text: str, context: str, *, similar: bool) -> Found:
        """The answer to this request in this context or, with ``similar``, to a request that means
        the same. The router then checks whether the answer is still valid."""

    async def keep(self, text: str, context: str, kept: KeptAnswer, *, similar: bool) -> None:
        """Store an answer in place of an earlier one to the same request and context. Without
        ``similar``, only identical requests may find it."""

    async def forget(self, text: str, context: str) -> None:
        """Drop the answer to this request in this context, for every process that shares the
        cache."""

    async def keep_marks(self, catalog_version: str, marks: bytes) -> None:
        """Store the marks of a catalog that an answer was decided over (``validation.marks``), at
        least while such an answer is stored."""

    async def marks_of(self, catalog_version: str) -> bytes | None:
        """The marks of a catalog; None when they are not known."""

    async def aclose(self) -> None:
        """Write what is not yet written, and close everything. Closing twice is fine."""


class LocalAnswers:
    """The answers of this machine; see ``AnswerCache``.

    Attributes:
        exact: answers to identical requests, in memory.
        fuzzy: answers to identical and similar requests, in memory and in the file. An answer that
            another process drops, or replaces in the file, leaves ``exact`` within a second, also
            one that was never in the file.
    """

    def __init__(
        self,
        exact: ExactSettings = _EXACT,
        fuzzy: FuzzySettings = _FUZZY,
        *,
        path: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """No file is opened yet.

        Args:
            exact, fuzzy: how much each cache holds, and for how long.
            path: SQLite file of the fuzzy cache; None keeps everything in memory.
            clock: seconds since the epoch, for the fuzzy cache.
        """
        self.exact: ExactCache[KeptAnswer] = ExactCache(
            exact.max_entries, exact.ttl_seconds, max_bytes=exact.max_bytes
        )
        self.fuzzy = FuzzyCache(
            fuzzy.similarity_threshold,
            fuzzy.ttl_seconds,
            fuzzy.max_entries,
            path=path,
            clock=clock,
            changed_elsewhere=self.exact.discard,
            dropped_on_purpose=self._discard_exact,
        )
        self._writing: asyncio.TimerHandle | None = None

    @classmethod
    def configured(cls, settings: Settings) -> Self:
        """The cache that the settings describe. No file is opened yet."""
        return cls(settings.exact, settings.fuzzy, path=settings.state_dir / "fuzzy.sqlite3")

    async def open(self) -> None:
        await in_thread(self.fuzzy.open)

    async def find(self, text: str, context: str, *, similar: bool) -> Found:
        began = time.perf_counter()
        self.fuzzy.follow()
        exact = self.exact.get(text, context)
        exact_ended = time.perf_counter()
        exact_microseconds = (exact_ended - began) * 1e6
        if exact is not None or not similar:
            return Found(exact, Stage.EXACT, text, None, exact_microseconds)
        match = self.fuzzy.find(text, context)
        if match.is_own and match.kept is not None:  # from now on it is an exact hit
            self.exact.set(text, match.kept, context)
        return Found(
            match.kept,
            Stage.FUZZY,
            match.matched or text,
            match,
            exact_microseconds,
            (time.perf_counter() - exact_ended) * 1e6,
        )

    async def keep(self, text: str, context: str, kept: KeptAnswer, *, similar: bool) -> None:
        if similar:
            await self.fuzzy.learn(text, kept.result, context, basis=kept.basis)
            if self._writing is None:
                loop = asyncio.get_running_loop()
                self._writing = loop.call_later(WRITE_SECONDS, self._write)
        self.exact.set(text, kept, context)

    def _write(self) -> None:
        self._writing = None
        asyncio.get_running_loop().run_in_executor(None, self.fuzzy.flush)

    async def forget(self, text: str, context: str) -> None:
        self.exact.discard(text, context)
        self.fuzzy.discard(text, context)
        await in_thread(self.fuzzy.flush)

    def _discard_exact(self, digests: frozenset[bytes]) -> None:
        """Drop the answers with these digests from the exact cache."""
        if EVERYTHING in digests:
            self.exact.clear()
            return
        for text, context, _, _ in self.exact.latest(len(self.exact)):
            if drop_digest(text, context) in digests:
                self.exact.discard(text, context)

    async def keep_marks(self, catalog_version: str, marks: bytes) -> None:
        self.fuzzy.keep_marks(catalog_version, marks)

    async def marks_of(self, catalog_version: str) -> bytes | None:
        return self.fuzzy.marks_of(catalog_version)

    async def aclose(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        await in_thread(self.fuzzy.close)
