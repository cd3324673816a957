"""Ranking tools that come with the request, for programs that have no catalog on the server.

An agent sends the same tools with each of its requests, so the index over a set of tools is kept
for the next one. Sets are told apart by their content, and the least recently used ones go.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cachetools import LRUCache

from router.flight import SingleFlight
from router.ranking import RankedSkills, rank
from router.request import AnyTurn, Request
from router.skills.registry import SkillRegistry
from router.tools.source import ToolSource

if TYPE_CHECKING:
    from router.retrieval.index import SkillIndex
    from router.router import SemanticRouter

MAX_KEPT: Final = 20_000
"""Tools of all sets that are kept."""


class ToolSets:
    """Ranks tools of callers with the encoder of a router. Belongs to its event loop."""

    def __init__(self, router: SemanticRouter) -> None:
        """Nothing is kept yet."""
        self._router = router
        self._kept: LRUCache[str, SkillIndex] = LRUCache(
            MAX_KEPT, getsizeof=lambda index: len(index.catalog.skills)
        )
        self._reading: SingleFlight[SkillIndex] = SingleFlight()

    async def rank(
        self,
        request: str,
        tools: Sequence[dict[str, Any]],
        *,
        limit: int,
        available: Sequence[str] | None,
        always_include: Sequence[str],
        history: Sequence[AnyTurn],
        scope: str | None,
    ) -> RankedSkills:
        """The best of some tools; takes what the router's ``rank`` takes beside them.

        Raises:
            SourceError: a tool cannot be used, or two have one name.
            InvalidRequest: the request cannot be ranked.
        """
        asked = Request.parse(request, available=available, history=history, scope=scope)
        text = json.dumps(tools, ensure_ascii=False).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(text).hexdigest()
        index = self._kept.get(digest)
        if index is None:
            index = await self._reading.do(digest, lambda: self._read(digest, tools))
        return await rank(
            asked,
            catalog=index.catalog,
            index=index,
            limit=limit,
            always_include=always_include,
            caution=self._router.settings.vector.least_right,
        )

    async def _read(self, digest: str, tools: Sequence[dict[str, Any]]) -> SkillIndex:
        own = (await self._router.open()).index

        def build() -> SkillIndex:
            return own.over(SkillRegistry([ToolSource(tools, name="the request")]).catalog)

        built = await asyncio.to_thread(build)
        self._kept[digest] = built
        return built
