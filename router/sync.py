"""The synchronous face: for scripts, and for notebooks, whose loop is already running.

A router belongs to one event loop, so this one runs in a loop of its own, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from router.request import Turn
from router.result import RoutingResult
from router.router import SemanticRouter

if TYPE_CHECKING:
    from router.retrieval.discover import Discovered
    from router.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.changes import CatalogChange

T = TypeVar("T")


class SyncSemanticRouter:
    """``SemanticRouter`` without ``await``; safe to share between threads.

    with SyncSemanticRouter() as router:
        result = router.route("commit my changes")
    """

    def __init__(self, settings: Settings | None = None, **parts: Any) -> None:
        """Takes what ``SemanticRouter`` takes."""
        self._start(SemanticRouter(settings, **parts))

    @classmethod
    def from_skills(
        cls,
        *folders: str | Path,
        settings: Settings | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """See ``SemanticRouter.from_skills``."""
        face = cls.__new__(cls)
        face._start(SemanticRouter.from_skills(*folders, settings=settings, progress=progress))
        return face

    def _start(self, router: SemanticRouter) -> None:
        self._router = router
        self._closed = False
        self._submitting = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="router-sync", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        try:
            self._wait(self._router.open())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def catalog(self) -> Catalog:
        """The skills that the next request is routed over; reads them when it is first asked."""
        return self._wait(self._router.open()).catalog

    def route(
        self,
        request: str,
        available_skills: Iterable[str] | None = None,
        history: Sequence[Turn | str] = (),
        scope: str | None = None,
        use_semantic_cache: bool = True,
    ) -> RoutingResult:
        """See ``SemanticRouter.route``."""
        return self._wait(
            self._router.route(request, available_skills, history, scope, use_semantic_cache)
        )

    def route_many(
        self,
        requests: Iterable[str],
        available_skills: Iterable[str] | None = None,
        scope: str | None = None,
    ) -> list[RoutingResult]:
        """See ``SemanticRouter.route_many``."""
        return self._wait(self._router.route_many(requests, available_skills, scope))

    def discover(
        self, query: str, *, limit: int = 10, installed_only: bool = True
    ) -> tuple[Discovered, ...]:
        """See ``SemanticRouter.discover``."""
        return self._wait(self._router.discover(query, limit=limit, installed_only=installed_only))

    def feedback(
        self, result_id: str, skills: Iterable[str] | None = None, *, right: bool | None = None
    ) -> None:
        """See ``SemanticRouter.feedback``."""
        self._wait(self._router.feedback(result_id, skills, right=right))

    def reload(self) -> CatalogChange:
        """See ``SemanticRouter.reload``."""
        return self._wait(self._router.reload())

    def close(self) -> None:
        """Answer what other threads asked, close the router and end its thread. Closing twice is
        fine."""
        with self._submitting:
            closed, self._closed = self._closed, True
        if not closed:
            asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        if not closed:
            self._loop.close()

    async def _shut_down(self) -> None:
        await self._router.aclose()
        # A caller in another thread would wait for ever for work that stops with the loop.
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*rest, return_exceptions=True)
        await self._loop.shutdown_default_executor()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            with self._submitting:
                if self._closed:
                    work.close()
                    raise RuntimeError("this router is closed")
                future = asyncio.run_coroutine_threadsafe(work, self._loop)
            return future.result()
        except BaseException:
            # Ctrl-C above all, which may come between any two steps: what nobody waits for any
            # more is stopped. A loop that has ended has nothing left to stop.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_stop, work)
            raise


def _stop(work: Coroutine[Any, Any, Any]) -> None:
    """Cancel the task that runs this coroutine, if there is one."""
    for task in asyncio.all_tasks():
        if task.get_coro() is work:
            task.cancel()
