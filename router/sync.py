"""The synchronous face: for scripts, and for notebooks, whose loop is already running.

A router belongs to one event loop, so this one runs in a loop of its own, in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from router.loop_thread import LoopThread
from router.request import Turn
from router.result import RoutingResult
from router.router import SemanticRouter

if TYPE_CHECKING:
    from router.ranking import RankedSkills
    from router.retrieval.discover import Discovered
    from router.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.changes import CatalogChange


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

    @classmethod
    def from_tools(
        cls, tools: Iterable[object], settings: Settings | None = None, **parts: Any
    ) -> Self:
        """See ``SemanticRouter.from_tools``."""
        face = cls.__new__(cls)
        face._start(SemanticRouter.from_tools(tools, settings, **parts))
        return face

    def _start(self, router: SemanticRouter) -> None:
        self._router = router
        self._thread = LoopThread("router")

    def __enter__(self) -> Self:
        try:
            self._thread.wait(self._router.open())
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
        return self._thread.wait(self._router.open()).catalog

    def route(
        self,
        request: str,
        *,
        available_skills: Iterable[str] | None = None,
        history: Sequence[Turn | str] = (),
        scope: str | None = None,
        use_semantic_cache: bool = True,
    ) -> RoutingResult:
        """See ``SemanticRouter.route``."""
        return self._thread.wait(
            self._router.route(
                request,
                available_skills=available_skills,
                history=history,
                scope=scope,
                use_semantic_cache=use_semantic_cache,
            )
        )

    def route_many(
        self,
        requests: Iterable[str],
        *,
        available_skills: Iterable[str] | None = None,
        scope: str | None = None,
    ) -> list[RoutingResult]:
        """See ``SemanticRouter.route_many``."""
        return self._thread.wait(
            self._router.route_many(requests, available_skills=available_skills, scope=scope)
        )

    def rank(
        self,
        request: str,
        *,
        limit: int = 10,
        available: Iterable[str] | None = None,
        always_include: Iterable[str] = (),
        history: Sequence[Turn | str] = (),
        scope: str | None = None,
    ) -> RankedSkills:
        """See ``SemanticRouter.rank``."""
        return self._thread.wait(
            self._router.rank(
                request,
                limit=limit,
                available=available,
                always_include=always_include,
                history=history,
                scope=scope,
            )
        )

    def payload(self, name: str) -> object:
        """See ``SemanticRouter.payload``."""
        return self.catalog.get(name).payload

    def discover(
        self,
        query: str,
        *,
        limit: int = 10,
        installed_only: bool = True,
        available: Iterable[str] | None = None,
    ) -> tuple[Discovered, ...]:
        """See ``SemanticRouter.discover``."""
        return self._thread.wait(
            self._router.discover(
                query, limit=limit, installed_only=installed_only, available=available
            )
        )

    def feedback(
        self,
        result_id: str,
        skills: Iterable[str] | None = None,
        *,
        right: bool | None = None,
        scope: str | None = None,
    ) -> None:
        """See ``SemanticRouter.feedback``."""
        self._thread.wait(self._router.feedback(result_id, skills, right=right, scope=scope))

    def reload(self) -> CatalogChange:
        """See ``SemanticRouter.reload``."""
        return self._thread.wait(self._router.reload())

    def close(self) -> None:
        """Answer what other threads asked, close the router and end its thread. Closing twice is
        fine."""
        self._thread.close(self._router.aclose)
