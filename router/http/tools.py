"""The tools that clients put into namespaces: kept as files, and routable when the call returns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from router.http.problems import Refused
from router.tools.folder import ToolFolder, routed_name

if TYPE_CHECKING:
    from router.router import SemanticRouter


class Tools:
    """Puts tools into the folder that a router reads."""

    def __init__(self, router: SemanticRouter) -> None:
        """``router`` may still be closed; that it has a ``ToolFolder`` is found out by the first
        call."""
        self._router = router

    async def put(self, namespace: str, name: str, definition: dict[str, Any]) -> tuple[bool, str]:
        """Keep a tool; whether its name is new, and the version of the catalog that has it.

        Raises:
            SourceError: the tool cannot be used.
            StoreError: it cannot be written.
            Refused: a skill from elsewhere has its name.
        """
        folder = await self._folder()
        new = await asyncio.to_thread(folder.put, namespace, name, definition)
        await self._router.reload()
        catalog = self._router.catalog
        skill = catalog.skills.get(routed_name(namespace, name))
        if skill is None or skill.payload != definition:
            raise Refused(
                409,
                "the tool is not routable",
                "another source has its name, or it was changed again meanwhile",
            )
        return new, catalog.version

    async def delete(self, namespace: str, name: str) -> str:
        """Drop a tool; the version of the catalog that has it no more.

        Raises:
            SourceError: the names cannot be names.
            StoreError: the file cannot be removed.
            Refused: there is no such tool.
        """
        folder = await self._folder()
        if not await asyncio.to_thread(folder.delete, namespace, name):
            raise Refused(404, "there is no such tool", f"none in the namespace {namespace}")
        await self._router.reload()
        return self._router.catalog.version

    async def _folder(self) -> ToolFolder:
        await self._router.open()
        for source in self._router.manager.registry.sources:
            if isinstance(source, ToolFolder):
                return source
        raise Refused(409, "the server is not set up for that", "it keeps no tools")
