"""The router without ``await``: for scripts, and for notebooks, whose loop is already running.

A router belongs to one event loop, so this one runs in a loop of its own, in a thread of its own.
Every method is derived from the asynchronous one: same arguments, same result, same errors. The
caches are the router's own, which any thread may use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, Unpack

from router.concurrency.loop_thread import SyncFace, taking, waiting
from router.router import RouterParts, SemanticRouter

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from router.concurrency.breaker import BreakerState
    from router.events import Events
    from router.llm.protocol import ChatModel
    from router.settings.settings import Settings
    from router.skills.catalog import Catalog
    from router.stages.exact import ExactCache
    from router.stages.fuzzy import FuzzyCache
    from router.stages.validation import KeptAnswer
    from router.sync_parts import SyncLearner, SyncSkillManager


class SyncSemanticRouter(SyncFace[SemanticRouter]):
    """``SemanticRouter`` without ``await``; safe to share between threads.

    with SyncSemanticRouter() as router:
        result = router.route("commit my changes")
    """

    @taking(SemanticRouter)
    def __init__(self, *given: Any, **parts: Any) -> None:
        """Takes what ``SemanticRouter`` takes."""
        super().__init__(SemanticRouter(*given, **parts), "router")

    @classmethod
    def from_skills(
        cls,
        *folders: str | Path,
        settings: Settings | None = None,
        **parts: Unpack[RouterParts],
    ) -> Self:
        """See ``SemanticRouter.from_skills``."""
        return cls._over(SemanticRouter.from_skills(*folders, settings=settings, **parts))

    @classmethod
    def from_tools(
        cls,
        tools: Iterable[object],
        settings: Settings | None = None,
        *,
        name: str = "tools",
        **parts: Unpack[RouterParts],
    ) -> Self:
        """See ``SemanticRouter.from_tools``."""
        return cls._over(SemanticRouter.from_tools(tools, settings, name=name, **parts))

    @classmethod
    def _over(cls, router: SemanticRouter) -> Self:
        face = cls.__new__(cls)
        SyncFace.__init__(face, router, "router")
        return face

    route = waiting(SemanticRouter.route)
    route_many = waiting(SemanticRouter.route_many)
    rank = waiting(SemanticRouter.rank)
    discover = waiting(SemanticRouter.discover)
    feedback = waiting(SemanticRouter.feedback)
    learned = waiting(SemanticRouter.learned)
    enrich = waiting(SemanticRouter.enrich)
    look_up = waiting(SemanticRouter.look_up)
    forget = waiting(SemanticRouter.forget)
    reload = waiting(SemanticRouter.reload)
    open = waiting(SemanticRouter.open)

    def payload(self, name: str) -> object:
        """See ``SemanticRouter.payload``."""
        self.open()
        return self._inner.payload(name)

    @property
    def settings(self) -> Settings:
        """See ``SemanticRouter``."""
        return self._inner.settings

    @property
    def events(self) -> Events:
        """See ``SemanticRouter``. Sinks are called in the thread of the router."""
        return self._inner.events

    @property
    def exact(self) -> ExactCache[KeptAnswer]:
        """See ``SemanticRouter.exact``."""
        return self._inner.exact

    @property
    def fuzzy(self) -> FuzzyCache:
        """See ``SemanticRouter.fuzzy``."""
        return self._inner.fuzzy

    @property
    def catalog(self) -> Catalog:
        """The skills that the next request is routed over; opens the router."""
        return self.open().catalog

    @property
    def models(self) -> tuple[ChatModel, ...]:
        """See ``SemanticRouter.models``; opens the router."""
        self.open()
        return self._inner.models

    @property
    def breakers(self) -> tuple[tuple[ChatModel, BreakerState], ...]:
        """See ``SemanticRouter.breakers``; opens the router."""
        self.open()
        return self._inner.breakers

    @property
    def manager(self) -> SyncSkillManager:
        """See ``SemanticRouter.manager``; opens the router."""
        from router.sync_parts import SyncSkillManager

        self.open()
        return SyncSkillManager(self._inner.manager, self._thread)

    @property
    def learner(self) -> SyncLearner:
        """See ``SemanticRouter.learner``; opens the router."""
        from router.sync_parts import SyncLearner

        self.open()
        return SyncLearner(self._inner.learner, self._thread)
