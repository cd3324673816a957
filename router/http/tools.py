"""The tools that clients put into namespaces: kept as files, and routable when the call returns.

What cannot be used raises SourceError; what cannot be written or removed, StoreError.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from router.http.problems import Refused
from router.tools.folder import ToolFolder, routed_name

if TYPE_CHECKING:
    from router.router import SemanticRouter


async def put_tool(
    router: SemanticRouter, namespace: str, name: str, definition: dict[str, Any]
) -> tuple[bool, str]:
    """Keep a tool; whether its name is new, and the version of the catalog that has it. Raises
    Refused when a skill from elsewhere has its name."""
    folder = await _folder(router)
    new = await asyncio.to_thread(folder.put, namespace, name, definition)
    await router.reload()
    skill = router.catalog.skills.get(routed_name(namespace, name))
    if skill is None or skill.payload != definition:
        raise Refused(
            409,
            "the tool is not routable",
            "another source has its name, or it was changed again meanwhile",
        )
    return new, router.catalog.version


async def delete_tool(router: SemanticRouter, namespace: str, name: str) -> str:
    """Drop a tool; the version of the catalog that has it no more. Raises Refused when there is no
    such tool."""
    folder = await _folder(router)
    if not await asyncio.to_thread(folder.delete, namespace, name):
        raise Refused(404, "there is no such tool", f"none in the namespace {namespace}")
    await router.reload()
    return router.catalog.version


async def _folder(router: SemanticRouter) -> ToolFolder:
    await router.open()
    for source in router.manager.registry.sources:
        if isinstance(source, ToolFolder):
            return source
    raise Refused(409, "the server is not set up for that", "it keeps no tools")
