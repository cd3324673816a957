"""Where answers are kept: the port, and the cache of one machine.

``AnswerCache`` is all that the router knows of a cache. ``LocalAnswers`` is the one of this
machine: the exact cache in memory, and the fuzzy cache in memory and in an SQLite file that
processes share. ``router.stages.conformance`` tests any other.
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
from router.stages.validation import KeptAnswer

_EXACT: Final = ExactSettings()
_FUZZY: Final = FuzzySettings()
WRITE_SECONDS: Final = 0.1
"""An answer is in the file this long after it was given: nobody waits for the file, and answers are
written many at a time. If the process is killed, the answers of that time must be found again."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a cache has for one request.

    Attributes:
        kept: the answer; None when there is none.
        stage: the cache that has it, ``exact`` or ``fuzzy``.
        text: the request that it was given to.
        similar: what a look for similar requests gave; None when there was none.
        exact_microseconds: time spent in the exact cache.
        fuzzy_microseconds: time spent in the fuzzy cache.
        alone: why the answers that processes share were not looked at; empty when they were.
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
    """Keeps answers by the text of the request and by its context, and finds them again.

    A cache never raises for trouble of its own: it finds nothing and keeps nothing, and says so in
    its log. It is shared by the requests of one event loop.
    """

    async def open(self) -> None:
        """Open files and connections. Called once, before anything else."""

    async def find(self, text: str, context: str, *, similar: bool) -> Found:
        """The answer to this request in this context or, where ``similar`` allows it, to one that
        means the same. The router decides whether it still holds."""

    async def keep(self, text: str, context: str, kept: KeptAnswer, *, similar: bool) -> None:
        """Keep an answer, in place of an earlier one to the same request and context; unless
        ``similar`` allows it, for identical requests only."""

    async def forget(self, text: str, context: str) -> None:
        """Drop the answer to this request in this context, for every process."""

    async def keep_marks(self, catalog_version: str, marks: bytes) -> None:
        """Keep the marks of a catalog that an answer was decided over, while there is one."""

    async def marks_of(self, catalog_version: str) -> bytes | None:
        """The marks of a catalog; None when they are not known."""

    async def aclose(self) -> None:
        """Write down what is left to write, and close everything. Closing twice is fine."""


class LocalAnswers:
    """The answers of this machine; see ``AnswerCache``.

    Attributes:
        exact: answers to identical requests, in memory.
        fuzzy: answers to similar ones as well, in memory and in the file. What another process
            drops or corrects there is dropped from ``exact`` within a second.
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
        )
        self._writing: asyncio.TimerHandle | None = None

    @classmethod
    def configured(cls, settings: Settings) -> Self:
        """The answers where the settings say; see the constructor."""
        return cls(settings.exact, settings.fuzzy, path=settings.state_dir / "fuzzy.sqlite3")

    async def open(self) -> None:
        await in_thread(self.fuzzy.open)

    async def find(self, text: str, context: str, *, similar: bool) -> Found:
        began = time.perf_counter()
        self.fuzzy.follow()
        own = self.exact.get(text, context)
        looked = time.perf_counter()
        in_exact = (looked - began) * 1e6
        if own is not None or not similar:
            return Found(own, Stage.EXACT, text, None, in_exact)
        recall = self.fuzzy.find(text, context)
        if recall.is_own and recall.kept is not None:  # from now on it is an exact hit
            self.exact.set(text, recall.kept, context)
        return Found(
            recall.kept,
            Stage.FUZZY,
            recall.matched or text,
            recall,
            in_exact,
            (time.perf_counter() - looked) * 1e6,
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

    async def keep_marks(self, catalog_version: str, marks: bytes) -> None:
        self.fuzzy.keep_marks(catalog_version, marks)

    async def marks_of(self, catalog_version: str) -> bytes | None:
        return self.fuzzy.marks_of(catalog_version)

    async def aclose(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        await in_thread(self.fuzzy.close)
