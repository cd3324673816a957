"""The server passes the conformance suite that every observer of the catalog must pass."""

from __future__ import annotations

from router.mcp.server import SkillServer
from router.router import SemanticRouter
from router.skills.conformance import ObserverConformance
from router.skills.observers import CatalogObserver


class TestSkillServer(ObserverConformance):
    async def make_observer(self) -> CatalogObserver:
        router = SemanticRouter()
        router.fuzzy.close()  # nothing here routes
        return SkillServer(router)

    async def state(self, observer: CatalogObserver) -> object:
        return None  # it keeps nothing: clients read the lists from the catalog
